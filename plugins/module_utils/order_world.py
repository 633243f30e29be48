# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What HostedClusters and NodePools say of themselves, read carefully. It knows nothing of orders and talks to nobody.

A condition counts only when it is of its object's current generation, or doesn't say of which: an older one is an answer to a
question that nobody asks any more, and reads as Unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
NODE_CONDITIONS = ("Ready", "AllMachinesReady", "AllNodesHealthy")


@dataclass(frozen=True)
class World:
    """What is there for one order."""

    hosted_cluster: Object | None = None
    node_pools: Sequence[Object] = ()
    namespace_exists: bool = False


@dataclass(frozen=True)
class Verdict:
    """Whether something holds, and why."""

    status: str
    reason: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.status} ({self.reason}): {self.message}" if self.message else f"{self.status} ({self.reason})"


@dataclass(frozen=True)
class Pool:
    """A NodePool. `asked` is None where an autoscaler decides; `reported` nodes are of an older spec where it is `outdated`."""

    resource_class: str
    asked: int | None
    reported: int
    outdated: bool
    updating: bool
    going: bool


def verdict_of(item: Object, kind: str) -> Verdict | None:
    """What the object's condition says; None when it has no such condition."""
    for condition in (item.get("status") or {}).get("conditions") or []:
        if condition["type"] == kind:
            if _is_outdated(item, condition):
                return Verdict(UNKNOWN, "Outdated", f"The last answer, {condition['status']}, is about an older generation")
            return Verdict(condition["status"], condition.get("reason") or "NoReason", condition.get("message") or "")
    return None


def is_true(item: Object, kind: str) -> bool:
    verdict = verdict_of(item, kind)
    return verdict is not None and verdict.status == TRUE


def is_going(item: Object | None) -> bool:
    """Whether the object is being deleted. It can't be brought back, only made anew once it is gone."""
    return bool(item and item["metadata"].get("deletionTimestamp"))


def pools_of(node_pools: Iterable[Object], class_label: str) -> list[Pool]:
    """The NodePools that carry a resource class. One without is nobody's order, so it is neither counted nor missed."""
    pools = []
    for item in node_pools:
        resource_class = (item["metadata"].get("labels") or {}).get(class_label)
        if resource_class:
            pools.append(_pool(item, resource_class))
    return pools


def has_been_installed(hosted_cluster: Object) -> bool:
    """Whether some release was rolled out completely, as after the first installation and ever since."""
    return any(release.get("state") == "Completed" for release in _history(hosted_cluster))


def is_updating(hosted_cluster: Object, pools: Iterable[Pool]) -> bool:
    """Whether a release or a configuration is being rolled out, on the control plane or on nodes."""
    history = _history(hosted_cluster)
    rolling = is_true(hosted_cluster, "Progressing") or (bool(history) and history[0].get("state") != "Completed")
    return rolling or any(pool.updating for pool in pools)


def api_url(hosted_cluster: Object) -> str:
    endpoint = (hosted_cluster.get("status") or {}).get("controlPlaneEndpoint") or {}
    host, port = endpoint.get("host"), endpoint.get("port")
    if not host or not port:
        return ""
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def console_url(hosted_cluster: Object) -> str:
    """Where OpenShift puts its console: under the base domain, behind a prefix that is the cluster's name unless set, even to nothing."""
    dns = (hosted_cluster.get("spec") or {}).get("dns") or {}
    if not dns.get("baseDomain"):
        return ""
    prefix = dns.get("baseDomainPrefix", hosted_cluster["metadata"]["name"])
    return "https://" + ".".join(part for part in ("console-openshift-console.apps", prefix, dns["baseDomain"]) if part)


def _history(hosted_cluster: Object) -> list[Object]:
    """The releases, newest first."""
    return ((hosted_cluster.get("status") or {}).get("version") or {}).get("history") or []


def _pool(item: Object, resource_class: str) -> Pool:
    spec, status = item.get("spec") or {}, item.get("status") or {}
    conditions = status.get("conditions") or []
    return Pool(
        resource_class=resource_class,
        asked=None if spec.get("autoScaling") else spec.get("replicas") or 0,
        reported=status.get("replicas") or 0,
        outdated=any(_is_outdated(item, condition) for condition in conditions if condition["type"] in NODE_CONDITIONS),
        updating=is_true(item, "UpdatingVersion") or is_true(item, "UpdatingConfig"),
        going=is_going(item),
    )


def _is_outdated(item: Object, condition: Object) -> bool:
    generation = item["metadata"].get("generation", 0)
    return bool(condition.get("observedGeneration", generation) != generation)
