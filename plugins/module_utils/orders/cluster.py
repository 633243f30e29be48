# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One cluster as a task works on it: that of an order, or one without an order. Only the factory knows its provider."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from ..common.types import Object
from ..infrastructure.cluster_owner import ClusterOwner
from ..infrastructure.dns_recorded import with_domain
from ..kube.client import Kube
from ..kube.errors import Invalid
from ..lock.fenced_writer import Change, FencedWriter
from ..lock.lease import DURATION, Lock, acquire, predict, read, release
from ..lock.renewer import renewed
from ..lock.run_process import RunProcess
from ..providers.base import ClusterRef, NotReadyYet, Provider, ProviderError
from ..providers.factory import ProviderFactory, checked
from ..providers.model import ClusterRequest, ObservedCluster
from .model import ClusterOrder, Names, label_value
from .observe import cluster_ref, provider_type, recorded_cluster
from .ownership import former_uids, require_own

POLL_SECONDS = 1.0
Found = TypeVar("Found")


@dataclass(frozen=True)
class TaskCluster:
    """The cluster of a task and its provider, which finds it by what is `recorded` of it.

    Its lock is `lock_name` in `lock_namespace`: that of its order, so that a task and the playbooks never change it at once.
    """

    ref: ClusterRef
    provider: str
    names: Names
    recorded: ObservedCluster
    lock_namespace: str
    lock_name: str
    order: ClusterOrder | None = None

    @classmethod
    def of_order(cls, kube: Kube, order: ClusterOrder, provider: str | None) -> TaskCluster:
        made_by = provider_type(order)
        if provider and made_by and provider != made_by:
            raise Invalid(
                f"The cluster of {order.namespace}/{order.name} was created by the provider {made_by} and cannot be served by {provider};"
                " delete the order and create another one to change the provider.",
                ["provider"],
            )
        if not provider and not made_by:
            raise Invalid(f"No provider is known for {order.namespace}/{order.name} yet: set provider.", ["provider"])
        ref = cluster_ref(kube, order)
        return cls(ref, made_by or provider or "", order.names, recorded_cluster(order), order.namespace, order.name, order)

    @classmethod
    def by_name(cls, kube: Kube, names: Names, name: str, namespace: str, provider: str) -> TaskCluster:
        """A cluster without an order. Its labels distinguish it from others in the namespace."""
        labels = {f"{names.group}/cluster": label_value(name)}
        ref = ClusterRef(kube, name, namespace, labels, names.resource_class_label, allowed_addresses=names.allowed_addresses)
        return cls(ref, provider, names, ObservedCluster(), lock_namespace=namespace, lock_name=name)

    @property
    def owner(self) -> ClusterOwner:
        """As inventories, pools and DNS zones of the site record it."""
        of_order = (self.order.uid, self.names.group) if self.order else ()
        return ClusterOwner(self.lock_namespace, self.lock_name, *of_order)

    def reader(self) -> Provider:
        """The provider without permission to change anything."""
        return ProviderFactory.for_cluster(self.provider, self.ref)

    def former_uids(self) -> tuple[str, ...]:
        """The uids of the orders that had the cluster before this one adopted it."""
        namespace = self._working_namespace()
        return former_uids(namespace, self.names) if namespace else ()

    def record_dns(self, writer: FencedWriter, domain: str, zone: str, options: Mapping[str, Any]) -> None:
        """Note on the working namespace, before the first record is written, where the cluster has DNS records."""
        key, namespace = self.names.dns_annotation, self._working_namespace()

        def change(present: Object) -> Object:
            text = (present["metadata"].get("annotations") or {}).get(key, "")
            return {"metadata": {"annotations": {key: with_domain(text, domain, zone, options)}}}

        if namespace:
            writer.patch(namespace, change)

    def _working_namespace(self) -> Object | None:
        return self.ref.kube.find("v1", "Namespace", self.ref.namespace) if self.order else None

    def _require_own_namespace(self) -> None:
        namespace = self._working_namespace()
        if self.order and namespace:
            require_own(self.order, namespace)

    @contextlib.contextmanager
    def locked(self, lock: Lock | None, holder: str, check_mode: bool, run: RunProcess) -> Iterator[Provider]:
        """The provider under the lock of the run, or under the cluster's own, which is held within the context while `run` lives."""
        kube, own = self.ref.kube, lock is None
        if lock is None and check_mode:
            state = read(kube, self.lock_namespace, self.lock_name, site=self.names.site_namespace)
            lock = predict(state, holder, DURATION, kube.server_time())
        elif lock is None:
            lock = acquire(kube, self.lock_namespace, self.lock_name, holder, site=self.names.site_namespace, alive=run.require)
        try:
            run.require()
            if own:  # a run has checked it when it prepared the order
                self._require_own_namespace()
            writer = FencedWriter(kube, lock, self.names.lock_token_annotation, check_mode)
            with renewed(kube, lock, run) if own and not check_mode else contextlib.nullcontext():
                yield ProviderFactory.for_cluster(self.provider, replace(self.ref, writer=writer, check_mode=check_mode))
        finally:
            if own and not check_mode:
                release(kube, lock)


