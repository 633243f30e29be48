# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The first step of a run for an order: lock it, validate it against its template, and create its namespace. Nothing here waits.

Every step reads the current state and does what is missing, so a run that was killed anywhere is simply run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial

from ..common.timestamps import format_time
from ..common.types import Object
from ..infrastructure.site_settings import InvalidSiteSettings, SiteSettings
from ..infrastructure.tenant_secrets import TenantSecrets
from ..kube.errors import Forbidden, KubeError, Unauthorized, Unexpected
from ..kube.event_recorder import WARNING, Event
from ..lock.fenced_writer import Change
from ..lock.lease import DURATION, Lock, LockHeld, LockLost, LockState, above_all_earlier, acquire, predict, read
from ..lock.renewer import Renewer
from ..lock.run_process import RunEnded
from ..providers.factory import ProviderFactory
from ..providers.model import TRUE
from ..templates.catalogue import Template, resolve
from ..templates.check import Checked, check
from ..templates.errors import BrokenTemplate, TemplateError, TemplateNotOffered
from ..templates.metadata import DELETE, INSTALL, POST_INSTALL
from ..templates.profile_rules import needs_profiles
from ..templates.secret_references import FORM
from .finish import Finalization, RunResult
from .model import ClusterOrder, Failure, config_version
from .observe import LiveView, recorded_cluster
from .outcome import Action, Job, Outcome
from .ownership import require_own
from .run import Run
from .status_writer import StatusWriter

ENTRIES: dict[Action, str] = {"provision": INSTALL, "post_install": POST_INSTALL, "delete": DELETE}
HOOK_ENTRY = "main"
INLINE_SECRETS = "InlineSecrets"
SHOWN_PARAMETERS = 5
NOTHING_CREATED = Checked({}, ())  # the deletion of an order without a working namespace of its own runs no template


class OrderDeleted(KubeError):
    """The order was deleted before the run held its lock."""


class NamespaceMissing(KubeError):
    """The external controller has not created the working namespace yet."""

    retryable = True


class NamespaceDeleting(KubeError):
    """The working namespace is being deleted, and can be created again once that is done."""

    retryable = True


class BrokenHook(KubeError):
    """Ansible cannot read a hook role. The site has to fix it, not the tenant."""

    retryable = True


@dataclass(frozen=True)
class PreparedOrder:
    """An order that this run works on, under its lock."""

    order: ClusterOrder
    lock: Lock
    provider: str
    checked: Checked
    has_post_install: bool
    job: Job | None = None
    changes: list[Change] = field(default_factory=list)
    kubeconfig: Object | None = field(default=None, repr=False)
    site: SiteSettings = field(default_factory=SiteSettings)


@dataclass(frozen=True)
class SkippedOrder:
    """An order that this run does not work on, and why. `failed` where a person has to act."""

    namespace: str
    name: str
    reason: str
    message: str
    failed: bool = False


@dataclass(frozen=True)
class Roles:
    """The roles around the template, and what is wrong with the tasks of a role's entry point as far as Ansible can check beforehand.

    `after_install`: the site has hooks around post_install, which then runs also where the template has nothing to do in it.
    """

    hooks: Sequence[str] = ()
    problem: Callable[[str, str], str | None] = lambda _role, _entry: None
    after_install: bool = False


