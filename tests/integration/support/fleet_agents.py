"""A hub of a fleet with the shipped permissions: its namespace at home with the agent's credential, its agent, and what it made."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.agent import AssignmentReconciler, Outcome
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.assigned_order import UID_LABEL, reference_of
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.cluster_secrets import copy_of, references
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, ASSIGNMENT, hub_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.model import ClusterAssignment
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import target
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Forbidden, KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names

from .fleet import TEMPLATE
from .kubeconfigs import kubeconfig
from .manifests import MANIFESTS, manifest
from .tenants import connect_as

AGENT = "system:serviceaccount:openfleet-system:openfleet-fleet-agent"
ORDERS = "cloudkit.openshift.io/v1alpha1"


@contextlib.contextmanager
def agent_installed(hub: Access) -> Iterator[Access]:
    """The hub with the shipped objects of the agent; the policy is in force."""
    folder = str(MANIFESTS / "fleet_agent")
    hub.kubectl("apply", "-k", folder)
    agent = connect_as(hub, AGENT, "system:serviceaccounts")
    probe = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "outside-of-the-fleet"}}

    def is_refused() -> bool:
        try:
            agent.create(probe, dry_run=True)
        except Forbidden as error:
            return "writes only in namespaces of the fleet" in str(error)
        return False

    try:
        until(is_refused, "the policy for the agent is in force")
        yield hub
    finally:
        hub.kubectl("delete", "-k", folder)


@dataclass
class AgentSite:
    """One hub of a fleet; home and hub may be one cluster."""

    home: Access
    hub: Access
    name: str
    assigned: list[Object] = field(default_factory=list)

    @property
    def namespace(self) -> str:
        return hub_namespace(self.name)

    def set_up(self) -> None:
        """The namespace at home, with the shipped account and role."""
        self.home.kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        for name in ("service_account", "role", "role_binding"):
            item = manifest(f"fleet/hub/{name}")
            item["metadata"]["namespace"] = self.namespace
            for subject in item.get("subjects", ()):
                subject["namespace"] = self.namespace
            self.home.kube.apply(item, force=True)
        until(self._can_list, "the server knows the permissions of the agent")

    def _can_list(self) -> bool:
        try:
            self.credential().list_all(API_VERSION, ASSIGNMENT, self.namespace)
        except KubeError:
            return False
        return True

    def kubeconfig(self, server: str = "") -> Object:
        """The kubeconfig of the agent for the home cluster, with a token of its account."""
        content = kubeconfig(self.home)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent", "namespace": self.namespace}}
        token, _expires = self.home.kube.request_token(account, 3600)
        content["users"] = [{"name": each["name"], "user": {"token": token}} for each in content["users"]]
        if server:
            for each in content["clusters"]:
                each["cluster"]["server"] = server
        return content

    def kubeconfig_file(self, folder: Path, server: str = "") -> Path:
        file = folder / f"{self.name}.kubeconfig"
        file.write_text(yaml.safe_dump(self.kubeconfig(server)), encoding="utf-8")
        return file

    def credential(self) -> Kube:
        return Kube(target({"kubeconfig": self.kubeconfig()}, {}))

    def agent_on_hub(self) -> Kube:
        return connect_as(self.hub, AGENT, "system:serviceaccounts")

    def reconciler(self, home: Kube | None = None, hub: Kube | None = None, templates: Any = None) -> AssignmentReconciler:
        return AssignmentReconciler(home or self.credential(), hub or self.agent_on_hub(), Names(), templates or {})

    # What the home cluster does

    def assign(self, name: str = "demo", nodes: int = 2, tenant: str = "team", **spec: Any) -> Object:
        uid = str(uuid.uuid4())
        sets = {"nodeSets": {"workers": {"class": "fc430", "size": nodes}}} if nodes else {}
        item = {
            "apiVersion": API_VERSION,
            "kind": ASSIGNMENT,
            "metadata": {"name": uid, "namespace": self.namespace},
            "spec": {"cluster": {"namespace": tenant, "name": name, "uid": uid}, "template": TEMPLATE, **sets, **spec},
        }
        created = self.home.kube.create(item, strict=True)
        self.assigned.append(created)
        return created

    def assignment(self, item: Object) -> Object | None:
        return self.home.kube.find(API_VERSION, ASSIGNMENT, item["metadata"]["name"], self.namespace)

    def current(self, item: Object) -> Object:
        found = self.assignment(item)
        assert found is not None
        return found

    def status(self, item: Object) -> Object:
        found: Object = self.current(item).get("status") or {}
        return found

    def change(self, item: Object, **spec: Any) -> Object:
        return self.home.kube.patch(self.current(item), {"spec": spec}, checked=False)  # an agent may write the status meanwhile

    def delete(self, item: Object) -> None:
        self.home.kube.delete(self.current(item))

    def copy_secrets(self, item: Object, secrets: dict[str, Object]) -> None:
        """As the home engine does."""
        uid = item["metadata"]["name"]
        self.home.kube.apply(copy_of(self.name, uid, references(item["spec"]["templateParameters"]), secrets.get), force=True)

    # What the hub has

    def reconcile(self, item: Object, reconciler: AssignmentReconciler | None = None) -> Outcome:
        copied = self.home.kube.find("v1", "Secret", item["metadata"]["name"], self.namespace)
        return (reconciler or self.reconciler()).reconcile(self.current(item), None, copied)

    def reference(self, item: Object) -> tuple[str, str]:
        reference = reference_of(ClusterAssignment.from_object(item))
        return reference.namespace, reference.name

    def order(self, item: Object) -> Object | None:
        namespace, name = self.reference(item)
        return self.hub.kube.find(ORDERS, "ClusterOrder", name, namespace)

    def report(self, item: Object, phase: str, **status: Any) -> None:
        """As the engine of the hub does: the status of the order, about its present spec."""
        order = self.order(item)
        assert order is not None
        known = {"phase": phase, "observedGeneration": order["metadata"]["generation"]}
        self.hub.kube.patch(order, {"status": known | status}, subresource="status", checked=False)  # an agent may mark it meanwhile

    def clean_up(self) -> None:
        for item in self.home.kube.list_all(API_VERSION, ASSIGNMENT, self.namespace):
            self.home.kube.patch(item, {"metadata": {"finalizers": None}}, checked=False)
        for item in self.assigned:
            if order := self.order(item):
                self.hub.kube.patch(order, {"metadata": {"finalizers": None}}, checked=False)
        uids = {item["metadata"]["name"] for item in self.assigned}
        for namespace in self.hub.kube.list_all("v1", "Namespace", label_selector=UID_LABEL):
            if namespace["metadata"]["labels"][UID_LABEL] in uids:
                self.hub.kube.delete(namespace)
        self.home.kube.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})


@contextlib.contextmanager
def agent_site(home: Access, hub: Access, name: str) -> Iterator[AgentSite]:
    site = AgentSite(home, hub, name)
    try:
        site.set_up()
        yield site
    finally:
        site.clean_up()


def parameters_of(order: Object) -> Any:
    return json.loads(order["spec"]["templateParameters"])
