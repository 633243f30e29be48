# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What providers whose clusters are objects on the hub have in common: names and labels, and how conditions are read.

A condition counts only when it is of its object's current generation, or doesn't say of which: an older one is Unknown.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from ..common.types import Object
from .base import ClusterRef
from .model import TRUE, UNKNOWN, ConditionState


def metadata(ref: ClusterRef, name: str, labels: Mapping[str, str] | None = None) -> Object:
    return {"name": name, "namespace": ref.namespace, "labels": {**ref.labels, **(labels or {})}}


def secret(ref: ClusterRef, name: str, content: Mapping[str, str], kind: str = "Opaque") -> Object:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in content.items()}
    return {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata(ref, name), "data": data}


def selector(ref: ClusterRef) -> str:
    """The labels of the cluster's objects, to list them by."""
    return ",".join(f"{name}={value}" for name, value in ref.labels.items())


def node_set_name(resource_class: str) -> str:
    """The name of the object for nodes of that class, in characters that Kubernetes allows."""
    return resource_class.lower().replace("_", "-").replace(".", "-")


def resource_class_of(item: Object, class_label: str) -> str:
    return str((item["metadata"].get("labels") or {}).get(class_label) or "")


def condition_state_of(item: Object, kind: str) -> ConditionState | None:
    """The object's condition; None when it has no such condition."""
    for condition in (item.get("status") or {}).get("conditions") or []:
        if condition["type"] == kind:
            if is_outdated(item, condition):
                return ConditionState(UNKNOWN, "Outdated", f"{condition['status']} was reported for an older generation")
            return ConditionState(condition["status"], condition.get("reason") or "NoReason", condition.get("message") or "")
    return None


def is_true(item: Object, kind: str) -> bool:
    state = condition_state_of(item, kind)
    return state is not None and state.status == TRUE


def is_outdated(item: Object, status: Mapping[str, Any]) -> bool:
    """Whether a condition, or a whole status, is of an older generation of the object."""
    generation = item["metadata"].get("generation", 0)
    return bool(status.get("observedGeneration", generation) != generation)


def is_deleting(item: Object) -> bool:
    return bool(item["metadata"].get("deletionTimestamp"))


def api_url(endpoint: Mapping[str, Any] | None) -> str:
    host, port = (endpoint or {}).get("host"), (endpoint or {}).get("port")
    if not host or not port:
        return ""
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
