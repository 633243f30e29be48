# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Hosts that went missing since the last run of their order, for a sync of many orders: three reads for all of them."""

from __future__ import annotations

from collections.abc import Iterable

from ..infrastructure.agent_hosts import AgentLabels, lost_agents
from ..infrastructure.site_settings import read_site_settings
from ..kube.client import Kube
from ..kube.errors import KubeError
from .infrastructure import parts_of
from .model import ClusterOrder, Names, config_version
from .outcome import Outcome, PartReport

PART = "hosts"


def lost_hosts(kube: Kube, names: Names, orders: Iterable[ClusterOrder]) -> dict[str, Outcome]:
    """What to report of orders that have lost a host, by the uid of the order. Nothing is read where no order has claimed hosts.

    An order that reports missing hosts already is left to its next run, which is due.
    """
    affected = {order.uid: order for order in orders if not order.is_deleting and _has_hosts(order)}
    if not affected:
        return {}
    try:
        namespace = read_site_settings(kube, names.site_namespace, secrets=False).agent_namespace
        lost = lost_agents(kube, names.site_namespace, namespace, AgentLabels(names.group)) if namespace else {}
    except KubeError:  # reported by every run; the status of the orders is worth more
        return {}
    return {
        uid: Outcome("provision", config_version(affected[uid]), infrastructure={PART: PartReport(False, "HostMissing", message)})
        for uid, message in lost.items()
        if uid in affected
    }


def _has_hosts(order: ClusterOrder) -> bool:
    return any(part.name == PART and part.report.ready for part in parts_of(order))
