# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Deletes clusters: first on the hub, then their reservations, then the record is all that remains."""

from __future__ import annotations

import contextlib

from ..kube.client import Kube
from ..kube.errors import NotFound
from .hub_store import HubStore
from .kinds import FINALIZER
from .lifetime import Expiry
from .model import FleetCluster
from .observe import ObservedFleet
from .quota_store import QuotaStore
from .records import write_record


class Deletion:
    """Advances deletions step by step. Each step is repeated safely."""

    def __init__(self, home: Kube, quotas: QuotaStore) -> None:
        self._home = home
        self._quotas = quotas
        self._hubs = HubStore(home)

    def advance(self, cluster: FleetCluster, fleet: ObservedFleet, expiry: Expiry | None) -> bool:
        """The next step. True when the hub has nothing of the cluster any more and its reservations are released."""
        assignment = fleet.assignments.get(cluster.uid)
        if assignment is not None:
            if "deletionTimestamp" not in assignment.raw["metadata"]:
                self._home.delete(assignment.raw, checked=True)
            return False
        metadata = cluster.raw["metadata"]
        if FINALIZER not in metadata.get("finalizers", ()):
            return True
        rooms = {name: hub.reservations[cluster.uid] for name, hub in fleet.hubs.items() if cluster.uid in hub.reservations}
        write_record(self._home, cluster, rooms.get(cluster.hub), expiry, fleet.now)
        for name in rooms:
            self._release(name, cluster.uid)
        self._quotas.release(cluster.namespace, [cluster.uid])
        kept = [name for name in metadata["finalizers"] if name != FINALIZER]
        self._home.patch(cluster.raw, {"metadata": {"finalizers": kept}})
        return True

    def _release(self, hub: str, uid: str) -> None:
        with contextlib.suppress(NotFound):  # the hub was removed from the fleet
            self._hubs.release(hub, [uid])