class Preparation:
    """Prepares orders for one step of their templates. The `renewer` renews their locks; without it they expire."""

    def __init__(
        self,
        run: Run,
        step: Action,
        job: Job | None = None,
        roles: Roles | None = None,
        renewer: Renewer | None = None,
        site: SiteSettings | KubeError | None = None,
    ) -> None:
        """An error as `site` fails each order, unless it is to be deleted and the settings suffice for that."""
        self._run = run
        self._renewer = renewer
        self._site = site or SiteSettings()
        self._step = step
        self._job = job
        self._roles = roles or Roles()
        self._status = StatusWriter(run)
        self._finalization = Finalization(run)

    def prepare(
        self, namespace: str, name: str, holder: str, wait_timeout: float = 0, uid: str = "", *, by_event: bool = False
    ) -> PreparedOrder | SkippedOrder:
        """Lock an order, validate it against its template, and create its namespace.

        With a `uid` it is for that very order: an event may arrive late, when another order has its name. `by_event`: an event has chosen
        the order, and no person. It never decides that an order is deleted.
        """
        # Before the order: if the lock is then taken as read here, no run has worked on the order since.
        before = read(self._run.kube, namespace, name, site=self._run.names.site_namespace)
        order = self._run.find(namespace, name)
        if order is None or (uid and order.uid != uid):
            failed = self._step != "delete" and not uid  # the order of an event may be gone before its run starts
            which = f" with the uid {uid}" if uid else ""
            return SkippedOrder(namespace, name, "NotFound", f"There is no ClusterOrder {namespace}/{name}{which}.", failed=failed)
        if skipped := self._skipped(order, by_event=by_event):
            return skipped
        try:
            lock = self._lock(order, before, holder, wait_timeout)
        except LockHeld as held:
            return SkippedOrder(namespace, name, "AlreadyRunning", str(held))
        waited = bool(before.holder) or lock.token != before.token + 1
        return self._prepare_locked(order, lock, waited)

    def _prepare_locked(self, order: ClusterOrder, lock: Lock, waited: bool) -> PreparedOrder | SkippedOrder:
        try:
            if self._renewer:
                self._renewer.keep(lock)
            if waited:
                # Another run held it until now, and may have changed the order or finished with it.
                order = self._find_again(order)
            return self._prepare(order, lock)
        except LockLost as error:
            self._finalization.release(lock)  # if objects of a later run show it, the lock may still be held
            return SkippedOrder(order.namespace, order.name, "AlreadyRunning", str(error))
        except OrderDeleted as error:
            self._finalization.release(lock)
            return SkippedOrder(order.namespace, order.name, "NotFound", str(error))
        except RunEnded:
            self._finalization.release(lock)
            raise
        except (TemplateError, KubeError) as error:
            return self.reject(order, lock, error)
        except Exception as fault:  # noqa: BLE001 - of any kind: it is reported on this order, and the others of the run go on
            return self.reject(order, lock, Unexpected(fault))

    def _skipped(self, order: ClusterOrder, *, by_event: bool) -> SkippedOrder | None:
        called = f"ClusterOrder {order.namespace}/{order.name}"
        if order.management_state != "managed":
            state = order.management_state
            return SkippedOrder(order.namespace, order.name, "NotManaged", f"The management-state annotation of {called} is {state}.")
        if order.is_deleting and self._step != "delete":
            return SkippedOrder(order.namespace, order.name, "Deleting", f"{called} is being deleted.")
        if by_event and self._step == "delete" and not order.is_deleting:
            message = f"{called} is not being deleted, and an event does not delete it: delete the order, or name it in the variables."
            return SkippedOrder(order.namespace, order.name, "NotDeleting", message)
        return None

    def reject(self, order: ClusterOrder, lock: Lock, error: TemplateError | KubeError) -> SkippedOrder:
        """Write why this run does not work on the order, and release its lock."""
        invalid = isinstance(error, TemplateError)
        # The site grants a missing permission, and corrects a template that cannot delete; the order need not be
        # changed after that.
        retryable = error.retryable or (self._step == "delete" if invalid else isinstance(error, Forbidden | Unauthorized))
        failure = Failure(type(error).__name__, str(error), "prepare the order", retryable=retryable)
        outcome = Outcome(self._step, config_version(order), accepted=False if invalid else None, failure=failure, job=self._job_now())
        try:
            self._finalization.finish_one(RunResult(order, lock, outcome))
        except LockLost as lost:
            return SkippedOrder(order.namespace, order.name, "AlreadyRunning", str(lost))
        finally:
            self._finalization.release(lock)
        return SkippedOrder(order.namespace, order.name, failure.reason, failure.message, failed=True)

    def _job_now(self) -> Job | None:
        """The run, with the time at which it began to work on the order: the server's time is known by then without a request."""
        return replace(self._job, started_at=self._run.kube.server_time()) if self._job else None

    def _lock(self, order: ClusterOrder, before: LockState, holder: str, wait_timeout: float) -> Lock:
        kube, namespace, name = self._run.kube, before.namespace, before.order
        if set(self._run.finalizers).intersection(order.finalizers):
            before = above_all_earlier(before, kube.server_time())
        if self._run.check_mode:
            return predict(before, holder, DURATION, kube.server_time(), wait_timeout)
        alive = self._renewer.run.require if self._renewer else lambda: None
        return acquire(kube, namespace, name, holder, wait_timeout=wait_timeout, observed=before, site=before.site, alive=alive)

    def _find_again(self, order: ClusterOrder) -> ClusterOrder:
        found = self._run.find(order.namespace, order.name)
        if found is None or found.uid != order.uid or (found.is_deleting and self._step != "delete"):
            raise OrderDeleted(f"ClusterOrder {order.namespace}/{order.name} was deleted while this run waited for its lock.")
        return found

    def _prepare(self, order: ClusterOrder, lock: Lock) -> PreparedOrder:
        checked, has_post_install, site = self._check(order)
        for hook in self._roles.hooks:
            if problem := self._roles.problem(hook, HOOK_ENTRY):
                raise BrokenHook(f"The hook {hook} cannot be used: {problem}.")
        provider, job = self._run.provider_of(order), self._job_now()
        if self._step == "delete":
            return PreparedOrder(self._mark_deleted(order), lock, provider, checked, has_post_install, job, site=site)
        ProviderFactory.get(provider)
        order = self._resolve_profiles(order, lock, checked)
        namespace = self._external_namespace(order)
        is_recorded = namespace is None or namespace["metadata"]["name"] == order.working_namespace
        if not is_recorded or not order.is_applied or (order.condition("TemplateApplied") or {}).get("status") != TRUE:
            # Before the first change, so that a run that ends half-way is not taken for a complete one.
            start = Outcome(
                self._step, config_version(order), accepted=True, node_requests=checked.node_requests, provider=provider, job=job
            )
            order = self._status.write(order, start, lock=lock)
            self._warn_of_secrets(order, checked.inlined)
        is_new = not set(self._run.finalizers).intersection(order.finalizers)
        order = self._add_finalizers(order)
        changes = self._apply_namespace(order, lock, provider, namespace, is_new=is_new)
        kubeconfig = self._kubeconfig(order) if self._step == "post_install" else None
        return PreparedOrder(order, lock, provider, checked, has_post_install, job, changes, kubeconfig, site)

    def _check(self, order: ClusterOrder) -> tuple[Checked, bool, SiteSettings]:
        """The order validated against its template, whether that has a step after the installation, and the settings for it."""
        entry = ENTRIES[self._step]
        if self._step == "delete" and self._run.observe(order).namespace_taken:
            return NOTHING_CREATED, False, SiteSettings()
        try:
            template, site = resolve(order.template_id, self._run.templates), self._site_settings()
            if self._step != "delete" and not site.offers(order.namespace, template):
                raise TemplateNotOffered(template.id, order.namespace)
            read_secret = TenantSecrets(self._run.kube, order.namespace).read
            checked = check(template, order.template_parameters, order.node_requests, entry, site.values, read_secret)
            if checked.role and (problem := self._roles.problem(checked.role, entry)):
                raise BrokenTemplate(template.id, problem)
            return checked, self._needs_post_install(template, site), site
        except (TemplateError, InvalidSiteSettings) as error:
            # A cluster may have hosts and records of the site although its namespace is gone.
            was_made = isinstance(error, InvalidSiteSettings) and "provider" in order.status
            if self._step != "delete" or was_made or self._run.observe(order).namespace_exists:
                raise
            return NOTHING_CREATED, False, SiteSettings()

    def _resolve_profiles(self, order: ClusterOrder, lock: Lock, checked: Checked) -> ClusterOrder:
        """The order with the lock file of its profiles: before it is accepted, so that what is accepted can be installed."""
        if self._step != "provision":
            return order
        template, text = resolve(order.template_id, self._run.templates), ""
        if needs_profiles(template.profile_rules, checked.all_parameters):
            text = self._accept_profiles(template, checked.all_parameters, before=order.profiles_lock)
        annotated = self._run.annotate(order, lock, order.names.profiles_lock_annotation, text)
        if annotated is None:
            raise OrderDeleted(f"ClusterOrder {order.namespace}/{order.name} was deleted before its profiles were resolved.")
        return annotated

    @cached_property
    def _accept_profiles(self) -> Callable[..., str]:
        """With the charts of the site's repositories, which all orders of the run share."""
        # Imported here, as most orders have no profiles, and these modules take long to load.
        from ..gitops.profiles.accept import accept_profiles
        from ..gitops.profiles.charts import Charts

        offer = self._site_settings().offer
        return partial(accept_profiles, offer=offer, charts=Charts(offer))

    def _needs_post_install(self, template: Template, site: SiteSettings) -> bool:
        has_step = template.entry_point(POST_INSTALL) is not None
        return (has_step and self._roles.after_install) or template.needs_post_install(site.as_variable())

    def _site_settings(self) -> SiteSettings:
        if isinstance(self._site, SiteSettings):
            return self._site
        if self._step == "delete" and isinstance(self._site, InvalidSiteSettings) and self._site.usable:
            return self._site.usable  # a mistake of the site must not keep a cluster alive
        raise self._site

    def _warn_of_secrets(self, order: ClusterOrder, parameters: Sequence[str]) -> None:
        if parameters and not self._run.check_mode:
            shown = ", ".join(parameters[:SHOWN_PARAMETERS]) + (" and others" if len(parameters) > SHOWN_PARAMETERS else "")
            message = f"The order has the values of the secret parameters {shown} in plain text: store them in a Secret, and give {FORM}"
            self._run.events.record(order.raw, [Event(INLINE_SECRETS, message, WARNING)])

    def _kubeconfig(self, order: ClusterOrder) -> Object:
        """The kubeconfig of the new cluster."""
        provider = self._run.provider(order)
        return provider.kubeconfig(recorded_cluster(order)).content if provider else {}

    def _add_finalizers(self, order: ClusterOrder) -> ClusterOrder:
        """Set our finalizers, so that the order is not gone before its cluster."""
        ours = self._run.finalizers
        item = self._run.change_finalizers(order.raw, lambda present: [*present, *(name for name in ours if name not in present)])
        if item is None:
            raise OrderDeleted(f"ClusterOrder {order.namespace}/{order.name} was deleted before its finalizers were set.")
        return ClusterOrder.from_object(item, self._run.names)

    def _external_namespace(self, order: ClusterOrder) -> Object | None:
        """The namespace that an external controller has created for the order; None without one. The status records it for later tasks."""
        if not self._run.names.external_controller:
            return None
        namespace = LiveView(self._run.kube).namespace(order)
        if namespace is None:
            label = order.names.order_label
            raise NamespaceMissing(f"The order's controller has not created a namespace with the label {label}={order.labels[label]} yet.")
        _require_own(order, namespace, namespace)
        return namespace

    def _apply_namespace(self, order: ClusterOrder, lock: Lock, provider: str, namespace: Object | None, *, is_new: bool) -> list[Change]:
        """Create the working namespace; an external controller has created its `namespace`."""
        if namespace is None:
            wanted = _working_namespace(order, self._run.names.infrastructure_finalizer, provider)
            return self._run.writer(lock).apply([wanted], lambda item, present: _require_own(order, item, present), new=is_new)
        # The other controller does not tell an order from a later one of the same name.
        own = {"metadata": {"labels": {order.names.order_uid_label: order.uid}}}
        return [self._run.writer(lock).patch(namespace, lambda _present: own)]

    def _mark_deleted(self, order: ClusterOrder) -> ClusterOrder:
        """Delete the order whose cluster is to be deleted; its finalizers keep it until that is done."""
        if order.is_deleting:
            return order
        if self._run.check_mode:
            now = self._run.kube.server_time() or datetime.now(UTC)
            marked = order.raw["metadata"] | {"deletionTimestamp": format_time(now)}
            return ClusterOrder.from_object(order.raw | {"metadata": marked}, self._run.names)
        order = self._add_finalizers(order)
        self._run.kube.delete(order.raw, checked=True)
        return self._run.find(order.namespace, order.name) or order


def _working_namespace(order: ClusterOrder, finalizer: str, provider: str) -> Object:
    """The namespace of all of the order's objects. It has no account of its own: the run works with that of the site."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": order.working_namespace,
            "labels": order.labels,
            "annotations": {order.names.provider_annotation: provider},
            "finalizers": [finalizer],
        },
    }


def _require_own(order: ClusterOrder, item: Object, present: Object) -> Object:
    """The wanted namespace; an error where it belongs to another order or is being deleted."""
    require_own(order, present)
    name, called = item["metadata"]["name"], f"ClusterOrder {order.namespace}/{order.name}"
    if "deletionTimestamp" in present["metadata"]:
        raise NamespaceDeleting(f"The namespace {name} of {called} is still being deleted; it is created again once that is done.")
    return item
