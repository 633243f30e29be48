# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The Deployments and StatefulSets of a protected workload: which they are, and how they look when started and stopped. Pure.

A controller belongs to the workload if it has the labels of the pvcSelector, or if its pods mount a volume that is protected.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping

from ..common.types import Object
from ..kube.label_selector import matches
from .vrg import VRG

APPS = "apps/v1"
KINDS = ("Deployment", "StatefulSet")
# The replicas that a controller had when it was stopped; empty once it is started again.
REPLICAS = "dr.openfleet.io/replicas"
DIGITS = 9  # of replicas at most: all such numbers fit into their field, and a longer text may be none that Python reads


def protected_claims(vrgs: Iterable[VRG]) -> set[str]:
    """The names of the claims that any cluster reports as protected."""
    return {str(pvc["name"]) for vrg in vrgs for pvc in vrg.pvcs if pvc.get("name")}


def belongs(item: Object, selector: Object, claims: set[str]) -> bool:
    return matches(item["metadata"].get("labels") or {}, selector) or any(_mounts(item, claim) for claim in claims)


def replicas_of(item: Object) -> int:
    """The replicas of the spec. A spec without replicas means one."""
    return int(item.get("spec", {}).get("replicas", 1))


def is_idle(item: Object) -> bool:
    """Whether it has no replicas and can be started. One that had none when it was stopped stays so."""
    return not replicas_of(item) and _noted(item) != 0 and not item.get("metadata", {}).get("deletionTimestamp")


def is_pending(item: Object) -> bool:
    """Whether it was stopped, or is about to be started, and a start was cut off before it came to it."""
    return is_idle(item) and _noted(item) is not None


def stopped(item: Object) -> Object:
    """Scaled to zero, with a note of the replicas it had. A second stop keeps the note of the first."""
    replicas = replicas_of(item)
    return _scaled(item, 0, {REPLICAS: str(replicas)} if replicas or _noted(item) is None else {})


def started(item: Object) -> Object:
    """Scaled to the replicas it had when it was stopped. One that was never stopped here has one replica.

    The note is cleared, so that one that a person scales to zero later does not look like one that is still to be started.
    """
    replicas = _replicas_to_start(item)
    return _scaled(item, replicas, {REPLICAS: ""} if replicas else {})


# What is written for a controller: the controller as it was read, and as it has to be.
Write = tuple[Object, Object]


def stops(items: Iterable[Object]) -> list[list[Write]]:
    """What is written to stop a workload. Those without replicas get their note first: after the last stop nothing asks for it."""
    pending = [item for item in items if replicas_of(item) or (is_idle(item) and _noted(item) is None)]
    return [[(item, stopped(item)) for item in sorted(pending, key=replicas_of)]]


def starts(items: Iterable[Object]) -> list[list[Write]]:
    """What is written to start a workload. All is noted before anything is started.

    So a start that is cut off between two writes is known as such: without a note, a controller may have no replicas on purpose.
    """
    items = list(items)
    # Beside what runs, only what has a note: all that was to be started had one then.
    running = any(map(replicas_of, items))
    idle = [item for item in items if (is_pending(item) if running else is_idle(item))]
    unknown = [item for item in idle if _noted(item) is None] if len(idle) > 1 else []
    notes = [(item, _scaled(item, 0, {REPLICAS: str(_replicas_to_start(item))})) for item in unknown]
    return [notes, [(item, started(item)) for item in idle]]


def _replicas_to_start(item: Object) -> int:
    noted = _noted(item)
    return 1 if noted is None else noted


def _noted(item: Object) -> int | None:
    """The owner of the workload can change the note: what is no number of replicas counts as none."""
    noted = str((item.get("metadata", {}).get("annotations") or {}).get(REPLICAS, ""))
    return int(noted) if noted.isdecimal() and len(noted) <= DIGITS else None


def _scaled(item: Object, replicas: int, annotations: Mapping[str, str]) -> Object:
    metadata = item["metadata"]
    return {
        "apiVersion": APPS,
        "kind": item["kind"],
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "annotations": dict(annotations)},
        "spec": copy.deepcopy(item["spec"]) | {"replicas": replicas},
    }


def _mounts(item: Object, claim: str) -> bool:
    spec = item.get("spec") or {}
    volumes = ((spec.get("template") or {}).get("spec") or {}).get("volumes") or []
    templates = spec.get("volumeClaimTemplates") or []
    own = (f"{template['metadata']['name']}-{item['metadata']['name']}-" for template in templates)
    return any((volume.get("persistentVolumeClaim") or {}).get("claimName") == claim for volume in volumes) or any(
        claim.startswith(prefix) and claim.removeprefix(prefix).isdecimal() for prefix in own
    )
