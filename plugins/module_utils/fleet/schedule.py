# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Chooses a hub for a cluster: filters, weighted scores, ties by hash, and an explanation. Pure; `binder` reserves and binds.

The explanation is the same for the same hubs in any order, and has no number that changes by itself, so that a status with it is written
only when something changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Optional

from ..kube.label_selector import matches
from .model import FleetCluster, Hub, short_template

HUB_TIMEOUT = timedelta(minutes=3)  # six reports of an agent
REGION_LABEL = "topology.kubernetes.io/region"
FULL_SCORE = 100


@dataclass(frozen=True)
class Request:
    """A cluster that needs a hub, the labels of its tenant's namespace, the time, and how old the last heartbeat of a hub may be."""

    cluster: FleetCluster
    tenant_labels: Mapping[str, str]
    now: datetime
    hub_timeout: timedelta = HUB_TIMEOUT


@dataclass(frozen=True)
class FilterResult:
    """Why a hub does not fit. Hubs with the same `text` are counted; `available` of `wanted` is reported for the best of them."""

    text: str
    available: int | None = None
    wanted: int = 0
    since: datetime | None = None

    def __str__(self) -> str:
        return f"{self.text}{_details([self])}"


@dataclass(frozen=True)
class Weights:
    """How much each score counts."""

    headroom: int = 1
    spread: int = 1
    affinity: int = 2
    region: int = 2


@dataclass(frozen=True)
class Choice:
    """The chosen hub, empty if none fits, the explanation, and the weighted scores of the hubs that fit."""

    hub: str
    explanation: str
    scores: Mapping[str, int] = field(default_factory=dict)


# Filters: each returns what is in the way, or None. A hub counts for the first filter that it does not pass.

Filter = Callable[[Request, Hub], Optional[FilterResult]]  # noqa: UP045 - `|` is an operation for the pylint of ansible-test


def _requested_hub(request: Request, hub: Hub) -> FilterResult | None:
    wanted = request.cluster.placement.hub
    return FilterResult(f"not the requested hub {wanted}") if wanted and hub.name != wanted else None


def _schedulable(_request: Request, hub: Hub) -> FilterResult | None:
    return FilterResult("not schedulable") if not hub.schedulable or hub.is_deleting else None


def _ready(_request: Request, hub: Hub) -> FilterResult | None:
    return None if hub.ready else FilterResult("not ready")


def _heartbeat(request: Request, hub: Hub) -> FilterResult | None:
    if hub.heartbeat is None:
        return FilterResult("never reported")
    return FilterResult("not reporting", since=hub.heartbeat) if request.now - hub.heartbeat > request.hub_timeout else None


def _template(request: Request, hub: Hub) -> FilterResult | None:
    template = short_template(request.cluster.template)
    return None if template in hub.templates else FilterResult(f"without the template {template}")


def _tenant(request: Request, hub: Hub) -> FilterResult | None:
    return None if matches(request.tenant_labels, hub.tenant_selector) else FilterResult("not for this tenant")


def _selector(request: Request, hub: Hub) -> FilterResult | None:
    return None if matches(hub.labels, request.cluster.placement.selector) else FilterResult("not matched by the selector")


def _taints(request: Request, hub: Hub) -> FilterResult | None:
    tolerated = request.cluster.placement.tolerations
    for taint in sorted(hub.taints, key=str):
        if not any(each.key == taint.key and each.value in (None, taint.value) for each in tolerated):
            return FilterResult(f"with the taint {taint}")
    return None


def _region(request: Request, hub: Hub) -> FilterResult | None:
    wanted = request.cluster.placement.region
    return FilterResult(f"outside of the region {wanted}") if wanted and hub.region != wanted else None


# Reservations change none of these. The capacity on the hub is checked last, by `lacks_capacity`.
FILTERS: tuple[Filter, ...] = (_requested_hub, _schedulable, _heartbeat, _ready, _template, _tenant, _selector, _taints, _region)


class FilterResults:
    """The results of the filters at one moment, which clusters that ask for the same share.

    For thousands of clusters the filters are most of the work of their choices.
    """

    def __init__(self) -> None:
        self._filtered: dict[tuple[str, str, str], dict[str, FilterResult | None]] = {}

    def find(self, request: Request, hubs: Iterable[Hub]) -> dict[str, FilterResult | None]:
        """By the name of the hub; None for those that fit."""
        cluster = request.cluster
        filtered = self._filtered.setdefault((cluster.namespace, cluster.template, repr(cluster.placement)), {})
        found = {}
        for hub in hubs:
            if hub.name not in filtered:
                filtered[hub.name] = next((each for filter_ in FILTERS if (each := filter_(request, hub))), None)
            found[hub.name] = filtered[hub.name] or lacks_capacity(cluster, hub)
        return found


def lacks_capacity(cluster: FleetCluster, hub: Hub) -> FilterResult | None:
    """Why the hub has no capacity for the cluster. Capacity that the cluster has there already is its own."""
    return _lacks_nodes(cluster, hub) or _is_full(cluster, hub)


