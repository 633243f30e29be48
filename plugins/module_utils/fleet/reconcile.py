# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reconciles the clusters of a fleet: quota, placement, changes of size, lifetime, deletion. Decisions are pure functions of other files.

An event source, a playbook and a service can all call it: it keeps no state, and a repeated or interrupted call is harmless. It returns
what happened to each cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Conflict, KubeError
from ..kube.event_recorder import Event, EventRecorder
from ..lock.lease import SITE_NAMESPACE
from .binder import Binder, Binding
from .compare_and_swap import merge_patch
from .deletion import Deletion
from .kinds import API_VERSION, CLUSTER, FINALIZER
from .lifetime import Expiry, expiry_of, is_expired, is_warned
from .model import FleetCluster
from .observe import ObservedFleet
from .quota import Refusal, claim_of, in_queue_order, limits_of
from .quota_store import QuotaStore
from .resize import Resize
from .schedule import Choice, Weights
from .status import SECRETS_AVAILABLE, Transient, derive_status, events_of
from .transient_conditions import lacks_secrets, transient_conditions

STATUS_ATTEMPTS = 5  # of one write
DECISIVE = ("uid", "generation", "deletionTimestamp", "annotations", "finalizers")  # metadata that a reconcile depends on

Result = Literal["refused", "waiting", "scheduled", "bound", "expired", "denied", "deleting", "deleted", "failed"]


@dataclass(frozen=True)
class Outcome:
    """What a reconcile did for one cluster, and why."""

    cluster: FleetCluster
    result: Result
    message: str = ""


