# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a run does for an order around its template: take it up before, put it down after. The template's own work is not here.

Both read the world and do what is missing, so that a run that was killed anywhere is simply run again. Nothing here waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from ..common.timestamps import format_time, parse_time
from ..common.types import Object
from ..kube.client import CONNECTIONS, Kube, retry_conflicts
from ..kube.errors import Conflict, Forbidden, Invalid, KubeError, NamespaceTerminating, NotFound, Unauthorized
from ..lock.fenced_writer import Change, FencedWriter
from ..lock.lease import DURATION, Lock, LockHeld, LockLost, LockState, acquire, last_lock, predict, read, release, verify
from ..providers.base import Provider, ProviderError
from ..providers.factory import ProviderFactory
from ..providers.model import TRUE
from ..templates.catalogue import DELETE, INSTALL, POST_INSTALL, BrokenTemplate, Checked, Template, TemplateError, check, resolve
from .model import (
    FAILED,
    READY,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    ClusterOrder,
    Failure,
    Names,
    config_version,
    owns_namespace,
    working_namespace,
)
from .observed import ObservedState, provider_type, recorded_cluster, unknown_cluster
from .osac import beside_controller, for_foreign_crd, is_beside_controller, is_reduced
from .snapshot import cluster_ref
from .status import Action, Job, LostRun, Outcome, derive_status

ENTRIES: dict[Action, str] = {"provision": INSTALL, "post_install": POST_INSTALL, "delete": DELETE}
HOOK_ENTRY = "main"

POLL_SECONDS = 1.0
FIRST_TOKENS = datetime(2020, 1, 1, tzinfo=UTC).timestamp()  # a count of Leases has 31 bits


class OrderGone(KubeError):
    """The order went away before its lock was had."""


class NamespaceTaken(KubeError):
    """The working namespace of the order is there and is not the order's."""


class NamespaceMissing(KubeError):
    """The working namespace is another controller's to make, and is not there yet."""

    retryable = True


class NamespaceGoing(KubeError):
    """The working namespace is being deleted, and has to be gone before it can be made again."""

    retryable = True


class BrokenHook(KubeError):
    """A role that the site runs around every template cannot be read. It is mended by the site, and not in the order."""

    retryable = True


@dataclass(frozen=True)
class TakenUp:
    """An order that this run works on, under its lock."""

    order: ClusterOrder
    lock: Lock
    provider: str
    checked: Checked
    has_post_install: bool
    job: Job | None = None
    changes: list[Change] = field(default_factory=list)
    kubeconfig: Object | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Ended:
    """An order whose template has run, under its lock, and what came of it; no outcome where that is written already."""

    order: ClusterOrder
    lock: Lock
    outcome: Outcome | None


@dataclass(frozen=True)
class LeftAlone:
    """An order that this run does not work on, and why. `failed` where a person has to do something about it."""

    namespace: str
    name: str
    reason: str
    message: str
    failed: bool = False


def _is_on_its_way(result: ClusterOrder | KubeError | None) -> bool:
    """Whether there is still something to wait for."""
    return isinstance(result, ClusterOrder) and result.phase not in (READY, FAILED) and not (result.is_deleting and result.failure)


def _above_all_before(now: datetime | None) -> int:
    """A token above those of earlier Leases, which count runs from 1 or from such a number: no order has a run a second."""
    return int((now or datetime.now(UTC)).timestamp() - FIRST_TOKENS)


def lost_run(lock: LockState | None, now: datetime | None) -> LostRun | None:
    """The run that an order's lock shows to have been killed, if it does."""
    at = lock.lost_since(now) if lock else None
    return LostRun(lock.holder, at, parse_time(lock.acquired)) if lock and at else None


