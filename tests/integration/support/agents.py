"""Agents of a sandbox hub: hosts as the infrastructure operator discovers them, and what claims have made of them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import CONFIG_MAP
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE

API_VERSION, GROUP = "agent-install.openshift.io/v1beta1", "cloudkit.openshift.io"
CLAIM, CLASS, CLAIMED_CLASS, CLEANING = (f"{GROUP}/{name}" for name in ("claim", "resource-class", "claimed-class", "cleaning"))
ZONE = "topology.kubernetes.io/zone"
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP, "namespace": SITE_NAMESPACE}}


@dataclass(frozen=True)
class Agents:
    """The Agents of one namespace."""

    hub: Access
    namespace: str

    @property
    def kube(self) -> Kube:
        return self.hub.kube

    def discover(self, hosts: Mapping[str, Mapping[str, str]]) -> None:
        """Create Agents with these labels, and wait until the stand-in has reported them."""
        created = self.kube.in_parallel(lambda item: self.kube.create(self._agent(*item)), hosts.items())
        assert not [each for each in created if isinstance(each, KubeError)]

        def reported() -> bool:
            found = {agent["metadata"]["name"]: agent for agent in self.all()}
            return all(found[name].get("status", {}).get("conditions") for name in hosts)

        until(reported, f"{len(hosts)} Agents are reported")

    def _agent(self, name: str, labels: Mapping[str, str]) -> Object:
        metadata = {"name": name, "namespace": self.namespace, "labels": dict(labels)}
        return {"apiVersion": API_VERSION, "kind": "Agent", "metadata": metadata, "spec": {"approved": False, "role": ""}}

    def all(self) -> list[Object]:
        return self.kube.list_all(API_VERSION, "Agent", self.namespace)

    def get(self, name: str) -> Any:
        return self.kube.find(API_VERSION, "Agent", name, self.namespace)

    def patch(self, name: str, patch: Object) -> None:
        self.kube.patch(self._agent(name, {}), patch, checked=False)

    def delete(self, name: str) -> None:
        self.kube.delete(self._agent(name, {}))

    def claims(self) -> dict[str, list[str]]:
        """The marked hosts by the cluster that has them."""
        found: dict[str, list[str]] = {}
        for agent in self.all():
            if CLAIM in agent["metadata"]["labels"]:
                found.setdefault(agent["metadata"]["labels"][CLAIM], []).append(agent["metadata"]["name"])
        return {key: sorted(names) for key, names in found.items()}

    def bound(self) -> list[str]:
        return sorted(agent["metadata"]["name"] for agent in self.all() if agent["spec"].get("clusterDeploymentName"))

    def recorded(self) -> dict[str, list[str]]:
        """The recorded hosts by the cluster that has them."""
        record = self.kube.find("v1", "ConfigMap", f"host-claims-agents-{self.namespace}", SITE_NAMESPACE)
        claims = {key: json.loads(text)["hosts"] for key, text in ((record or {}).get("data") or {}).items()}
        return {key: sorted(name for names in hosts.values() for name in names) for key, hosts in claims.items()}


@contextlib.contextmanager
def agents_on(hub: Access) -> Iterator[Agents]:
    """A new namespace for Agents."""
    with fresh_namespace(hub) as namespace:
        try:
            yield Agents(hub, namespace)
        finally:
            record = {"apiVersion": "v1", "kind": "ConfigMap"}
            hub.kube.delete(record | {"metadata": {"name": f"host-claims-agents-{namespace}", "namespace": SITE_NAMESPACE}})


@contextlib.contextmanager
def site_agents(hub: Access) -> Iterator[Agents]:
    """A new namespace for Agents, which the settings of the site name as its inventory. Afterwards all settings are as before."""
    with agents_on(hub) as found:
        before = _settings(hub.kube)
        configure(hub.kube, agent_namespace=found.namespace)
        try:
            yield found
        finally:
            hub.kube.patch(SETTINGS, {"data": dict.fromkeys(_settings(hub.kube)) | before}, checked=False)


def _settings(kube: Kube) -> Object:
    data: Object = kube.get("v1", "ConfigMap", CONFIG_MAP, SITE_NAMESPACE).get("data") or {}
    return data


def configure(kube: Kube, **settings: Any) -> None:
    """Change the settings of the site; None removes one."""
    data = {key: value if value is None else yaml.safe_dump(value) for key, value in settings.items()}
    kube.patch(SETTINGS, {"data": data}, checked=False)


def hosts(count: int, resource_class: str = "fc430", zones: int = 1, start: str = "host") -> dict[str, dict[str, str]]:
    return {f"{start}-{number:03}": {CLASS: resource_class, ZONE: f"rack-{number % zones}"} for number in range(count)}
