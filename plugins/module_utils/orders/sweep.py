# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reports what orders have left behind on a hub, and removes it after a grace time where the site says so. `orphans` finds it.

A working namespace is removed as with its order: under the order's lock, the cluster first, then the namespace and its finalizer. The
template's own `delete` does not run: its parameters are gone with the order. DNS records are deleted before the namespace, which says
where they are. Hosts are released as with their order, too: under its lock, those that have left the cluster. One call does one step, as a
run does; the next call does the next.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ..common.timestamps import format_time
from ..infrastructure import claim_record
from ..infrastructure.address_pools import KIND, AddressPools
from ..infrastructure.agent_hosts import AgentInventory, AgentLabels, agent_namespace
from ..infrastructure.claim_record import ClaimRecord, inventory_of
from ..infrastructure.cluster_owner import ClusterOwner
from ..infrastructure.dns_recorded import release_domains
from ..infrastructure.host_claims import HostClaims
from ..kube.errors import KubeError
from ..kube.event_recorder import NORMAL, WARNING, Event, EventRecorder
from ..lock.lease import API_VERSION, Lock, above_all_earlier, acquire, lease_name, read, release, state_of
from ..providers.model import ObservedCluster
from .finish import Finalization
from .model import ClusterOrder, label_value
from .orphans import Orphan, orphaned_since
from .ownership import former_uids
from .run import Run

log = logging.getLogger(__name__)