def _lacks_nodes(cluster: FleetCluster, hub: Hub) -> FilterResult | None:
    own = hub.reservations.get(cluster.uid)
    for resource_class, wanted in cluster.nodes.items():
        free = max(0, hub.free_nodes(resource_class, cluster.uid))
        if wanted > max(free, own.nodes.get(resource_class, 0) if own else 0):
            return FilterResult(f"with too few {resource_class}", free, wanted)
    return None


def _is_full(cluster: FleetCluster, hub: Hub) -> FilterResult | None:
    return None if cluster.uid in hub.reservations or hub.free_clusters() >= 1 else FilterResult("full")


# Scores: each from 0 to 100 for a hub that fits. `most` is how many clusters of the tenant one of the hubs that fit has
# at most.


def _headroom(request: Request, hub: Hub, _most: int) -> int:
    """What is left of the scarcest of its resources when the cluster is there."""
    uid = request.cluster.uid
    left = [(hub.free_clusters(uid) - 1) / max(hub.clusters, 1)]
    for name, wanted in request.cluster.nodes.items():
        left.append((hub.free_nodes(name, uid) - wanted) / max(hub.nodes.get(name, 0), 1))
    return max(0, round(FULL_SCORE * min(left)))


def _spread(request: Request, hub: Hub, most: int) -> int:
    """The fewer clusters of the tenant a hub has, the better: the loss of a hub then costs the tenant less."""
    return round(FULL_SCORE * (1 - _of_tenant(request, hub) / most)) if most else FULL_SCORE


def _affinity(_request: Request, hub: Hub, _most: int) -> int:
    """A hub that is dedicated, by its tenantSelector or a taint, comes before one that all tenants share."""
    return FULL_SCORE if hub.tenant_selector or hub.taints else 0


def _home_region(request: Request, hub: Hub, _most: int) -> int:
    """The region of the tenant's namespace, where the cluster does not require one."""
    region = request.tenant_labels.get(REGION_LABEL, "")
    return FULL_SCORE if region and hub.region == region else 0


def _of_tenant(request: Request, hub: Hub) -> int:
    own = request.cluster
    return hub.clusters_by_tenant.get(own.namespace, 0) - (own.uid in hub.reservations)


def most_of_tenant(request: Request, fitting: Iterable[Hub]) -> int:
    return max(_of_tenant(request, each) for each in fitting)


SCORES: Mapping[str, Callable[[Request, Hub, int], int]] = {
    "headroom": _headroom,
    "spread": _spread,
    "affinity": _affinity,
    "region": _home_region,
}


def score(request: Request, hub: Hub, most: int, weights: Weights) -> int:
    """The weighted sum of all scores."""
    return sum(getattr(weights, name) * function(request, hub, most) for name, function in SCORES.items())


def choose(request: Request, hubs: Iterable[Hub], weights: Weights | None = None, shared: FilterResults | None = None) -> Choice:
    """The best hub that fits. One that has capacity reserved for the cluster comes first: an earlier attempt chose it.

    Choices at one moment, among hubs that differ in their reservations only, can have `shared` results of the filters.
    """
    known = list(hubs)
    results = (shared or FilterResults()).find(request, known)
    fitting = [hub for hub in known if results[hub.name] is None]
    explained = _explained([found for found in results.values() if found])
    if not fitting:
        return Choice("", f"0 of {_counted(len(known))} fit{f': {explained}' if explained else ''}")
    uid, most, weights = request.cluster.uid, most_of_tenant(request, fitting), weights or Weights()
    scores = {hub.name: score(request, hub, most, weights) for hub in fitting}
    ranks = {hub.name: (uid in hub.reservations, scores[hub.name]) for hub in fitting}
    highest = max(ranks.values())
    best = max((hub for hub in fitting if ranks[hub.name] == highest), key=lambda hub: _tie_break(uid, hub.name))
    others = f"; the others: {explained}" if explained else ""
    return Choice(
        best.name,
        f"{best.name} has the best score, {scores[best.name]}; {len(fitting)} of {_counted(len(known))} fit{others}",
        scores,
    )


def _tie_break(uid: str, hub: str) -> str:
    """Spreads clusters over hubs with equal scores, and is the same for each process."""
    return hashlib.sha256(f"{uid}/{hub}".encode()).hexdigest()


def _counted(hubs: int) -> str:
    return f"{hubs} hub{'' if hubs == 1 else 's'}"


def _explained(results: Sequence[FilterResult]) -> str:
    """The reasons with the number of hubs, the most frequent first."""
    groups: dict[str, list[FilterResult]] = {}
    for each in results:
        groups.setdefault(each.text, []).append(each)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return ", ".join(f"{len(group)} {text}{_details(group)}" for text, group in ordered)


def _details(group: Sequence[FilterResult]) -> str:
    """The most nodes that one of the hubs has, or since when none of them has reported."""
    available = [each.available for each in group if each.available is not None]
    if available:
        return f" (best {max(available)} of {group[0].wanted})"
    since = [each.since for each in group if each.since]
    return f" since {max(since):%Y-%m-%d %H:%M}" if since else ""
