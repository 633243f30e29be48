# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The provider of Cluster API clusters: creates, changes, deletes and observes a Cluster and its machine deployments.

A ClusterClass creates the Cluster, whose topology has a machine deployment for each set of nodes. Without a class, the Cluster refers to
an existing control plane and infrastructure, and the machine deployments are objects of their own. What other writers have added to the
topology, an autoscaler's nodes or defaults of variables, stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ...common.types import Object
from ...kube.errors import Invalid
from ...kube.untrusted import kubeconfig_of
from ...lock.fenced_writer import Change, differs
from .. import resources
from ..base import NoSuchCluster, NotReadyYet, Provider
from ..model import ClusterRequest, Kubeconfig, NodeRequest, ObservedCluster, ResourceSet
from ..objects import resource_class_of
from .manifests import API_VERSION, CLUSTER_LABEL, Manifests
from .observe import observed_cluster
from .topology import class_of_entry, entries_of, topology_of, with_foreign_entries, worker_entry

REFERENCE = {
    "type": "dict",
    "options": {
        "apiVersion": {"type": "str", "required": True},
        "kind": {"type": "str", "required": True},
        "name": {"type": "str", "required": True},
    },
}


class ClusterProvider(Provider):
    """A Cluster of the cluster's name, with a machine deployment for each resource class."""

    TYPE = "capi"
    WATCHES = ((API_VERSION, "Cluster"), (API_VERSION, "MachineDeployment"))
    SETTINGS: ClassVar[Mapping[str, Any]] = {
        "cluster_class": {"type": "str"},
        "cluster_class_namespace": {"type": "str"},
        "worker_classes": {"type": "dict", "default": {}},
        "variables": {"type": "dict", "default": {}},
        "control_plane_replicas": {"type": "int", "default": 1},
        "pod_network_cidr": {"type": "str", "default": "192.168.0.0/16"},
        "service_network_cidr": {"type": "str", "default": "10.128.0.0/12"},
        "service_domain": {"type": "str", "default": "cluster.local"},
        "control_plane_ref": REFERENCE,
        "infrastructure_ref": REFERENCE,
        "worker_templates": {"type": "dict", "default": {}},
    }
    NETWORKS = ("pod_network_cidr", "service_network_cidr")

    def create(self, request: ClusterRequest) -> ObservedCluster:
        cluster, deployments = self._read()
        return observed_cluster(self.ref, cluster, deployments) if cluster else self._apply(request, None, deployments)

    def update(self, observed: ObservedCluster, request: ClusterRequest) -> ObservedCluster:
        return self._apply(request, *self._read())

    def _apply(self, request: ClusterRequest, cluster: Object | None, deployments: list[Object]) -> ObservedCluster:
        """Apply the objects of the request, and delete machine deployments of classes that it does not have."""
        manifests = Manifests(self.ref, request)
        required = self._required(*manifests.required_object)
        wanted = manifests.cluster()
        if cluster and not differs(cluster, with_foreign_entries(wanted, cluster)):
            self.changes.append(Change("unchanged", cluster, cluster))
        else:
            self.changes += self.writer.apply([wanted], known=[cluster] if cluster else [])
        after = self.changes[-1].item
        if not manifests.has_class:
            self._apply_deployments(manifests.deployments(), deployments)
            self.changes.append(self.writer.patch(required, lambda _present: {"spec": manifests.control_plane()}))
            deployments = [change.after for change in self.changes if change.after and change.item["kind"] == "MachineDeployment"]
        return observed_cluster(self.ref, after, deployments)

    def _apply_deployments(self, wanted: list[Object], present: list[Object]) -> None:
        names = {item["metadata"]["name"] for item in wanted}
        self.changes += self.writer.apply(wanted, known=present)
        self.changes += self.writer.delete(item for item in present if item["metadata"]["name"] not in names)

    def delete(self, observed: ObservedCluster) -> bool:
        """Cluster API deletes what belongs to a Cluster, machines first, before it removes the Cluster's finalizer."""
        cluster, deployments = self._read()
        self.changes += self.writer.delete([cluster] if cluster else deployments)
        return cluster is None and not deployments

    def status(self, observed: ObservedCluster) -> ObservedCluster:
        return observed_cluster(self.ref, *self._read())

    def observe_objects(self, observed: ObservedCluster, items: Sequence[Object]) -> ObservedCluster:
        clusters = [item for item in items if item["kind"] == "Cluster" and item["metadata"]["name"] == self.ref.name]
        return observed_cluster(self.ref, clusters[0] if clusters else None, [item for item in items if self._is_deployment(item)])

    def kubeconfig(self, observed: ObservedCluster) -> Kubeconfig:
        self._existing()
        secret = self.ref.kube.find("v1", "Secret", f"{self.ref.name}-kubeconfig", self.ref.namespace)
        if secret is None:
            raise NotReadyYet(f"The cluster {self.ref.name} has no kubeconfig yet; it gets one when its endpoint is known.")
        return Kubeconfig(kubeconfig_of(secret, key="value"), secret["metadata"]["resourceVersion"])

    def apply_resources(self, observed: ObservedCluster, resource_set: ResourceSet) -> None:
        resources.apply(self, self.connect(observed), resource_set)

    def remove_resources(self, observed: ObservedCluster, name: str) -> bool:
        return resources.remove(self, self.connect(observed), name)

    def scale(self, observed: ObservedCluster, resource_class: str, nodes: int) -> ObservedCluster:
        cluster = self._existing()
        if topology_of(cluster):
            self.changes.append(self.writer.patch(cluster, lambda present: self._scaled(present, resource_class, nodes)))
            return observed_cluster(self.ref, self.changes[-1].item, self._deployments())
        mine = [item for item in self._deployments() if resource_class_of(item, self.ref.class_label) == resource_class]
        if nodes == 0:
            self.changes += self.writer.delete(mine)
        elif mine:
            self.changes.append(self.writer.patch(mine[0], lambda _present: {"spec": {"replicas": nodes}}))
        else:
            raise Invalid(f"{self.ref.name} has no nodes of class {resource_class}, and no templates for them.", ["resource_class"])
        return observed_cluster(self.ref, cluster, self._deployments())

    def _scaled(self, cluster: Object, resource_class: str, nodes: int) -> Object:
        """The patch of the topology: a list can only be set as a whole. A new class has the same name in the ClusterClass."""
        entries = [dict(entry) for entry in entries_of(cluster)]
        mine = [entry for entry in entries if class_of_entry(entry, self.ref.class_label) == resource_class]
        for entry in mine:
            entry["replicas"] = nodes
        if not mine:
            entries.append(worker_entry(self.ref, NodeRequest(resource_class, nodes), resource_class))
        left = [entry for entry in entries if entry not in mine] if nodes == 0 else entries
        # Neither the list nor what is around it may be empty.
        others = set(topology_of(cluster).get("workers") or {}) - {"machineDeployments"}
        return {"spec": {"topology": {"workers": {"machineDeployments": left or None} if left or others else None}}}

    # Reads

    def _read(self) -> tuple[Object | None, list[Object]]:
        return self.ref.kube.find(API_VERSION, "Cluster", self.ref.name, self.ref.namespace), self._deployments()

    def _existing(self) -> Object:
        cluster = self.ref.kube.find(API_VERSION, "Cluster", self.ref.name, self.ref.namespace)
        if cluster is None:
            raise NoSuchCluster(f"There is no Cluster {self.ref.namespace}/{self.ref.name}.")
        return cluster

    def _deployments(self) -> list[Object]:
        by_cluster = f"{CLUSTER_LABEL}={self.ref.name}"
        return self.ref.kube.list_all(API_VERSION, "MachineDeployment", self.ref.namespace, by_cluster)

    def _is_deployment(self, item: Object) -> bool:
        return item["kind"] == "MachineDeployment" and resource_class_of(item, CLUSTER_LABEL) == self.ref.name

    def _required(self, api_version: str, kind: str, name: str, namespace: str) -> Object:
        """The object that the Cluster refers to: Cluster API accepts a Cluster without it, and then waits indefinitely."""
        found = self.ref.kube.find(api_version, kind, name, namespace)
        if found is None:
            names = sorted(item["metadata"]["name"] for item in self.ref.kube.list_all(api_version, kind, namespace))
            known = f"there are {', '.join(names[:10])}" if names else "there is none"
            raise Invalid(f"There is no {kind} {name} in the namespace {namespace}; {known}.", [])
        return found
