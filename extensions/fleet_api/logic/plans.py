"""What would become of a cluster: a dry run of its validation, its quota and its placement, with the explanations. Nothing is reserved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ....plugins.module_utils.common.timestamps import format_time
from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.fleet.lifetime import expiry_of
from ....plugins.module_utils.fleet.model import FleetCluster, FleetQuota, Hub
from ....plugins.module_utils.fleet.quota import admit, claim_of, limits_of, used
from ....plugins.module_utils.fleet.schedule import HUB_TIMEOUT, Request, Weights, choose


@dataclass(frozen=True)
class Site:
    """What a plan is made from: the quotas of the tenant and of the site, the hubs, the labels of the tenant, the time, the scheduling."""

    quota: FleetQuota | None
    default: FleetQuota | None
    hubs: tuple[Hub, ...]
    tenant_labels: Mapping[str, str]
    now: datetime
    hub_timeout: timedelta = HUB_TIMEOUT
    weights: Weights = field(default_factory=Weights)


def plan(item: Object, site: Site) -> dict[str, Any]:
    """`fits` is true if the cluster would get quota and a hub now."""
    cluster = FleetCluster.from_object(item)
    limits, reservations = limits_of(site.quota, site.default), site.quota.reservations if site.quota else {}
    claim = claim_of(cluster)
    refusal = admit(limits, reservations, [claim]).refused.get(cluster.uid)
    choice = choose(Request(cluster, site.tenant_labels, site.now, site.hub_timeout), site.hubs, site.weights)
    expiry = expiry_of(cluster, limits)
    return {
        "fits": refusal is None and bool(choice.hub),
        "quota": {
            "fits": refusal is None,
            "reason": refusal.reason if refusal else "QuotaAvailable",
            "message": refusal.message if refusal else "The quota has capacity for the cluster.",
            "needed": dict(claim.amounts),
            "used": used(reservations),
            "hard": dict(limits.hard or {}),
        },
        "scheduling": {"fits": bool(choice.hub), "message": choice.explanation, **({"hub": choice.hub} if choice.hub else {})},
        **({"expires": format_time(expiry.at)} if expiry else {}),
    }


def quota_view(tenant: str, quota: FleetQuota | None, default: FleetQuota | None) -> dict[str, Any]:
    """The quota of a tenant: its limits, or the site's where it has none of its own, and what is used."""
    limits = limits_of(quota, default)
    lifetime = next((each.raw["spec"]["maxLifetime"] for each in (quota, default) if each and each.max_lifetime), None)
    denied = {"reason": limits.denied.reason} if limits.denied else None
    if denied and limits.denied and limits.denied.delete_after:
        denied["deleteAfter"] = format_time(limits.denied.delete_after)
    return {
        "id": tenant,
        "tenant": tenant,
        "limited": limits.hard is not None,
        "hard": dict(limits.hard or {}),
        "used": used(quota.reservations) if quota else {},
        **({"maxLifetime": lifetime} if lifetime else {}),
        **({"denied": denied} if denied else {}),
    }


def parsed_quota(item: Object | None) -> FleetQuota | None:
    return FleetQuota.from_object(item) if item else None


def parsed_hubs(items: Iterable[Object]) -> tuple[Hub, ...]:
    return tuple(Hub.from_object(item) for item in items)
