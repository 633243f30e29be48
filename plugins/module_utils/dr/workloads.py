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
# The replicas that a controller had when it was stopped.
REPLICAS = "dr.openfleet.io/replicas"


def protected_claims(vrgs: Iterable[VRG]) -> set[str]:
    """The names of the claims that any cluster reports as protected."""
    return {str(pvc["name"]) for vrg in vrgs for pvc in vrg.pvcs if pvc.get("name")}


def belongs(item: Object, selector: Object, claims: set[str]) -> bool:
    return matches(item["metadata"].get("labels") or {}, selector) or any(_mounts(item, claim) for claim in claims)


def stopped(item: Object) -> Object:
    """Scaled to zero, with a note of the replicas it had."""
    replicas = item.get("spec", {}).get("replicas", 1)
    return _scaled(item, 0, {REPLICAS: str(replicas)} if replicas else {})


def started(item: Object) -> Object:
    """Scaled to the replicas it had when it was stopped. One that was never stopped here has one replica."""
    noted = (item["metadata"].get("annotations") or {}).get(REPLICAS, "")
    return _scaled(item, max(1, int(noted)) if noted.isdecimal() else 1, {})


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