def create_or_update(provider: Provider, recorded: ObservedCluster, request: ClusterRequest) -> ObservedCluster:
    """Create the cluster, or update it to the request."""
    wanted = checked(type(provider), request)
    provider.use_credentials_of(wanted)
    spec = provider.status(recorded)
    if spec.is_deleting:
        raise NotReadyYet(f"The cluster {provider.ref.name} is still being deleted; it can be created again once that is done.")
    return provider.update(spec, wanted) if spec.exists else provider.create(wanted)


def wait_until_ready(provider: Provider, spec: ObservedCluster, timeout: float) -> ObservedCluster:
    """Poll until the cluster is ready. A failed one ends the wait."""

    def ready() -> ObservedCluster | None:
        cluster = provider.status(spec)
        if cluster.status == "failed":
            raise ProviderError(f"The cluster {provider.ref.name} has failed: {cluster.status_details}.")
        return cluster if cluster.status == "ready" else None

    def problem() -> str:
        cluster = provider.status(spec)
        return f"The cluster {provider.ref.name} is not ready after {timeout:g} s: it is {cluster.status}, {cluster.status_details}."

    return _poll(ready, timeout, problem)


def wait_until_deleted(try_to_delete: Callable[[], bool], name: str, timeout: float) -> None:
    """Delete until nothing is left; repeatedly, because one step of a deletion may depend on the end of another."""
    _poll(try_to_delete, timeout, lambda: f"The cluster {name} is not deleted after {timeout:g} s; its deletion continues.")


def _poll(attempt: Callable[[], Found | None], timeout: float, problem: Callable[[], str]) -> Found:
    deadline = time.monotonic() + timeout
    while True:
        found = attempt()
        if found:
            return found
        if time.monotonic() >= deadline:
            raise NotReadyYet(problem())
        time.sleep(POLL_SECONDS)


def shown(subject: TaskCluster, spec: ObservedCluster) -> Object:
    """A cluster for a task's result."""
    fields = ("internal_id", "external_id", "status", "status_details", "retryable", "cloud_provider", "region", "multi_az")
    more = ("version", "running_version", "desired_version", "api_url", "console_url", "installed", "updating", "change_refused")
    return {
        "name": subject.ref.name,
        "namespace": subject.ref.namespace,
        "provider": subject.provider,
        **{name: getattr(spec, name) for name in (*fields, *more)},
        "available_updates": list(spec.available_updates),
        "node_sets": [asdict(item) for item in spec.node_sets],
        "conditions": {kind: asdict(verdict) for kind, verdict in spec.conditions.items()},
        "additional_info": dict(spec.additional_info),
    }


def objects(changes: Sequence[Change]) -> list[Object]:
    """The changes for a task's result, one entry for each object."""
    return [{"kind": change.item["kind"], "name": change.item["metadata"]["name"], "action": change.action} for change in changes]
