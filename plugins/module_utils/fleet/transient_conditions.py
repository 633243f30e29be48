# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Conditions of a cluster that exist only while they matter: its end is near, a Secret is missing, its hub does not report. Pure."""

from __future__ import annotations

from ..common.timestamps import format_time
from ..providers.model import FALSE, TRUE, ConditionState
from .lifetime import Expiry
from .model import FleetCluster
from .observe import ObservedFleet
from .secret_copies import has_references, problem_of
from .status import EXPIRING, HUB_REPORTING, SECRETS_AVAILABLE


def transient_conditions(cluster: FleetCluster, fleet: ObservedFleet, near: Expiry | None) -> dict[str, ConditionState]:
    """`near` is the end of the cluster, if it is near."""
    found = {
        SECRETS_AVAILABLE: _secrets(cluster, fleet),
        EXPIRING: ConditionState(TRUE, near.reason, near.message) if near else None,
        HUB_REPORTING: _hub(cluster, fleet),
    }
    return {name: state for name, state in found.items() if state}


def lacks_secrets(cluster: FleetCluster, fleet: ObservedFleet) -> bool:
    return bool(problem_of(cluster, fleet.secrets))


def _secrets(cluster: FleetCluster, fleet: ObservedFleet) -> ConditionState | None:
    if problem := problem_of(cluster, fleet.secrets):
        return ConditionState(FALSE, "SecretMissing", problem)
    return ConditionState(TRUE, "Available") if has_references(cluster) else None


def _hub(cluster: FleetCluster, fleet: ObservedFleet) -> ConditionState | None:
    if not cluster.hub:
        return None
    hub = fleet.hubs.get(cluster.hub)
    if hub is None:
        return ConditionState(FALSE, "HubMissing", f"The hub {cluster.hub} does not belong to the fleet any more")
    if hub.heartbeat is None or fleet.now - hub.heartbeat <= fleet.hub_timeout:
        return None
    since = format_time(hub.heartbeat)
    message = f"The hub {cluster.hub} has not reported since {since}: what is shown may be out of date"
    return ConditionState(FALSE, "HubNotReporting", message)