class Fulfillment:
    """The steps of one run over one connection. In check mode everything is read and predicted, and nothing written."""

    def __init__(
        self,
        kube: Kube,
        names: Names,
        templates: Mapping[str, Template],
        job: Job | None = None,
        check_mode: bool = False,
        role_problem: Callable[[str, str], str | None] = lambda _role, _entry: None,
        hooks: Sequence[str] = (),
        external_controller: bool = False,
    ) -> None:
        """`role_problem` says what is wrong with the tasks of a role's entry point, as far as whoever runs them can tell before.

        `hooks` are the roles that run around the template. With an `external_controller` the order's namespace, the account in it, the
        order's own finalizer and its phase are that one's.
        """
        self._kube = kube
        self._names = names
        self._templates = templates
        self._job = job
        self._check_mode = check_mode
        self._role_problem = role_problem
        self._hooks = hooks
        self._external = external_controller
        infrastructure = (names.infrastructure_finalizer,)
        self._finalizers = infrastructure if external_controller else (names.controller_finalizer, *infrastructure)

    def find(self, namespace: str, name: str) -> ClusterOrder | None:
        item = self._kube.find(self._names.api_version, "ClusterOrder", name, namespace)
        return ClusterOrder.from_object(item, self._names.group) if item else None

    def look(self, order: ClusterOrder) -> ObservedState:
        """What is there for the order now. Without its namespace nothing is, since that goes last."""
        try:
            provider = self._provider(order)
            if provider is not None and provider.WATCHES:
                cluster = provider.status(recorded_cluster(order))
                if not cluster.is_gone:
                    return ObservedState(cluster, namespace_exists=True)
        except (ProviderError, NotFound) as error:
            # It is no longer installed, here or on the hub, or has a fault. That is written on the order too.
            return ObservedState(unknown_cluster(order, error), namespace_exists=True)
        if self._kube.find("v1", "Namespace", working_namespace(order.namespace, order.name)) is None:
            return ObservedState()
        if provider is None or provider.WATCHES:
            return ObservedState(namespace_exists=True)
        try:
            return ObservedState(provider.status(recorded_cluster(order)), namespace_exists=True)
        except KubeError as error:
            # Whoever can't be asked must not keep a run from writing what it knows.
            return ObservedState(unknown_cluster(order, error), namespace_exists=True)

    def _provider(self, order: ClusterOrder, writer: FencedWriter | None = None) -> Provider | None:
        """The one that made the cluster; the template's where none is kept, which may be because somebody took it away."""
        kind = provider_type(order) or self._provider_of_template(order.template_id)
        return ProviderFactory.at(kind, replace(cluster_ref(self._kube, order), writer=writer)) if kind else None

    def _provider_of_template(self, template_id: str) -> str:
        try:
            return resolve(template_id, self._templates).provider
        except TemplateError:
            return ""

    # Before the template

    def take_up(self, namespace: str, name: str, step: Action, holder: str, wait_timeout: float = 0, uid: str = "") -> TakenUp | LeftAlone:
        """Take the lock of an order, check it against its template, and prepare its namespace.

        With a `uid` it is for that very order: an event may come late, when another has its name.
        """
        # Before the order: when the lock is taken as it was seen here, nobody has worked on the order since.
        seen = read(self._kube, namespace, name)
        order = self.find(namespace, name)
        if order is None or (uid and order.uid != uid):
            failed = step != "delete" and not uid  # what an event is about may go before its run comes
            which = f" with the uid {uid}" if uid else ""
            return LeftAlone(namespace, name, "NotFound", f"There is no ClusterOrder {namespace}/{name}{which}.", failed=failed)
        if order.management_state != "managed":
            return LeftAlone(
                namespace, name, "NotManaged", f"ClusterOrder {namespace}/{name} is {order.management_state}, as its annotation asks for."
            )
        if order.is_deleting and step != "delete":
            return LeftAlone(namespace, name, "Deleting", f"ClusterOrder {namespace}/{name} is being deleted.")
        try:
            lock = self._lock(order, seen, step, holder, wait_timeout)
        except LockHeld as held:
            return LeftAlone(namespace, name, "AlreadyRunning", str(held))
        except NamespaceTerminating as error:
            return LeftAlone(namespace, name, "Deleting", f"ClusterOrder {namespace}/{name} is not taken up. {error}")
        try:
            if seen.holder or lock.token != seen.token + 1:
                # Another run had it until now, and has changed the order or even finished with it.
                order = self._find_again(order, step)
            return self._prepare(order, step, lock)
        except LockLost as error:
            return LeftAlone(namespace, name, "AlreadyRunning", str(error))
        except OrderGone as error:
            self.give_back(lock)
            return LeftAlone(namespace, name, "NotFound", str(error))
        except (TemplateError, KubeError) as error:
            return self._refuse(order, step, lock, error)

    def _refuse(self, order: ClusterOrder, step: Action, lock: Lock, error: TemplateError | KubeError) -> LeftAlone:
        refused = isinstance(error, TemplateError)
        # A right that is missing is the site's to grant; the order need not be touched after that.
        retryable = isinstance(error, KubeError) and (error.retryable or isinstance(error, Forbidden | Unauthorized))
        failure = Failure(type(error).__name__, str(error), "prepare the order", retryable=retryable)
        outcome = Outcome(step, config_version(order), accepted=False if refused else None, failure=failure, job=self._job_now())
        try:
            self._put_down(Ended(order, lock, outcome))
        except LockLost as lost:
            return LeftAlone(order.namespace, order.name, "AlreadyRunning", str(lost))
        finally:
            self.give_back(lock)
        return LeftAlone(order.namespace, order.name, failure.reason, failure.message, failed=True)

    def _job_now(self) -> Job | None:
        """The run, with the time at which it took up the order: by then the server's is known without asking for it."""
        return replace(self._job, started_at=self._kube.server_time()) if self._job else None

    def _lock(self, order: ClusterOrder, seen: LockState, step: Action, holder: str, wait_timeout: float) -> Lock:
        namespace, name = seen.namespace, seen.order
        if not seen.version and set(self._finalizers).intersection(order.finalizers):
            # Runs before this one had a Lease, which somebody has deleted or not restored, and their tokens are on the order's objects.
            seen = replace(seen, token=_above_all_before(self._kube.server_time()))
        if self._check_mode and step == "delete" and not seen.version:
            # Either its Lease went with its namespace, or no run has ever taken it up and no token is in its way.
            return last_lock(namespace, name, holder)
        if self._check_mode:
            return predict(seen, holder, DURATION, self._kube.server_time(), wait_timeout)
        try:
            return acquire(self._kube, namespace, name, holder, wait_timeout=wait_timeout, seen=seen)
        except NamespaceTerminating:
            if step != "delete":
                raise
            return last_lock(namespace, name, holder)

    def _find_again(self, order: ClusterOrder, step: Action) -> ClusterOrder:
        found = self.find(order.namespace, order.name)
        if found is None or found.uid != order.uid or (found.is_deleting and step != "delete"):
            raise OrderGone(f"ClusterOrder {order.namespace}/{order.name} was deleted while this run waited for its lock.")
        return found

    def _prepare(self, order: ClusterOrder, step: Action, lock: Lock) -> TakenUp:
        checked, has_post_install = self._check(order, step)
        for hook in self._hooks:
            if problem := self._role_problem(hook, HOOK_ENTRY):
                raise BrokenHook(f"The hook {hook} cannot be used: {problem}.")
        provider, job = provider_type(order) or self._provider_of_template(order.template_id), self._job_now()
        if step == "delete":
            return TakenUp(self._mark_deleted(order), lock, provider, checked, has_post_install, job)
        ProviderFactory.get(provider)
        if not order.is_carried_out or (order.condition("TemplateApplied") or {}).get("status") != TRUE:
            # Before the first change, so that a run that ends half-way is not taken for one that went through.
            order = self._write_status(
                order,
                Outcome(
                    step,
                    config_version(order),
                    accepted=True,
                    node_requests=checked.node_requests,
                    provider=provider,
                    job=job,
                ),
                lock=lock,
            )
        order = self._hold(order)
        changes = self._surround(order, lock)
        kubeconfig = self._kubeconfig(order) if step == "post_install" else None
        return TakenUp(order, lock, provider, checked, has_post_install, job, changes, kubeconfig)

    def _check(self, order: ClusterOrder, step: Action) -> tuple[Checked, bool]:
        """What the order comes to with its template, and whether that has a step after the installation."""
        try:
            template = resolve(order.template_id, self._templates)
            checked = check(template, order.template_parameters, order.node_requests, ENTRIES[step])
            if checked.role and (problem := self._role_problem(checked.role, ENTRIES[step])):
                raise BrokenTemplate(template.id, problem)
            return checked, template.entry_point(POST_INSTALL) is not None
        except TemplateError:
            if step != "delete" or self.look(order).namespace_exists:
                raise
            # Nothing was ever made of this order, so it needs no template to go.
            return Checked({}, ()), False

    def _kubeconfig(self, order: ClusterOrder) -> Object:
        """How to reach the new cluster."""
        provider = self._provider(order)
        return provider.kubeconfig(recorded_cluster(order)).content if provider else {}

    def writer(self, lock: Lock) -> FencedWriter:
        return FencedWriter(self._kube, lock, self._names.lock_token_annotation, self._check_mode)

    def _hold(self, order: ClusterOrder) -> ClusterOrder:
        """Put our finalizers on the order, so that it cannot go before its cluster."""
        item = self._change_finalizers(order.raw, lambda present: [*present, *(name for name in self._finalizers if name not in present)])
        if item is None:
            raise OrderGone(f"ClusterOrder {order.namespace}/{order.name} was deleted before it could be held.")
        return ClusterOrder.from_object(item, self._names.group)

    def _change_finalizers(self, item: Object, change: Callable[[list[str]], list[str]]) -> Object | None:
        """Change the list as it is now, never as it once was: others have entries in it too. None if the object is gone."""
        known: Object | None = item

        def attempt() -> Object | None:
            nonlocal known
            metadata = item["metadata"]
            current = known or self._kube.find(item["apiVersion"], item["kind"], metadata["name"], metadata.get("namespace"))
            known = None
            if current is None or current["metadata"]["uid"] != metadata["uid"]:
                return None
            present = current["metadata"].get("finalizers", [])
            wanted = change(present)
            if wanted == present or self._check_mode:
                return current
            return self._kube.patch(current, {"metadata": {"finalizers": wanted}})

        return retry_conflicts(attempt)

    def _surround(self, order: ClusterOrder, lock: Lock) -> list[Change]:
        if not self._external:
            return self.writer(lock).apply(self._surroundings(order), lambda item, present: self._unless_taken(order, item, present))
        name = working_namespace(order.namespace, order.name)
        namespace = self._kube.find("v1", "Namespace", name)
        if namespace is None:
            raise NamespaceMissing(f"The namespace {name} is not there yet; the controller of the order makes it.")
        self._unless_taken(order, namespace, namespace)
        return []

    def _surroundings(self, order: ClusterOrder) -> list[Object]:
        """The namespace that all of the order's objects live in, and the account that may work in it."""
        namespace = working_namespace(order.namespace, order.name)
        own = {"namespace": namespace, "labels": order.labels}
        return [
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": namespace, "labels": order.labels, "finalizers": [self._names.infrastructure_finalizer]},
            },
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": SERVICE_ACCOUNT, **own}},
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": {"name": ROLE_BINDING, **own},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
                "subjects": [{"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": namespace}],
            },
        ]

    def _unless_taken(self, order: ClusterOrder, item: Object, present: Object) -> Object:
        """The object as it is wanted; an error where its namespace is another's, or still going."""
        if item["kind"] != "Namespace":
            return item
        name, whose = item["metadata"]["name"], f"ClusterOrder {order.namespace}/{order.name}"
        if not owns_namespace(order, present):
            raise NamespaceTaken(f"The namespace {name} is there and is not that of {whose}; remove it, or rename the order.")
        if "deletionTimestamp" in present["metadata"]:
            raise NamespaceGoing(f"The namespace {name} of {whose} is still being deleted; it is made again when it is gone.")
        return item

    def _mark_deleted(self, order: ClusterOrder) -> ClusterOrder:
        """An order whose cluster is to go is deleted itself; its finalizers keep it until that is done."""
        if order.is_deleting:
            return order
        if self._check_mode:
            marked = order.raw["metadata"] | {"deletionTimestamp": format_time(self._kube.server_time() or datetime.now(UTC))}
            return ClusterOrder.from_object(order.raw | {"metadata": marked}, self._names.group)
        order = self._hold(order)
        self._kube.delete(order.raw, checked=True)
        return self.find(order.namespace, order.name) or order

    # After the template

    def put_down(self, ended: Sequence[Ended], wait_timeout: float = 0) -> list[ClusterOrder | KubeError | None]:
        """Write what came of the orders, go on with deletions as far as they go, and give the locks back. None for what is gone.

        `wait_timeout` is for people at a terminal: so long it goes on looking, at all of them in turn, until each is Ready, Failed or gone.
        """
        deadline = time.monotonic() + wait_timeout
        results: dict[int, ClusterOrder | KubeError | None] = {}
        waiting = dict(enumerate(ended))
        while waiting:
            results |= zip(waiting, self._kube.in_parallel(self._put_down, waiting.values()), strict=True)
            is_last = self._check_mode or time.monotonic() >= deadline
            over = [number for number in waiting if is_last or not _is_on_its_way(results[number])]
            self._kube.in_parallel(self.give_back, [waiting.pop(number).lock for number in over])
            waiting = {number: replace(item, outcome=None) for number, item in waiting.items()}
            if waiting:
                # However many there are, the server is asked about as many a second.
                time.sleep(POLL_SECONDS * max(1.0, len(waiting) / CONNECTIONS))
        return [results[number] for number in range(len(ended))]

    def _put_down(self, ended: Ended) -> ClusterOrder | None:
        order: ClusterOrder | None = ended.order
        if ended.outcome is None:
            order = self.find(ended.order.namespace, ended.order.name)
        if order is None or order.uid != ended.order.uid:
            return None
        order = self._write_status(order, ended.outcome, lock=ended.lock)
        # Where a hook or the template has failed, it is to be run again: then its order has to be there still.
        return self._clear_away(order, ended.lock) if order.is_deleting and not order.failure else order

    def sync(self, order: ClusterOrder, world: ObservedState, lock: LockState | None = None) -> ClusterOrder:
        """Bring the status up to date with what was seen, without taking the lock: it only says what is there.

        A run that was killed says nothing any more; that it was is seen from the order's `lock`, which it never gave back.
        """
        return self._write_status(order, None, world, lost=lost_run(lock, self._kube.server_time()))

    def give_back(self, lock: Lock) -> None:
        if not self._check_mode:
            release(self._kube, lock)

    def _write_status(
        self,
        order: ClusterOrder,
        outcome: Outcome | None,
        world: ObservedState | None = None,
        lock: Lock | None = None,
        lost: LostRun | None = None,
    ) -> ClusterOrder:
        """Bring the order's status up to date; no write where nothing has changed. With a lock, only who still has it may write."""

        def attempt() -> ClusterOrder:
            nonlocal order, world, lost
            seen = world or self.look(order)
            now = self._kube.server_time() or datetime.now(UTC)
            status = derive_status(order, seen, now, outcome, lost)
            if status == order.status:
                return order
            if self._check_mode:
                return replace(order, status=status)
            if lock:
                verify(self._kube, lock)
            try:
                written = self._store(order, status)
            except Conflict:
                # Whoever was quicker may be the next run, which holds the lock by now.
                order, world, lost = self.find(order.namespace, order.name) or order, None, None
                raise
            return ClusterOrder.from_object(written, self._names.group)

        return retry_conflicts(attempt)

    def _store(self, order: ClusterOrder, status: Object) -> Object:
        """Write the status. Another controller's CRD refuses or drops what it does not know, and then gets what it takes."""
        stored, item = order.raw.get("status") or {}, order.raw
        if self._external or is_beside_controller(stored):
            shared = beside_controller(status, stored)
            return item if shared == stored else self._kube.replace(item | {"status": shared}, subresource="status")
        if not is_reduced(stored):
            try:
                item = self._kube.replace(item | {"status": status}, subresource="status")
                if "observedGeneration" in item["status"]:
                    return item
            except Invalid:
                # If that is not why, it is refused again.
                item = order.raw
        reduced = for_foreign_crd(status, stored)
        return item if reduced == item.get("status") else self._kube.replace(item | {"status": reduced}, subresource="status")

    def _clear_away(self, order: ClusterOrder, lock: Lock) -> ClusterOrder | None:
        """When the cluster is gone the namespace goes, and when that is gone the finalizers: last, and only then."""
        cluster = self.look(order).cluster
        if cluster.status == "cleanup" and not self._check_mode and (provider := self._provider(order, self.writer(lock))):
            # It has gone since the template was run, and what it has left can go too.
            provider.delete(recorded_cluster(order))
            cluster = self.look(order).cluster
        if not cluster.is_gone:
            return order

        def without_ours(present: list[str]) -> list[str]:
            return [entry for entry in present if entry not in self._finalizers]

        namespace = self._kube.find("v1", "Namespace", working_namespace(order.namespace, order.name))
        if namespace is not None and owns_namespace(order, namespace) and not self._external:
            self.writer(lock).delete([namespace])
            self._change_finalizers(namespace, without_ours)
            return order
        if self._check_mode:
            return order if without_ours(list(order.finalizers)) else None
        verify(self._kube, lock)
        self._change_finalizers(order.raw, without_ours)
        return self.find(order.namespace, order.name)
