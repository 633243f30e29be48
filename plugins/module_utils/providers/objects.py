# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What providers whose clusters are objects on the hub have in common: names and labels, and how conditions are read.

A condition counts only when it is of its object's current generation, or doesn't say of which: an older one is an answer to a
question that nobody asks any more, and reads as Unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..common.types import Object
from .base import ClusterRef
from .model import TRUE, UNKNOWN, ConditionState


def metadata(ref: ClusterRef, name: str, labels: Mapping[str, str] | None = None) -> Object:
    return {"name": name, "namespace": ref.namespace, "labels": {**ref.labels, **(labels or {})}}


def selector(ref: ClusterRef) -> str:
    """The labels of the cluster's objects, to list them by."""
    return ",".join(f"{name}={value}" for name, value in ref.labels.items())


def node_set_name(resource_class: str) -> str:
    """What the objects for nodes of that class are called, in letters that Kubernetes takes."""
    return resource_class.lower().replace("_", "-").replace(".", "-")


def resource_class_of(item: Object, class_label: str) -> str:
    return str((item["metadata"].get("labels") or {}).get(class_label) or "")


def condition_state_of(item: Object, kind: str) -> ConditionState | None:
    """What the object's condition says; None when it has no such condition."""
    for condition in (item.get("status") or {}).get("conditions") or []:
        if condition["type"] == kind:
            if is_outdated(item, condition):
                return ConditionState(UNKNOWN, "Outdated", f"The last answer, {condition['status']}, is about an older generation")
            return ConditionState(condition["status"], condition.get("reason") or "NoReason", condition.get("message") or "")
    return None


def is_true(item: Object, kind: str) -> bool:
    verdict = condition_state_of(item, kind)
    return verdict is not None and verdict.status == TRUE


def is_outdated(item: Object, answer: Mapping[str, Any]) -> bool:
    """Whether a condition, or a whole status, is about an older generation of the object."""
    generation = item["metadata"].get("generation", 0)
    return bool(answer.get("observedGeneration", generation) != generation)


def is_deleting(item: Object) -> bool:
    return bool(item["metadata"].get("deletionTimestamp"))


def api_url(endpoint: Mapping[str, Any] | None) -> str:
    host, port = (endpoint or {}).get("host"), (endpoint or {}).get("port")
    if not host or not port:
        return ""
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
