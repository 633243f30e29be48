# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writes objects to the API servers of the registered clusters, fenced by their stamps.

Each write is a compare-and-swap: on the absence of the object, or on the version whose stamp was compared. After a lost
answer the caller repeats the call.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ...common.types import Object
from ...kube.client import Kube
from ...kube.errors import Conflict, Invalid, NotFound
from ..answers import Unreachable
from ..interfaces import Deployed, ObjectRef, Outcome, Refused, Stamp
from ..stamps import merged, refusal, stamped
from .peers import Peers

PAUSE_SECONDS = 0.05


class DirectDeployer:
    """ResourceDeployer over the registry's clients."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    def apply(self, cluster: str, item: Object, stamp: Stamp) -> Outcome:
        return self._write(cluster, lambda kube: _apply(kube, cluster, item, stamp))

    def delete(self, cluster: str, ref: ObjectRef, stamp: Stamp) -> Outcome:
        return self._write(cluster, lambda kube: _delete(kube, ref, stamp))

    def _write(self, cluster: str, work: Callable[[Kube], Outcome]) -> Outcome:
        deadline = self._peers.deadline()

        def attempts(kube: Kube) -> Outcome:
            while True:
                try:
                    return work(kube)
                except Conflict as error:
                    # The object has changed since its stamp was compared: compare the new one.
                    if time.monotonic() + PAUSE_SECONDS > deadline:
                        return Unreachable(f"{error} It changed all the time, for {self._peers.seconds:g} s.")
                    time.sleep(PAUSE_SECONDS)
                except Invalid as error:
                    return Refused(f"{error} Check the CRD of the cluster, and its admission policies.")

        return self._peers.call(cluster, attempts)


def _apply(kube: Kube, cluster: str, item: Object, stamp: Stamp) -> Outcome:
    wanted, metadata = stamped(item, cluster, stamp), item["metadata"]
    existing = kube.find(item["apiVersion"], item["kind"], metadata["name"], metadata.get("namespace"))
    if existing is None:
        return _create(kube, wanted)
    if refused := refusal(existing, stamp):
        return refused
    if existing["metadata"].get("deletionTimestamp"):
        return Refused(f"{item['kind']} {metadata['name']} is being deleted: wait until {cluster} no longer has it.")
    new = merged(existing, wanted)
    if new == existing:
        return Deployed(changed=False)
    written = kube.replace(new)
    # The same again for an object whose missing fields have defaults: the server changes nothing then.
    return Deployed(written["metadata"]["resourceVersion"] != existing["metadata"]["resourceVersion"])


def _create(kube: Kube, wanted: Object) -> Outcome:
    try:
        kube.create(wanted)
    except NotFound:
        if not kube.serves(wanted["apiVersion"], wanted["kind"]):
            return Refused(f"{kube.target.server} does not serve {wanted['kind']} of {wanted['apiVersion']}: install its CRD.")
        # Only the namespace can be missing.
        kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": wanted["metadata"]["namespace"]}})
        kube.create(wanted)
    return Deployed(changed=True)


def _delete(kube: Kube, ref: ObjectRef, stamp: Stamp) -> Outcome:
    existing = kube.find(ref.api_version, ref.kind, ref.name, ref.namespace or None)
    if existing is None:
        return Deployed(changed=False)
    if refused := refusal(existing, stamp):
        return refused
    if existing["metadata"].get("deletionTimestamp"):
        return Deployed(changed=False)
    return Deployed(kube.delete(existing, unchanged=True))
