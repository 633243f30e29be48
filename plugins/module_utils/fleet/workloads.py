# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The workloads of a cluster with their health, in a bounded form. Pure; the agent of a hub writes it, the facade of the fleet reads it.

Both ends distrust what they read: a cluster belongs to its tenant, and a hub may be old or broken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..common.text import shortened
from ..common.types import Object
from ..gitops.conditions import WAITING_REASON

MOST = 200
NAME_LIMIT, MESSAGE_LIMIT = 253, 500
HEALTHY, PROGRESSING, FAILED, SUSPENDED = "Healthy", "Progressing", "Failed", "Suspended"
HEALTHS = (FAILED, PROGRESSING, SUSPENDED, HEALTHY)  # in the order of a list: what needs attention first


@dataclass(frozen=True)
class Workload:
    """A workload. `ready` is how many of its replicas are, such as 1/2."""

    kind: str
    namespace: str
    name: str
    health: str
    ready: str = ""
    message: str = ""


def workload_of(item: Object) -> Workload:
    """The workload of an object of one of the KINDS."""
    metadata = item["metadata"]
    health, ready, message = KINDS[item["apiVersion"], item["kind"]](item)
    namespace, name = (shortened(str(metadata.get(key) or ""), NAME_LIMIT) for key in ("namespace", "name"))
    return Workload(item["kind"], namespace, name, health, ready, shortened(message, MESSAGE_LIMIT))


def to_json(workloads: Iterable[Workload]) -> str:
    """The first of them, those that need attention before others, and whether there are more."""
    found = sorted(workloads, key=lambda each: (HEALTHS.index(each.health), each.kind, each.namespace, each.name))
    return json.dumps({"items": [asdict(each) for each in found[:MOST]], "truncated": len(found) > MOST}, separators=(",", ":"))


def from_json(text: str) -> dict[str, Any]:
    """What `to_json` wrote, as plain data; ValueError for anything else."""
    try:
        content = json.loads(text)
        items = [_checked(each) for each in content["items"][:MOST]]
        return {"items": items, "truncated": bool(content.get("truncated")) or len(content["items"]) > MOST}
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("The workloads cannot be read.") from error


def _checked(item: Mapping[str, Any]) -> dict[str, str]:
    kept = {
        name: shortened(str(item.get(name) or ""), MESSAGE_LIMIT) for name in ("kind", "namespace", "name", "health", "ready", "message")
    }
    if kept["health"] not in HEALTHS:
        raise ValueError("The health of a workload is not known.")
    return kept


def _deployment(item: Object) -> tuple[str, str, str]:
    status = _mapping(item, "status")
    ready, wanted, is_current = _replicas(item, "availableReplicas")
    is_rolled_out = is_current and _count(status, "updatedReplicas") >= wanted
    failed = next((each for each in _conditions(item) if each.get("reason") == "ProgressDeadlineExceeded"), None)
    return _health(ready >= wanted and is_rolled_out, failed), f"{ready}/{wanted}", str((failed or {}).get("message") or "")


def _stateful_set(item: Object) -> tuple[str, str, str]:
    status = _mapping(item, "status")
    ready, wanted, is_current = _replicas(item, "readyReplicas")
    is_rolled_out = is_current and status.get("currentRevision") == status.get("updateRevision")
    return _health(ready >= wanted and is_rolled_out, None), f"{ready}/{wanted}", ""


def _flux(item: Object) -> tuple[str, str, str]:
    """An object of Flux, which reports Ready for a generation. One that waits for another object has not failed."""
    if _mapping(item, "spec").get("suspend") is True:
        return SUSPENDED, "", "Suspended"
    found: Object = next((each for each in _conditions(item) if each.get("type") == "Ready"), {})
    generation = item["metadata"].get("generation")
    is_current = _mapping(item, "status").get("observedGeneration") == generation
    # Flux counts a generation as observed only after a success, so a failure has that of its condition.
    is_of_now = found.get("observedGeneration", generation) == generation
    failed = found if found.get("status") == "False" and is_of_now and found.get("reason") != WAITING_REASON else None
    return _health(found.get("status") == "True" and is_current, failed), "", str(found.get("message") or "")


def _health(is_healthy: bool, failed: Object | None) -> str:
    return FAILED if failed else HEALTHY if is_healthy else PROGRESSING


def _replicas(item: Object, field: str) -> tuple[int, int, bool]:
    """How many are ready and wanted, and whether the controller has observed the present spec."""
    status = _mapping(item, "status")
    is_current = _count(status, "observedGeneration") >= _count(item["metadata"], "generation")
    return _count(status, field), _count(_mapping(item, "spec"), "replicas", 1), is_current


def _count(content: Mapping[str, Any], name: str, default: int = 0) -> int:
    value = content.get(name, default)
    return value if isinstance(value, int) else default


def _conditions(item: Object) -> list[Object]:
    found = _mapping(item, "status").get("conditions")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _mapping(item: Object, name: str) -> Object:
    """A tenant may define kinds of these names, whose objects have anything there."""
    value = item.get(name)
    return value if isinstance(value, dict) else {}


KINDS: Mapping[tuple[str, str], Callable[[Object], tuple[str, str, str]]] = {
    ("apps/v1", "Deployment"): _deployment,
    ("apps/v1", "StatefulSet"): _stateful_set,
    ("helm.toolkit.fluxcd.io/v2", "HelmRelease"): _flux,
    ("kustomize.toolkit.fluxcd.io/v1", "Kustomization"): _flux,
}