class Sweep:
    """For one hub. Without a `grace` time it removes nothing."""

    def __init__(self, run: Run, grace: timedelta | None = None) -> None:
        self._run = run
        self._grace = grace
        self._finalization = Finalization(run)
        self._events = EventRecorder(run.kube)
        self._pools = AddressPools(run.kube, run.names.site_namespace)

    def sweep(self, found: Sequence[Orphan]) -> list[Orphan]:
        """Report each orphan, or remove it where its grace time is over. Returns those that are orphans on the hub's own state."""
        results = self._run.kube.in_parallel(self._sweep_one, found)
        for orphan, result in zip(found, results, strict=True):
            if isinstance(result, KubeError):
                log.warning("%s %s of a deleted order: %s", orphan.kind, orphan.item["metadata"]["name"], result)
        return [orphan for orphan, result in zip(found, results, strict=True) if result]

    def _sweep_one(self, orphan: Orphan) -> bool:
        if not self._is_confirmed(orphan):
            return False
        self._handle(orphan)
        return True

    def _is_confirmed(self, orphan: Orphan) -> bool:
        """Whether the order does not exist on the hub either: a cache may lag."""
        order = self._run.find(orphan.namespace, orphan.name)
        return order is None or (orphan.kind != "Lease" and orphan.uid not in ("", order.uid))

    def _handle(self, orphan: Orphan) -> None:
        now = self._run.kube.server_time() or datetime.now(UTC)
        if orphan.since is None:
            self._report(orphan, now)
        elif self._grace is not None and now >= orphan.since + self._grace:
            self._remove(orphan)

    def _report(self, orphan: Orphan, now: datetime) -> None:
        """Record the time on the object, from which the grace time counts also after a restart."""
        if orphan.kind == KIND:
            self._pools.mark_orphaned(orphan.item["metadata"]["name"], self._owner(orphan), now)
        elif orphan.kind == claim_record.KIND:
            self._mark_claim(orphan, now)
        else:
            self._run.kube.patch(orphan.item, {"metadata": {"annotations": {self._run.names.orphaned_annotation: format_time(now)}}})
        if orphan.kind != "Lease":  # a Lease without an order is what every deleted namespace leaves
            self._events.record(orphan.item, [Event("OrderNotFound", _message(orphan), WARNING)])
        log.warning("%s", _message(orphan))

    def _mark_claim(self, orphan: Orphan, now: datetime) -> None:
        record = self._record(orphan)
        if claim := record.read().get(orphan.uid):
            record.write({orphan.uid: replace(claim, orphaned_since=format_time(now))})

    def _remove(self, orphan: Orphan) -> None:
        if orphan.kind == KIND:
            self._pools.release_orphaned(orphan.item["metadata"]["name"], self._owner(orphan))
            return
        if orphan.kind == claim_record.KIND:
            self._release_hosts(orphan)
            return
        if self._run.names.external_controller:
            return  # namespaces are the other controller's
        if orphan.kind == "Lease":
            self._remove_lease(orphan)
            return
        order = self._order(orphan)
        if order is None:
            log.warning("The namespace %s is not removed: it does not name its order and its provider", orphan.item["metadata"]["name"])
            return
        with self._locked(orphan) as lock:
            if not self._is_still_left(orphan):
                log.warning("The namespace %s is not removed: it is no longer as it was found", orphan.item["metadata"]["name"])
                return
            provider = self._run.provider(order, lock)
            is_gone = provider is not None and provider.delete(ObservedCluster())
            if is_gone:
                self._release_dns(orphan, lock)
            if is_gone and self._finalization.delete_namespace(order, lock):
                self._events.record(orphan.item, [Event("OrphanRemoved", f"{_message(orphan)}; it is deleted", NORMAL)])

    def _is_still_left(self, orphan: Orphan) -> bool:
        """Whether the namespace is still the deleted order's, and marked as found. Under the lock, which an adoption needs as well."""
        namespace, names = self._run.kube.find("v1", "Namespace", orphan.item["metadata"]["name"]), self._run.names
        if namespace is None or not self._is_confirmed(orphan):
            return False
        uid = (namespace["metadata"].get("labels") or {}).get(names.order_uid_label)
        return uid == orphan.uid and orphaned_since(names, namespace) == orphan.since

    def _release_dns(self, orphan: Orphan, lock: Lock) -> None:
        """A server that cannot be reached keeps the namespace, for a later call."""
        run, names = self._run, self._run.names
        text = (orphan.item["metadata"].get("annotations") or {}).get(names.dns_annotation, "")
        release_domains(run.kube, names.site_namespace, text, orphan.uid, former_uids(orphan.item, names), run.writer(lock))

    @contextlib.contextmanager
    def _locked(self, orphan: Orphan) -> Iterator[Lock]:
        """The lock of the deleted order, which a new order of that name may hold."""
        kube, site = self._run.kube, self._run.names.site_namespace
        before = above_all_earlier(read(kube, orphan.namespace, orphan.name, site=site), kube.server_time())
        lock = acquire(kube, orphan.namespace, orphan.name, f"sweep-{secrets.token_hex(4)}", observed=before, site=site)
        try:
            yield lock
        finally:
            release(kube, lock)

    def _release_hosts(self, orphan: Orphan) -> None:
        """Release the hosts that are not part of a cluster, and mark them for cleaning; the others at a later call."""
        names, owner, namespace = self._run.names, self._owner(orphan), agent_namespace(inventory_of(orphan.item))
        if not namespace:
            log.warning("%s. Only the site knows whether its hosts are in use, and removes it", _message(orphan))
            return
        labels = dict.fromkeys((names.order_label, names.order_namespace_label, names.order_uid_label), "")
        with self._locked(orphan) as lock:
            writer = self._run.writer(lock)
            hosts = AgentInventory(
                self._run.kube, namespace, label_value(owner.key), owner.name, AgentLabels(names.group), {}, labels, writer
            )
            result = HostClaims(self._record(orphan), hosts, owner, writer).absent()
        if result.part.ready:
            text = f"{_message(orphan)}; its hosts are released: {', '.join(result.released) or 'none'}"
            self._events.record(orphan.item, [Event("OrphanRemoved", text, NORMAL)])
        else:
            log.warning("%s. %s", _message(orphan), result.part.message)

    def _record(self, orphan: Orphan) -> ClaimRecord:
        return ClaimRecord(self._run.kube, self._run.names.site_namespace, inventory_of(orphan.item))

    def _owner(self, orphan: Orphan) -> ClusterOwner:
        return ClusterOwner(orphan.namespace, orphan.name, orphan.uid, self._run.names.group)

    def _remove_lease(self, orphan: Orphan) -> None:
        kube, names = self._run.kube, self._run.names
        current = kube.find(API_VERSION, "Lease", lease_name(orphan.namespace, orphan.name), names.site_namespace)
        state = state_of(current) if current else None
        if current is None or state is None or not state.is_free(kube.server_time()):
            return
        needed_by = (orphan.namespace, names.working_namespace(orphan.namespace, orphan.name))
        if not any(kube.find("v1", "Namespace", name) for name in needed_by):
            kube.delete(current, unchanged=True)  # a run that acquires the lock in this moment keeps it

    def _order(self, orphan: Orphan) -> ClusterOrder | None:
        """The deleted order, as far as its namespace records it."""
        metadata, names = orphan.item["metadata"], self._run.names
        provider = (metadata.get("annotations") or {}).get(names.provider_annotation, "")
        if not provider or not orphan.uid or metadata["name"] != names.working_namespace(orphan.namespace, orphan.name):
            return None
        status = {"provider": {"type": provider}}
        return ClusterOrder(orphan.namespace, orphan.name, "", uid=orphan.uid, is_deleting=True, status=status, names=names)


def _message(orphan: Orphan) -> str:
    entry = {KIND: "an allocation in the ", claim_record.KIND: "a claim of hosts in the "}.get(orphan.kind, "")
    called = f"{entry}{orphan.kind} {orphan.item['metadata']['name']}"
    return f"ClusterOrder {orphan.namespace}/{orphan.name} with the uid {orphan.uid or 'unknown'} no longer exists, and left {called}"
