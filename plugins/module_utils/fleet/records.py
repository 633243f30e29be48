# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What remains of a deleted cluster: a ClusterRecord in the namespace of its tenant."""

from __future__ import annotations

from datetime import datetime

from ..common.timestamps import format_time, parse_time
from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Conflict, NamespaceTerminating
from .kinds import API_VERSION, CREATED_BY, RECORD
from .lifetime import Expiry
from .model import FleetCluster, HubReservation


def record_of(cluster: FleetCluster, reservation: HubReservation | None, expiry: Expiry | None, now: datetime) -> Object:
    """The record of a cluster that is deleted now. Parameters of the template are not in it: they may contain secrets."""
    metadata, spec, status = cluster.raw["metadata"], cluster.raw["spec"], cluster.raw.get("status") or {}
    requested = parse_time(metadata.get("deletionTimestamp")) or now
    optional = {
        "owner": (metadata.get("annotations") or {}).get(CREATED_BY),
        "hub": cluster.hub,
        "state": status.get("lastState") or status.get("state"),
        "version": status.get("version"),
        "nodeSets": spec.get("nodeSets"),
        "nodeHours": reservation.hours_until(now) if reservation else None,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": RECORD,
        "metadata": {"name": cluster.uid, "namespace": cluster.namespace},
        "spec": {
            "name": cluster.name,
            "uid": cluster.uid,
            "template": cluster.template,
            "created": format_time(cluster.created),
            "deleted": format_time(now),
            "reason": expiry.reason if expiry and requested >= expiry.at else "Deleted",
            **{name: value for name, value in optional.items() if value},
        },
    }


def write_record(home: Kube, cluster: FleetCluster, reservation: HubReservation | None, expiry: Expiry | None, now: datetime) -> None:
    """Write the record, unless an interrupted deletion has."""
    try:
        home.create(record_of(cluster, reservation, expiry, now))
    except Conflict:
        pass
    except NamespaceTerminating:
        pass  # the tenant itself is deleted, and its records with it