class Reconciler:
    """Reconciles the clusters of one home cluster."""

    def __init__(self, home: Kube, site_namespace: str = SITE_NAMESPACE, weights: Weights | None = None) -> None:
        self._home = home
        self._site_namespace = site_namespace
        self._quotas = QuotaStore(home, site_namespace)
        self._binder = Binder(home, weights)
        self._resize = Resize(home, self._quotas)
        self._deletion = Deletion(home, self._quotas)
        self._events = EventRecorder(home)

    def reconcile(self, fleet: ObservedFleet) -> list[Outcome]:
        """Reconcile all observed clusters. The failure of one ends on that one."""
        ends = ends_of(fleet, self._site_namespace)
        deleting = [each for each in fleet.clusters if each.is_deleting]
        live = [each for each in fleet.clusters if not each.is_deleting]
        expired = [each for each in live if is_expired(ends.get(each.uid), fleet.now)]
        kept = [each for each in live if not is_expired(ends.get(each.uid), fleet.now)]
        near = {each.uid: ends[each.uid] for each in kept if is_warned(ends.get(each.uid), each, fleet.now)}
        transient = {each.uid: transient_conditions(each, fleet, near.get(each.uid)) for each in [*deleting, *kept]}
        return [
            *self._delete(deleting, fleet, ends, transient),
            *self._each(expired, lambda each: self._expire(each, ends[each.uid])),
            *self._accept(kept, fleet, transient),
        ]

    def _accept(self, clusters: Sequence[FleetCluster], fleet: ObservedFleet, transient: Mapping[str, Transient]) -> list[Outcome]:
        """Reserve quota, choose hubs for clusters without one, and bring the assignments of the others to their specs."""
        protected, failed = self._protect_all(clusters)
        failed += self._release_all(protected, fleet)
        unreleased = {each.cluster.uid for each in failed}
        protected = [each for each in protected if each.uid not in unreleased]
        lacking = {each.uid for each in protected if not each.hub and lacks_secrets(each, fleet)}
        ready = [each for each in protected if each.uid not in lacking]
        refused, errors = self._reserve([each for each in ready if not each.hub or self._resize.needs_quota(each, fleet)], fleet)
        failed += [Outcome(each, "failed", errors[each.namespace]) for each in ready if each.namespace in errors]
        admitted = [each for each in ready if each.uid not in refused and each.namespace not in errors]
        bindings = self._binder.bind([each for each in admitted if not each.hub], fleet, transient)

        def wait(cluster: FleetCluster) -> Outcome:
            self._write_status(cluster, fleet, transient)
            return Outcome(cluster, "waiting", transient[cluster.uid][SECRETS_AVAILABLE].message)

        def refuse(cluster: FleetCluster) -> Outcome:
            self._write_status(cluster, fleet, transient, refusal=refused[cluster.uid])
            return Outcome(cluster, "refused", refused[cluster.uid].message)

        def update(cluster: FleetCluster) -> Outcome:
            blocked = self._resize.apply(cluster, fleet)
            self._write_status(cluster, fleet, transient)
            return Outcome(cluster, "waiting" if blocked else "bound", blocked)

        return [
            *failed,
            *self._each([each for each in protected if each.uid in lacking], wait),
            *self._each([each for each in ready if each.uid in refused], refuse),
            *self._each([each for each in admitted if each.hub], update),
            *self._report_all(bindings, fleet, transient),
        ]

    def _protect_all(self, clusters: Sequence[FleetCluster]) -> tuple[list[FleetCluster], list[Outcome]]:
        """Add the finalizer, so that no cluster is deleted behind the back of its hub. Returns those that could not be, too."""
        results = self._home.in_parallel(self._protect, clusters)
        pairs = list(zip(clusters, results, strict=True))
        failed = [Outcome(cluster, "failed", str(result)) for cluster, result in pairs if isinstance(result, KubeError)]
        return [result for _cluster, result in pairs if not isinstance(result, KubeError)], failed

    def _protect(self, cluster: FleetCluster) -> FleetCluster:
        finalizers = cluster.raw["metadata"].get("finalizers") or []
        if FINALIZER in finalizers:
            return cluster
        return FleetCluster.from_object(self._home.patch(cluster.raw, {"metadata": {"finalizers": [*finalizers, FINALIZER]}}))

    def _release_all(self, clusters: Sequence[FleetCluster], fleet: ObservedFleet) -> list[Outcome]:
        """Release what clusters without a hub no longer ask for, before others reserve. Returns those for which it failed."""
        surplus = [each for each in clusters if not each.hub and self._resize.has_surplus(each, fleet)]
        results = zip(surplus, self._home.in_parallel(lambda each: self._resize.release_surplus(each, fleet), surplus), strict=True)
        return [Outcome(cluster, "failed", str(result)) for cluster, result in results if isinstance(result, KubeError)]

    def _reserve(self, clusters: Iterable[FleetCluster], fleet: ObservedFleet) -> tuple[dict[str, Refusal], dict[str, str]]:
        """In one write for each tenant. Returns what was refused, by uid, and the tenants for which it failed."""
        by_tenant: dict[str, list[FleetCluster]] = {}
        for cluster in in_queue_order(clusters):
            by_tenant.setdefault(cluster.namespace, []).append(cluster)

        def reserve(namespace: str) -> Mapping[str, Refusal]:
            claims = [claim_of(each, fleet.assignments.get(each.uid)) for each in by_tenant[namespace]]
            return self._quotas.reserve(namespace, claims, fleet.quotas)

        refused, errors = dict[str, Refusal](), dict[str, str]()
        for namespace, result in zip(by_tenant, self._home.in_parallel(reserve, by_tenant), strict=True):
            if isinstance(result, KubeError):
                errors[namespace] = str(result)
            else:
                refused |= result
        return refused, errors

    def _report_all(self, bindings: Sequence[Binding], fleet: ObservedFleet, transient: Mapping[str, Transient]) -> list[Outcome]:
        def report(each: Binding) -> Outcome:
            if each.error:
                return Outcome(each.cluster, "failed", each.error)
            if each.choice.hub:
                self._events.record(each.cluster.raw, [Event("Scheduled", each.choice.explanation)])
                return Outcome(each.cluster, "scheduled", each.choice.explanation)
            self._write_status(each.cluster, fleet, transient, choice=each.choice)
            return Outcome(each.cluster, "waiting", each.choice.explanation)

        results = zip(bindings, self._home.in_parallel(report, bindings), strict=True)
        return [Outcome(each.cluster, "failed", str(result)) if isinstance(result, KubeError) else result for each, result in results]

    def _expire(self, cluster: FleetCluster, expiry: Expiry) -> Outcome:
        self._events.record(cluster.raw, [Event(expiry.reason, expiry.message)])
        self._home.delete(cluster.raw, checked=True)
        return Outcome(cluster, "denied" if expiry.reason == "Denied" else "expired", expiry.message)

    def _delete(
        self,
        clusters: Sequence[FleetCluster],
        fleet: ObservedFleet,
        ends: Mapping[str, Expiry],
        transient: Mapping[str, Transient],
    ) -> list[Outcome]:
        results = self._deletion.advance(clusters, fleet, ends)

        def report(cluster: FleetCluster) -> Outcome:
            result = results[cluster.uid]
            if isinstance(result, KubeError):
                return Outcome(cluster, "failed", str(result))
            if result:
                return Outcome(cluster, "deleted")
            self._write_status(cluster, fleet, transient)
            return Outcome(cluster, "deleting")

        return self._each(clusters, report)

    def _write_status(
        self,
        cluster: FleetCluster,
        fleet: ObservedFleet,
        transient: Mapping[str, Transient],
        *,
        refusal: Refusal | None = None,
        choice: Choice | None = None,
    ) -> None:
        """Only what changed. After a conflict it is written to what the cluster is then, unless another reconcile follows anyway."""
        assignment, attempts = fleet.assignments.get(cluster.uid), STATUS_ATTEMPTS
        while True:
            before: Object = cluster.raw.get("status") or {}
            own = transient.get(cluster.uid)
            status = derive_status(cluster, fleet.now, refusal=refusal, choice=choice, assignment=assignment, transient=own)
            changes = merge_patch(before, status)
            if not changes:
                return
            try:
                written = self._home.patch(cluster.raw, {"status": changes}, subresource="status")
            except Conflict:
                attempts -= 1
                item = self._home.find(API_VERSION, CLUSTER, cluster.name, cluster.namespace)
                if item is None or needs_reconcile(cluster.raw, item):
                    return
                latest = FleetCluster.from_object(item)
                if not attempts or latest.hub != cluster.hub:  # bound by another process, so what was decided no longer holds
                    raise
                cluster = latest
            else:
                self._events.record(written, events_of(before, status))
                return

    def _each(self, clusters: Sequence[FleetCluster], work: Callable[[FleetCluster], Outcome]) -> list[Outcome]:
        results = zip(clusters, self._home.in_parallel(work, clusters), strict=True)
        return [Outcome(cluster, "failed", str(result)) if isinstance(result, KubeError) else result for cluster, result in results]


def needs_reconcile(before: Object, after: Object) -> bool:
    """Whether a change of a cluster needs a reconcile: not where only the status differs, which a reconcile itself writes."""
    return any(before["metadata"].get(name) != after["metadata"].get(name) for name in DECISIVE)


def ends_of(fleet: ObservedFleet, site_namespace: str) -> dict[str, Expiry]:
    """The ends of the clusters that have one, by uid."""
    default = fleet.quotas.get(site_namespace)
    found = {each.uid: expiry_of(each, limits_of(fleet.quotas.get(each.namespace), default)) for each in fleet.clusters}
    return {uid: expiry for uid, expiry in found.items() if expiry}
