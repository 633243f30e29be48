"""A fleet on one cluster that is home and hub at once: hubs that tests report for, tenants with clusters, and what became of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import format_time
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_report import (
    CONFIG_MAP,
    KEY,
    LEASE,
    Check,
    HubReport,
    OfferedTemplate,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import (
    API_VERSION,
    ASSIGNMENT,
    CLUSTER,
    HUB,
    QUOTA,
    QUOTA_NAME,
    RECORD,
    hub_namespace,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.observe import observe
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.reconcile import Reconciler
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube

TEMPLATE = "openfleet.clusters.ocp_4_17_small"


@dataclass
class Fleet:
    """The fleet of one test. Its hubs have the name of the tenant's namespace as a prefix, so tests do not meet each other's."""

    access: Access
    namespace: str
    hubs: list[str] = field(default_factory=list)

    @property
    def home(self) -> Kube:
        return self.access.kube

    def source_arguments(self) -> dict[str, Any]:
        """Of an event source whose site is the namespace of the test, so that the sources of several tests do not elect one leader."""
        return {"kubeconfig": str(self.access.kubeconfig), "site_namespace": self.namespace}

    def add_hub(self, name: str, clusters: int = 10, nodes: int = 10, **spec: Any) -> str:
        """A hub that reports as its agent would: ready, with one template."""
        full = f"{self.namespace}-{name}"
        self.home.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": hub_namespace(full)}})
        self.hubs.append(full)
        capacity = {"clusters": clusters, "nodes": {"fc430": nodes}}
        created = self.home.create(
            {"apiVersion": API_VERSION, "kind": HUB, "metadata": {"name": full}, "spec": {"capacity": capacity} | spec}, strict=True
        )
        now = format_time(datetime.now(UTC))
        ready = {"type": "Ready", "status": "True", "reason": "ChecksPassed", "message": "", "lastTransitionTime": now}
        status = {"heartbeat": "2099-01-01T00:00:00Z", "templates": [{"name": TEMPLATE}], "conditions": [ready]}
        self.home.patch(created, {"status": status}, subresource="status", strict=True)
        self.renew(full, datetime(2099, 1, 1, tzinfo=UTC))
        self.report_hub(full, HubReport((Check("crds", passed=True),), templates=(OfferedTemplate(TEMPLATE),)))
        return full

    def renew(self, hub: str, at: datetime | None = None) -> None:
        """The heartbeat of the hub's agent."""
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE, "namespace": hub_namespace(hub)}}
        renewed = (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self.home.apply(lease | {"spec": {"holderIdentity": "agent", "renewTime": renewed}}, force=True)

    def report_hub(self, hub: str, report: HubReport | str) -> None:
        """The report of the hub's agent."""
        metadata = {"name": CONFIG_MAP, "namespace": hub_namespace(hub)}
        text = report if isinstance(report, str) else report.to_json()
        self.home.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text}}, force=True)

    def set_quota(self, namespace: str | None = None, **spec: Any) -> None:
        metadata = {"name": QUOTA_NAME, "namespace": namespace or self.namespace}
        self.home.apply({"apiVersion": API_VERSION, "kind": QUOTA, "metadata": metadata, "spec": spec}, force=True)

    def add_cluster(self, name: str, nodes: int = 0, **spec: Any) -> Object:
        sets = {"nodeSets": {"workers": {"class": "fc430", "size": nodes}}} if nodes else {}
        metadata = {"name": name, "namespace": self.namespace}
        return self.home.create(
            {"apiVersion": API_VERSION, "kind": CLUSTER, "metadata": metadata, "spec": {"template": TEMPLATE} | sets | spec}, strict=True
        )

    def reconcile(self, after: timedelta = timedelta()) -> dict[str, tuple[str, str]]:
        """Reconcile the tenant's clusters once, as if so much time had passed. Returns result and message by name."""
        observed = observe(self.home, self.namespace)
        outcomes = Reconciler(self.home, self.namespace).reconcile(replace(observed, now=observed.now + after))
        return {each.cluster.name: (each.result, each.message) for each in outcomes}

    def cluster(self, name: str) -> Object:
        return self.home.get(API_VERSION, CLUSTER, name, self.namespace)

    def condition(self, name: str, kind: str) -> tuple[str, str, str]:
        found = next(each for each in self.cluster(name)["status"]["conditions"] if each["type"] == kind)
        return found["status"], found["reason"], found["message"]

    def resize(self, name: str, nodes: int) -> None:
        changes = {"spec": {"nodeSets": {"workers": {"class": "fc430", "size": nodes}}}}
        self.home.patch(self.cluster(name), changes, checked=False)  # an engine may write the status meanwhile

    def quota(self, namespace: str | None = None) -> Object:
        status: Object = self.home.get(API_VERSION, QUOTA, QUOTA_NAME, namespace or self.namespace).get("status") or {}
        return {"used": status.get("used") or {}, "reservations": status.get("reservations") or {}}

    def hub(self, name: str) -> Object:
        status: Object = self.home.get(API_VERSION, HUB, name)["status"]
        return status

    def assignments(self) -> list[Object]:
        return [item for hub in self.hubs for item in self.home.list_all(API_VERSION, ASSIGNMENT, hub_namespace(hub))]

    def report(self, name: str, nodes: int, **status: Any) -> None:
        """Report as the agent of the hub would, about the present spec of the assignment."""
        uid = self.cluster(name)["metadata"]["uid"]
        item = until(lambda: next((each for each in self.assignments() if each["metadata"]["name"] == uid), None), "the assignment", 60)
        sets = {"workers": {"class": "fc430", "size": nodes, "ready": nodes}}
        known = {"observedGeneration": item["metadata"]["generation"], "nodeSets": sets}
        self.home.patch(item, {"status": known | status}, subresource="status", strict=True, checked=False)

    def records(self) -> list[Object]:
        return list(self.home.list_all(API_VERSION, RECORD, self.namespace))

    def clean_up(self) -> None:
        """Hubs with their namespaces, clusters and records: an engine follows all namespaces, so the next test would meet them."""
        for kind in (CLUSTER, RECORD):
            for item in self.home.list_all(API_VERSION, kind, self.namespace):
                if item["metadata"].get("finalizers"):
                    self.home.patch(item, {"metadata": {"finalizers": None}}, checked=False)
                self.home.delete(item)
        for name in self.hubs:
            self.home.delete({"apiVersion": API_VERSION, "kind": HUB, "metadata": {"name": name}})
            self.home.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": hub_namespace(name)}})


@contextlib.contextmanager
def fleet_of(access: Access, namespace: str) -> Iterator[Fleet]:
    fleet = Fleet(access, namespace)
    try:
        yield fleet
    finally:
        fleet.clean_up()
