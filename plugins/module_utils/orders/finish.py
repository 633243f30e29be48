# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The last step of a run for its orders: write the status, continue deletions, release the locks. The template has run before."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..kube.client import CONNECTIONS
from ..kube.errors import KubeError
from ..lock.lease import Lock, release, verify
from .gitops import used_by
from .infrastructure import NOT_READY, parts_of, pending
from .model import FAILED, READY, ClusterOrder
from .observe import ObservedState, recorded_cluster
from .outcome import Outcome
from .ownership import owns_namespace
from .run import Run
from .status_writer import StatusWriter

POLL_SECONDS = 1.0


@dataclass(frozen=True)
class RunResult:
    """An order whose template has run, under its lock, and the outcome; None where that is written already."""

    order: ClusterOrder
    lock: Lock
    outcome: Outcome | None


class Finalization:
    """Finishes the orders of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._status = StatusWriter(run)

    def finish(self, results: Sequence[RunResult], wait_timeout: float = 0) -> list[ClusterOrder | KubeError | None]:
        """Write the outcomes, continue deletions as far as possible, and release the locks. None for an order that is gone.

        `wait_timeout` is for people at a terminal: for that many seconds it observes all orders in turn, until each is Ready, Failed or
        gone.
        """
        deadline = time.monotonic() + wait_timeout
        finished: dict[int, ClusterOrder | KubeError | None] = {}
        waiting = dict(enumerate(results))
        while waiting:
            finished |= zip(waiting, self._run.kube.in_parallel(self.finish_one, waiting.values()), strict=True)
            is_last = self._run.check_mode or time.monotonic() >= deadline
            done = [number for number in waiting if is_last or not _is_in_progress(finished[number])]
            self._run.kube.in_parallel(self.release, [waiting.pop(number).lock for number in done])
            waiting = {number: replace(item, outcome=None) for number, item in waiting.items()}
            if waiting:
                # However many there are, the number of requests a second stays the same.
                time.sleep(POLL_SECONDS * max(1.0, len(waiting) / CONNECTIONS))
        self._run.events.flush()
        return [finished[number] for number in range(len(results))]

    def finish_one(self, result: RunResult) -> ClusterOrder | None:
        """Write the outcome of one order and continue its deletion. The lock stays held."""
        order: ClusterOrder | None = result.order
        if result.outcome is None:
            order = self._run.find(result.order.namespace, result.order.name)
        if order is None or order.uid != result.order.uid:
            return None
        # A run has reported what it observed of GitOps. While it waits, each read of the order observes it again.
        waits = result.outcome is None and used_by(order)
        observed = self._observe_gitops(order) if waits else None
        order = self._status.write(order, result.outcome, lock=result.lock, observed=observed)
        # A hook or template that failed, or has something left to release, runs again, and for that its order has to
        # exist.
        may_go = order.is_deleting and not order.failure and not pending(parts_of(order))
        return self._continue_deletion(order, result.lock) if may_go else order

    def _observe_gitops(self, order: ClusterOrder) -> ObservedState:
        from .gitops_observer import observe_gitops  # here, as most orders use no GitOps, and it takes long to load

        return replace(self._run.observe(order), gitops=observe_gitops(self._run.kube, order))

    def release(self, lock: Lock) -> None:
        if not self._run.check_mode:
            release(self._run.kube, lock)

    def _continue_deletion(self, order: ClusterOrder, lock: Lock) -> ClusterOrder | None:
        """Delete the namespace once the cluster is gone, and remove the finalizers once the namespace is gone: last, and only then."""
        cluster = self._run.observe(order).cluster
        if cluster.status == "cleanup" and not self._run.check_mode and (provider := self._run.provider(order, lock)):
            # The cluster was deleted after the template ran, and what it left behind can be deleted too.
            provider.delete(recorded_cluster(order))
            cluster = self._run.observe(order).cluster
        if not cluster.is_absent:
            return order
        if self.delete_namespace(order, lock):
            return order
        if self._run.check_mode:
            return order if self._without_ours(list(order.finalizers)) else None
        self._release_addresses(order, lock)
        verify(self._run.kube, lock)
        self._run.change_finalizers(order.raw, self._without_ours)
        return self._run.find(order.namespace, order.name)

    def delete_namespace(self, order: ClusterOrder, lock: Lock) -> bool:
        """Delete the order's working namespace, once its cluster is gone. False if it has none, or none that is ours to delete."""
        namespace = self._run.kube.find("v1", "Namespace", order.working_namespace)
        if namespace is None or not owns_namespace(order, namespace) or self._run.names.external_controller:
            return False
        self._run.writer(lock).delete([namespace])
        self._run.change_finalizers(namespace, self._without_ours)
        return True

    def _release_addresses(self, order: ClusterOrder, lock: Lock) -> None:
        """Last, as the cluster uses them for as long as it exists."""
        from ..infrastructure.address_pools import AddressPools  # here, as only deletions need it
        from ..infrastructure.cluster_owner import ClusterOwner

        pools = AddressPools(self._run.kube, self._run.names.site_namespace, self._run.writer(lock))
        pools.release(ClusterOwner(order.namespace, order.name, order.uid))

    def _without_ours(self, finalizers: list[str]) -> list[str]:
        return [entry for entry in finalizers if entry not in self._run.finalizers]


def _is_in_progress(result: ClusterOrder | KubeError | None) -> bool:
    """Whether there is still something to wait for. A part of the infrastructure that is missing needs another run."""
    if not isinstance(result, ClusterOrder) or result.phase in (READY, FAILED):
        return False
    if result.is_deleting:
        return not (result.failure or pending(parts_of(result)))
    return (result.condition("ClusterAvailable") or {}).get("reason") != NOT_READY
