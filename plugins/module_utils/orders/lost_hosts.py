# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Hosts that went missing since the last run of their order: three reads for one order or for all of them."""

from __future__ import annotations

from collections.abc import Iterable

from ..common.types import Object
from ..infrastructure.agent_hosts import AgentLabels, lost_agents
from ..infrastructure.site_settings import read_site_settings
from ..kube.client import Kube
from .infrastructure import parts_of
from .model import ClusterOrder, Names, config_version
from .outcome import Outcome, PartReport

PART = "hosts"


def lost_hosts(kube: Kube, names: Names, orders: Iterable[ClusterOrder]) -> dict[str, Outcome]:
    """What to report of orders that have lost a host, by the uid of the order. Nothing is read where no order has claimed hosts.

    An order that reports missing hosts already is left to its next run, which is due.
    """
    affected = {order.uid: order for order in orders if has_ready_hosts(order)}
    if not affected:
        return {}
    namespace = inventory_namespace(kube, names)
    key = next(iter(affected)) if len(affected) == 1 else ""
    lost = lost_agents(kube, names.site_namespace, namespace, AgentLabels(names.group), key) if namespace else {}
    return {
        uid: Outcome("provision", config_version(affected[uid]), infrastructure={PART: PartReport(False, "HostMissing", message)})
        for uid, message in lost.items()
        if uid in affected
    }


def inventory_namespace(kube: Kube, names: Names) -> str:
    """The namespace of the site's Agents; empty where it has none."""
    return read_site_settings(kube, names.site_namespace, secrets=False).agent_namespace


def has_ready_hosts(order: ClusterOrder) -> bool:
    return not order.is_deleting and any(part.name == PART and part.report.ready for part in parts_of(order))


def reports_hosts(item: Object) -> bool:
    """Whether the status of a ClusterOrder has the part at all, whatever it says."""
    parts = (item.get("status") or {}).get("infrastructure") or []
    return any(part.get("part") == PART for part in parts)
