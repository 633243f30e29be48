# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What all steps of one run share: the hub, the templates, the settings. The steps themselves are in `prepare` and `finish`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ..common.types import Object
from ..kube.client import Kube, retry_on_conflict
from ..kube.errors import KubeError
from ..kube.event_recorder import QueuedEventRecorder
from ..lock.fenced_writer import FencedWriter
from ..lock.lease import Lock, verify
from ..providers.base import Provider
from ..providers.factory import ProviderFactory
from ..templates.catalogue import Template, resolve
from ..templates.errors import TemplateError
from .model import ClusterOrder, Names
from .observe import HubView, LiveView, ObservedState, PreparedView, cluster_ref, observe, provider_type


@dataclass(frozen=True)
class Run:
    """One run over one connection. In check mode it reads and predicts everything, and writes nothing.

    With an external controller the order's namespace, the service account in it, the order's own finalizer and its phase belong to
    that controller.
    """

    kube: Kube
    names: Names
    templates: Mapping[str, Template] = field(default_factory=dict)
    check_mode: bool = False
    view: HubView | None = None  # where it observes; without one, by requests

    @functools.cached_property
    def events(self) -> QueuedEventRecorder:
        """Where its steps record Events. Who ends the run flushes them."""
        return QueuedEventRecorder(self.kube)

    @property
    def finalizers(self) -> tuple[str, ...]:
        """The finalizers that this run sets and removes."""
        ours = self.names.infrastructure_finalizer
        return (ours,) if self.names.external_controller else (self.names.controller_finalizer, ours)

    def find(self, namespace: str, name: str) -> ClusterOrder | None:
        item = self.kube.find(self.names.api_version, "ClusterOrder", name, namespace)
        return ClusterOrder.from_object(item, self.names) if item else None

    def observe(self, order: ClusterOrder, *, prepared: bool = False) -> ObservedState:
        """What exists for the order. `prepared`: under the lock that is held, the working namespace was checked already."""
        view = PreparedView(self.kube) if prepared else self.view or LiveView(self.kube)
        return observe(order, view, self.template_provider(order))

    def observe_inside(self, order: ClusterOrder, state: ObservedState) -> ObservedState:
        """The state with what only the cluster itself reports. What it does not report is no error of the run."""
        if not state.cluster.exists or state.cluster.status == "unknown":
            return state
        with contextlib.suppress(KubeError):
            provider = self.provider(order)
            return replace(state, cluster=provider.observe_inside(state.cluster)) if provider else state
        return state

    def provider_of(self, order: ClusterOrder) -> str:
        """The provider of the order's cluster; its template's where the status records none, which may have been lost."""
        return provider_type(order) or self.template_provider(order)

    def template_provider(self, order: ClusterOrder) -> str:
        try:
            return resolve(order.template_id, self.templates).provider
        except TemplateError:
            return ""

    def provider(self, order: ClusterOrder, lock: Lock | None = None) -> Provider | None:
        """The provider for the order's cluster, which can write only under a lock."""
        kind, writer = self.provider_of(order), self.writer(lock) if lock else None
        return ProviderFactory.for_cluster(kind, replace(cluster_ref(self.kube, order), writer=writer)) if kind else None

    def writer(self, lock: Lock) -> FencedWriter:
        return FencedWriter(self.kube, lock, self.names.lock_token_annotation, self.check_mode)

    def annotate(self, order: ClusterOrder, lock: Lock, name: str, value: str) -> ClusterOrder | None:
        """Set an annotation of the order, or remove it with an empty value. None if the order no longer exists."""
        if (order.raw["metadata"].get("annotations") or {}).get(name, "") == value or self.check_mode:
            return order

        def attempt() -> ClusterOrder | None:
            current = self.find(order.namespace, order.name)
            if current is None or current.uid != order.uid:
                return None
            verify(self.kube, lock)
            item = self.kube.patch(current.raw, {"metadata": {"annotations": {name: value or None}}})
            return ClusterOrder.from_object(item, self.names)

        return retry_on_conflict(attempt)

    def change_finalizers(self, item: Object, change: Callable[[list[str]], list[str]]) -> Object | None:
        """Change the current list of finalizers: other controllers have entries in it too. None if the object no longer exists."""
        known: Object | None = item

        def attempt() -> Object | None:
            nonlocal known
            metadata = item["metadata"]
            current = known or self.kube.find(item["apiVersion"], item["kind"], metadata["name"], metadata.get("namespace"))
            known = None
            if current is None or current["metadata"]["uid"] != metadata["uid"]:
                return None
            present = current["metadata"].get("finalizers", [])
            wanted = change(present)
            if wanted == present or self.check_mode:
                return current
            return self.kube.patch(current, {"metadata": {"finalizers": wanted}})

        return retry_on_conflict(attempt)
