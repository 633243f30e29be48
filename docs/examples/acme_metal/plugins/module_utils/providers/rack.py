"""ACME's racks: a cluster is a ConfigMap, from which the rack's controller reads the request and to which it writes the state."""

from __future__ import annotations

import base64
import json
from typing import ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.providers import resources
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import NotReadyYet, Provider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import (
    AVAILABLE,
    ConditionState,
    Kubeconfig,
    NodeSet,
    ObservedCluster,
)

# The states that the controller writes, and those of the interface.
STATES = {"": "cluster_accepted", "mounting": "cluster_provisioning", "up": "ready", "broken": "failed"}


class ClusterProvider(Provider):
    TYPE = "acme.metal.rack"
    SETTINGS: ClassVar = {"rack": {"type": "str", "required": True, "description": "The rack of the machines."}}

    def create(self, request):
        found = self._find()
        return self._observed(found) if found else self._apply(request)

    def update(self, observed, request):
        return self._apply(request)

    def delete(self, observed):
        found = self._find()
        if found:
            self.changes += self.writer.delete([found])
        return self._find() is None

    def status(self, observed):
        found = self._find()
        return self._observed(found) if found else ObservedCluster()

    def kubeconfig(self, observed):
        secret = self.ref.kube.find("v1", "Secret", f"{self.ref.name}-rack-kubeconfig", self.ref.namespace)
        if secret is None:
            raise NotReadyYet(f"The rack has no kubeconfig of {self.ref.name} yet; it writes one when the machines are up.")
        return Kubeconfig(json.loads(base64.b64decode(secret["data"]["kubeconfig"])), secret["metadata"]["resourceVersion"])

    def apply_resources(self, observed, resource_set):
        resources.apply(self, self.connect(observed), resource_set)

    def remove_resources(self, observed, name):
        return resources.remove(self, self.connect(observed), name)

    def _find(self):
        return self.ref.kube.find("v1", "ConfigMap", f"{self.ref.name}-rack", self.ref.namespace)

    def _apply(self, request):
        machines = {item.resource_class: str(item.number_of_nodes) for item in request.node_requests}
        wanted = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{self.ref.name}-rack", "namespace": self.ref.namespace, "labels": dict(self.ref.labels)},
            "data": {"rack": request.settings["rack"], "machines": json.dumps(machines, sort_keys=True)},
        }
        self.changes += self.writer.apply([wanted])
        return self._observed(self.changes[-1].after)

    def _observed(self, found):
        data, deleting = found["data"], "deletionTimestamp" in found["metadata"]
        state = data.get("state", "")
        up = ConditionState("True" if state == "up" else "False", "ReportedByRack", data.get("reason", ""))
        return ObservedCluster(
            internal_id=found["metadata"]["uid"],
            status="deprovisioning" if deleting else STATES.get(state, "failed"),
            status_details=data.get("reason", ""),
            node_sets=tuple(
                NodeSet(name, name, int(requested), int(data.get("ready", 0))) for name, requested in json.loads(data["machines"]).items()
            ),
            installed=state == "up",
            conditions={AVAILABLE: up},
        )
