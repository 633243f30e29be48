# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The stamp on an object: owner, epoch and revision. Decides whether a writer may change the object. It sends nothing.

An object without a stamp has epoch and revision 0. The ValidatingAdmissionPolicy in extensions/eda/deploy/kubernetes/dr refuses on
the server what is refused here before a request.
"""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Iterable, Mapping

from ..common.types import Object
from .interfaces import Refused, Stamp, Superseded

EPOCH, REVISION = "dr.openfleet.io/epoch", "dr.openfleet.io/revision"
DRPC_UID = "drplacementcontrol.ramendr.openshift.io/drpc-uid"
DESTINATION = "drplacementcontrol.ramendr.openshift.io/destination-cluster"
# What a signed number of 64 bits holds, as the policy reads it.
NUMBER = re.compile(r"[0-9]{1,18}")
# Written by the API server, or by controllers through a subresource.
NOT_WRITTEN = ("apiVersion", "kind", "metadata", "status")


class BadStamp(ValueError):
    """An annotation of the stamp is not a number."""


def position(item: Object) -> tuple[int, int]:
    """Epoch and revision of an object, in the order in which they grow."""
    annotations = _annotations(item)
    numbers = []
    for name in (EPOCH, REVISION):
        text = annotations.get(name, "0")
        if not NUMBER.fullmatch(text):
            raise BadStamp(f"the annotation {name} is {text[:40]!r}, not a decimal number")
        numbers.append(int(text))
    return numbers[0], numbers[1]


def stamps_of(items: Mapping[str, Iterable[Object]]) -> dict[str, tuple[int, int]]:
    """The stamps of objects by cluster, each with its name. One with an invalid stamp is refused when it is written."""
    found = {}
    for cluster, each in items.items():
        for item in each:
            with contextlib.suppress(BadStamp):
                found[f"The {item['kind']} {item['metadata']['name']} of {cluster}"] = position(item)
    return {name: stamp for name, stamp in found.items() if stamp != (0, 0)}


def refusal(existing: Object, stamp: Stamp) -> Superseded | Refused | None:
    """Why the writer of this stamp must not change the object; None if it may."""
    metadata = existing["metadata"]
    name = f"{existing['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
    try:
        epoch, revision = position(existing)
    except BadStamp as error:
        return Refused(f"{name} has an invalid stamp: {error}. Restore or remove the annotation.")
    if (epoch, revision) > (stamp.epoch, stamp.revision):
        return Superseded(
            epoch,
            revision,
            f"{name} was written at epoch {epoch}, revision {revision}, later than epoch {stamp.epoch}, revision {stamp.revision}.",
        )
    owner = _annotations(existing).get(DRPC_UID, "")
    if owner not in {stamp.drpc_uid, *stamp.adopts}:
        described = f"the DRPlacementControl with uid {owner}" if owner else "no DRPlacementControl"
        return Refused(f"{name} belongs to {described}. Delete it if it is a leftover, or give one of the two another name.")
    return None


def marks(stamp: Stamp) -> dict[str, str]:
    """The annotations of a stamp."""
    return {EPOCH: str(stamp.epoch), REVISION: str(stamp.revision), DRPC_UID: stamp.drpc_uid}


def stamped(item: Object, cluster: str, stamp: Stamp) -> Object:
    """The object as it is written to a cluster."""
    new = copy.deepcopy(item)
    new["metadata"]["annotations"] = dict(_annotations(new)) | marks(stamp) | {DESTINATION: cluster}
    return new


def merged(existing: Object, wanted: Object) -> Object:
    """The existing object with the content that is wanted. Labels, annotations and finalizers of others stay."""
    new = copy.deepcopy(existing)
    new.update({key: copy.deepcopy(value) for key, value in wanted.items() if key not in NOT_WRITTEN})
    for key in ("labels", "annotations"):
        if values := wanted["metadata"].get(key):
            new["metadata"][key] = dict(new["metadata"].get(key) or {}) | values
    return new


def _annotations(item: Object) -> Mapping[str, str]:
    return item["metadata"].get("annotations") or {}
