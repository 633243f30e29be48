"""Counts of clusters by what they have in common, and the clusters that need attention. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.fleet.model import DEGRADED, FAILED, PENDING

MOST_VALUES, MOST_FAILING, LONGEST_MESSAGE = 100, 50, 1000
NO_TIME = "9999"  # orders what has no time after everything else
BENIGN = ("Expiring", "Deleting", "Upgrading", "Progressing")  # of which False is the good status


def summary(items: Iterable[Object]) -> dict[str, Any]:
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("states", "versions", "hubs", "tenants", "templates")}
    failing: list[dict[str, Any]] = []
    clusters = nodes = 0
    for item in items:
        spec, status = item["spec"], item.get("status") or {}
        clusters += 1
        nodes += sum(int(each["size"]) for each in (spec.get("nodeSets") or {}).values())
        counts["states"][status.get("state") or PENDING] += 1
        counts["tenants"][item["metadata"]["namespace"]] += 1
        counts["templates"][spec["template"]] += 1
        for name, value in (("versions", status.get("version")), ("hubs", status.get("hub"))):
            if value:
                counts[name][value] += 1
        if is_failing(item):
            failing.append(_attention(item))
    failing.sort(key=lambda each: (each.get("since", NO_TIME), each["tenant"], each["name"]))
    shown = {name: [{"value": value, "clusters": count} for value, count in _most(each)] for name, each in counts.items()}
    return {"clusters": clusters, "nodes": nodes, **shown, "failing": len(failing), "attention": failing[:MOST_FAILING]}


def is_failing(item: Object) -> bool:
    """Whether the cluster needs attention. One that waits for quota or a hub has a refused condition, and counts too."""
    status = item.get("status") or {}
    if status.get("state") in (FAILED, DEGRADED):
        return True
    refused = ("QuotaReserved", "Scheduled", "SecretsAvailable", "HubReporting")
    return any(each["status"] == "False" and each["type"] in refused for each in status.get("conditions") or ())


def _attention(item: Object) -> dict[str, Any]:
    metadata, status = item["metadata"], item.get("status") or {}
    failed = [each for each in status.get("conditions") or () if each["status"] == "False" and each["type"] not in BENIGN]
    first: Object = min(failed, key=lambda each: str(each["lastTransitionTime"]), default={})
    cause = status.get("failure") or first
    shown = {
        "id": metadata["uid"],
        "name": metadata["name"],
        "tenant": metadata["namespace"],
        "state": status.get("state") or PENDING,
        "hub": status.get("hub"),
        "since": first.get("lastTransitionTime"),
        "reason": cause.get("reason"),
        "message": str(cause.get("message") or "")[:LONGEST_MESSAGE],
    }
    return {name: value for name, value in shown.items() if value}


def _most(counter: Counter[str]) -> list[tuple[str, int]]:
    """The most frequent values; of equal ones in the order of their names."""
    return sorted(counter.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST_VALUES]
