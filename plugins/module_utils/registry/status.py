# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The status of a registry after a health check of its clusters. It sends no requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from ..common.text import shortened
from ..common.timestamps import format_time
from ..common.types import Object
from .health import HEALTHY, ClusterHealth
from .model import REGISTRY, ClusterRegistry

# A status that differs only in lastSeen is written once in this time.
LAST_SEEN_INTERVAL = timedelta(minutes=1)
SUMMARY_LIMIT = 32768


def next_status(
    registry: ClusterRegistry, checked: Mapping[str, ClusterHealth], now: datetime, interval: timedelta = LAST_SEEN_INTERVAL
) -> Object:
    """The status after a check. A cluster that did not answer keeps its last known version and lastSeen.

    One that did gets a new lastSeen after `interval`.
    """
    health: dict[str, ClusterHealth] = {}
    for cluster in registry.clusters:
        before, new = registry.health.get(cluster.name), checked.get(cluster.name)
        if new is None:  # registered during the check
            if before is not None:
                health[cluster.name] = before
            continue
        last_seen = before.last_seen if before else None
        if new.reachable and (last_seen is None or not timedelta(0) <= now - last_seen < interval):
            last_seen = now
        health[cluster.name] = replace(new, last_seen=last_seen, version=new.version or (before.version if before else ""))
    status: Object = {
        "conditions": [_condition(registry, health, now)],
        "clusters": [entry.to_status(name) for name, entry in health.items()],
    }
    if registry.kind == REGISTRY:
        generation = registry.raw["metadata"]["generation"]
        status["observedGeneration"] = status["conditions"][0]["observedGeneration"] = generation
    return status


def without_times(status: Mapping[str, Any]) -> Object:
    """A status without lastSeen: the part that counts as a change and that a diff shows."""
    clusters = [{key: value for key, value in entry.items() if key != "lastSeen"} for entry in status.get("clusters", [])]
    return dict(status) | {"clusters": clusters}


def _condition(registry: ClusterRegistry, health: Mapping[str, ClusterHealth], now: datetime) -> Object:
    by_reason: dict[str, list[str]] = {}
    for name, entry in health.items():
        if entry.reason != HEALTHY:
            by_reason.setdefault(entry.reason, []).append(name)
    healthy = sum(entry.healthy for entry in health.values())
    status = "True" if healthy == len(registry.clusters) else "False"
    parts = [f"{healthy} of {len(registry.clusters)} healthy", *(f"{reason}: {', '.join(names)}" for reason, names in by_reason.items())]
    before: Object = next((item for item in registry.status.get("conditions", []) if item.get("type") == HEALTHY), {})
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": HEALTHY,
        "status": status,
        "reason": "AllHealthy" if status == "True" else "SomeUnhealthy",
        "message": shortened("; ".join(parts), SUMMARY_LIMIT),
        "lastTransitionTime": since or format_time(now),
    }
