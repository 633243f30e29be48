# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Deletes clusters: first on the hub, then their reservations, then the record is all that remains."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..kube.client import Kube
from ..kube.errors import KubeError, NotFound
from .hub_store import HubStore
from .kinds import API_VERSION, ASSIGNMENT, FINALIZER, HUB, hub_namespace
from .lifetime import Expiry
from .model import FleetCluster, Hub, HubReservation
from .observe import ObservedFleet
from .quota_store import QuotaStore
from .records import write_record
from .secret_copies import SecretCopies, has_references
from .status import SECRETS_AVAILABLE


class Deletion:
    """Advances deletions step by step. Each step is repeated safely, and one write for each hub and each quota is for all clusters."""

    def __init__(self, home: Kube, quotas: QuotaStore) -> None:
        self._home = home
        self._quotas = quotas
        self._hubs = HubStore(home)
        self._copies = SecretCopies(home)

    def advance(self, clusters: Sequence[FleetCluster], fleet: ObservedFleet, ends: Mapping[str, Expiry]) -> dict[str, bool | KubeError]:
        """The next steps. By uid: True when the hub has nothing of the cluster any more and its reservations are released."""
        results: dict[str, bool | KubeError] = {}

        def step(work: Callable[[FleetCluster], bool], todo: Iterable[FleetCluster]) -> list[FleetCluster]:
            """Those for which the work returned True; what became of the others is their result."""
            given = list(todo)
            for cluster, result in zip(given, self._home.in_parallel(work, given), strict=True):
                if result is not True:
                    results[cluster.uid] = result
            return [each for each in given if each.uid not in results]

        gone = step(lambda each: self._is_deleted_on_its_hub(each, fleet), clusters)
        kept = [each for each in gone if FINALIZER in each.raw["metadata"].get("finalizers", ())]
        recorded = step(lambda each: self._record(each, fleet, ends.get(each.uid)), kept)
        released = self._release(recorded, fleet, results)
        step(self._let_go, released)
        return results | {each.uid: True for each in gone if each.uid not in results}

    def _is_deleted_on_its_hub(self, cluster: FleetCluster, fleet: ObservedFleet) -> bool:
        """Asks the hub to delete it, if it was not asked. A cache may lack an assignment, so its absence is read."""
        known = fleet.assignments.get(cluster.uid)
        item = known.raw if known else None
        if item is None and cluster.hub:
            item = self._home.find(API_VERSION, ASSIGNMENT, cluster.uid, hub_namespace(cluster.hub))
        if item is None:
            return True
        if "deletionTimestamp" not in item["metadata"]:
            self._home.delete(item, checked=True)
        return False

    def _record(self, cluster: FleetCluster, fleet: ObservedFleet, expiry: Expiry | None) -> bool:
        known = (cluster.raw.get("status") or {}).get("conditions") or ()
        if cluster.hub and (has_references(cluster) or any(each["type"] == SECRETS_AVAILABLE for each in known)):
            self._copies.delete(cluster.uid, cluster.hub)
        write_record(self._home, cluster, self._reservation(cluster, fleet), expiry, fleet.now)
        return True

    def _reservation(self, cluster: FleetCluster, fleet: ObservedFleet) -> HubReservation | None:
        """The reservation of the cluster on its hub, with its node hours. A cache may lack it if the answer to its write was lost."""
        hub = fleet.hubs.get(cluster.hub)
        reservation = hub.reservations.get(cluster.uid) if hub else None
        if reservation or not cluster.hub:
            return reservation
        item = self._home.find(API_VERSION, HUB, cluster.hub)
        return Hub.from_object(item).reservations.get(cluster.uid) if item else None

    def _release(self, clusters: Sequence[FleetCluster], fleet: ObservedFleet, results: dict[str, bool | KubeError]) -> list[FleetCluster]:
        """One write for each hub, then one for each quota. Returns the clusters for which all of them succeeded."""
        by_hub: dict[str, list[str]] = {}
        for cluster in clusters:
            others = {name for name, hub in fleet.hubs.items() if cluster.uid in hub.reservations}
            for name in sorted(others | ({cluster.hub} if cluster.hub else set())):
                by_hub.setdefault(name, []).append(cluster.uid)
        self._each(by_hub, lambda name: self._release_capacity(name, by_hub[name]), results)
        by_tenant: dict[str, list[str]] = {}
        for cluster in clusters:
            if cluster.uid not in results:
                by_tenant.setdefault(cluster.namespace, []).append(cluster.uid)
        self._each(by_tenant, lambda namespace: self._quotas.release(namespace, by_tenant[namespace]), results)
        return [each for each in clusters if each.uid not in results]

    def _each(self, groups: Mapping[str, list[str]], work: Callable[[str], None], results: dict[str, bool | KubeError]) -> None:
        for uids, result in zip(groups.values(), self._home.in_parallel(work, groups), strict=True):
            if isinstance(result, KubeError):
                results.update(dict.fromkeys(uids, result))

    def _release_capacity(self, hub: str, uids: Sequence[str]) -> None:
        with contextlib.suppress(NotFound):  # the hub was removed from the fleet
            self._hubs.release(hub, uids)

    def _let_go(self, cluster: FleetCluster) -> bool:
        kept = [name for name in cluster.raw["metadata"]["finalizers"] if name != FINALIZER]
        with contextlib.suppress(NotFound):  # another process did
            self._home.patch(cluster.raw, {"metadata": {"finalizers": kept}})
        return True
