# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""When a cluster of a tenant has to be deleted, and when the tenant is warned. Pure; `reconcile` acts on it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from ..common.timestamps import format_time
from .model import FleetCluster
from .quota import Limits

WARN_BEFORE = timedelta(days=1)
WARN_SHARE = 0.25  # of a lifetime that is shorter than four days

Reason = Literal["Expired", "Denied"]


@dataclass(frozen=True)
class Expiry:
    """When a cluster ends, and why."""

    at: datetime
    reason: Reason
    source: str

    @property
    def message(self) -> str:
        return f"The cluster is deleted at {format_time(self.at)}: {self.source}"


def expiry_of(cluster: FleetCluster, limits: Limits) -> Expiry | None:
    """The earliest end of the cluster; None if it has none."""
    ends = []
    if cluster.expires_at:
        ends.append(Expiry(cluster.expires_at, "Expired", "its expiresAt"))
    if limits.max_lifetime:
        ends.append(Expiry(cluster.created + limits.max_lifetime, "Expired", "the maxLifetime of the quota"))
    if limits.denied and limits.denied.delete_after:
        ends.append(Expiry(limits.denied.delete_after, "Denied", f"the tenant is denied, {limits.denied.reason}"))
    return min(ends, key=lambda each: each.at, default=None)


def is_expired(expiry: Expiry | None, now: datetime) -> bool:
    return expiry is not None and now >= expiry.at


def warned_from(expiry: Expiry, cluster: FleetCluster) -> datetime:
    """When the end is near: a day before, or in the last quarter of a short life."""
    return expiry.at - min(WARN_BEFORE, WARN_SHARE * (expiry.at - cluster.created))


def is_warned(expiry: Expiry | None, cluster: FleetCluster, now: datetime) -> bool:
    return expiry is not None and now >= warned_from(expiry, cluster)
