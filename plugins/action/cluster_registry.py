# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Register clusters, and find out how they are. Documented in the module of the same name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.clients import ClusterClients
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.model import (
    EXPIRING,
    ClusterRegistry,
    as_text,
    shown,
    without_times,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.store import RegistryChange, RegistryStore, clusters_of_policy
from ansible_collections.openfleet.clusters.plugins.modules import cluster_registry
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SHARED: ClassVar[Spec] = KUBERNETES
    SPEC: ClassVar[Spec] = cluster_registry.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        namespace, name, state = parameters["namespace"], parameters["name"], parameters["state"]
        if state != "present" and parameters["dr_policy"]:
            return {"failed": True, "msg": f"dr_policy is for state=present; state={state} takes no policy."}
        if state == "checked" and parameters["clusters"] is not None:
            return {"failed": True, "msg": "state=checked looks at all clusters of the registry; leave clusters out."}
        if parameters["timeout"] < 1:
            return {"failed": True, "msg": f"timeout is {parameters['timeout']}; give a cluster one second at least."}
        store = RegistryStore(kube, parameters["kind"], self.check_mode)
        if state == "checked":
            return self._check(kube, store, parameters)
        if state == "present":
            change = store.register(namespace, name, self._wanted(kube, parameters))
        elif parameters["clusters"] is None:
            change = store.remove(namespace, name)
        else:
            change = store.unregister(namespace, name, [cluster["name"] for cluster in parameters["clusters"]])
        return _answer(change, _clusters_of(change.before), _clusters_of(change.after))

    def _wanted(self, kube: Kube, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        """The clusters that are named, and those of the policy; what the task says of one is stronger."""
        named: list[dict[str, Any]] = parameters["clusters"] or []
        if not parameters["dr_policy"]:
            return named
        names = {cluster["name"] for cluster in named}
        found = {cluster["name"]: cluster for cluster in clusters_of_policy(kube, parameters["dr_policy"])}
        said = [found.get(cluster["name"], {}) | {key: value for key, value in cluster.items() if value is not None} for cluster in named]
        return [cluster for name, cluster in found.items() if name not in names] + said

    def _check(self, kube: Kube, store: RegistryStore, parameters: dict[str, Any]) -> dict[str, Any]:
        namespace, name = parameters["namespace"], parameters["name"]
        registry = store.get(namespace, name)
        found = ClusterClients(kube, namespace, parameters["timeout"]).look(registry.clusters)
        change = store.record(namespace, name, found, kube.server_time() or datetime.now(UTC))
        before, after = (as_text(without_times(item.status)) if item and item.status else "" for item in (change.before, change.after))
        warnings = [f"Cluster {cluster}: {health.message}" for cluster, health in found.items() if health.reason == EXPIRING]
        answer = _answer(change, before, after) | {"unhealthy": [cluster for cluster, health in found.items() if not health.healthy]}
        return answer | ({"warnings": warnings} if warnings else {})


def _clusters_of(registry: ClusterRegistry | None) -> str:
    return as_text([cluster.to_object() for cluster in registry.clusters]) if registry else ""


def _answer(change: RegistryChange, before: str, after: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"changed": change.changed}
    if change.after:
        answer["registry"] = shown(change.after)
    if change.changed:
        answer["diff"] = {"before": before, "after": after}
    return answer
