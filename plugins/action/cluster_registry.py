# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Register clusters and check their health. Documented in the module of the same name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.clients import ClusterClients
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.health import EXPIRING
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.model import ClusterRegistry, registry_result, to_yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.status import without_times
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.store import RegistryChange, RegistryStore, clusters_of_policy
from ansible_collections.openfleet.clusters.plugins.modules import cluster_registry
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SHARED: ClassVar[Spec] = KUBERNETES
    SPEC: ClassVar[Spec] = cluster_registry.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        namespace, name, state = parameters["namespace"], parameters["name"], parameters["state"]
        if state != "present" and parameters["dr_policy"]:
            return {"failed": True, "msg": f"dr_policy needs state=present: remove it for state={state}."}
        if state == "checked" and parameters["clusters"] is not None:
            return {"failed": True, "msg": "state=checked checks all clusters of the registry: remove clusters."}
        if parameters["timeout"] < 1:
            return {"failed": True, "msg": f"timeout is {parameters['timeout']}: set at least 1 second."}
        store = RegistryStore(kube, parameters["kind"], self.check_mode)
        if state == "checked":
            return self._check(kube, store, parameters)
        if state == "present":
            change = store.register(namespace, name, self._wanted(kube, parameters))
        elif parameters["clusters"] is None:
            change = store.delete(namespace, name)
        else:
            change = store.unregister(namespace, name, [cluster["name"] for cluster in parameters["clusters"]])
        return _answer(change, _clusters_of(change.before), _clusters_of(change.after))

    def _wanted(self, kube: Kube, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        """The named clusters and those of the policy. Values of the task have priority."""
        named: list[dict[str, Any]] = parameters["clusters"] or []
        if not parameters["dr_policy"]:
            return named
        names = {cluster["name"] for cluster in named}
        policy = {cluster["name"]: cluster for cluster in clusters_of_policy(kube, parameters["dr_policy"])}
        merged = [
            policy.get(cluster["name"], {}) | {key: value for key, value in cluster.items() if value is not None} for cluster in named
        ]
        return [cluster for name, cluster in policy.items() if name not in names] + merged

    def _check(self, kube: Kube, store: RegistryStore, parameters: dict[str, Any]) -> dict[str, Any]:
        namespace, name = parameters["namespace"], parameters["name"]
        registry = store.get(namespace, name)
        checked = ClusterClients(kube, namespace, parameters["timeout"]).check(registry.clusters)
        change = store.write_status(namespace, name, checked, kube.server_time() or datetime.now(UTC))
        before, after = (to_yaml(without_times(item.status)) if item and item.status else "" for item in (change.before, change.after))
        warnings = [f"Cluster {cluster}: {health.message}" for cluster, health in checked.items() if health.reason == EXPIRING]
        answer = _answer(change, before, after) | {"unhealthy": [cluster for cluster, health in checked.items() if not health.healthy]}
        return answer | ({"warnings": warnings} if warnings else {})


def _clusters_of(registry: ClusterRegistry | None) -> str:
    return to_yaml([cluster.to_object() for cluster in registry.clusters]) if registry else ""


def _answer(change: RegistryChange, before: str, after: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"changed": change.changed}
    if change.after:
        answer["registry"] = registry_result(change.after)
    if change.changed:
        answer["diff"] = {"before": before, "after": after}
    return answer
