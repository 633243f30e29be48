# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The objects of a request for a Cluster API cluster: the Cluster and, without a class, MachineDeployments. Pure; it sends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...common.types import Object
from ...kube.errors import Invalid
from ..base import ClusterRef
from ..model import ClusterRequest, NodeRequest
from ..objects import metadata, node_set_name
from .topology import worker_entry

API_VERSION = "cluster.x-k8s.io/v1beta2"
CLUSTER_LABEL = "cluster.x-k8s.io/cluster-name"


class Manifests:
    """The objects of one request."""

    def __init__(self, ref: ClusterRef, request: ClusterRequest) -> None:
        self._ref = ref
        self._request = request
        self._settings = request.settings
        self.has_class = bool(self._settings.get("cluster_class"))
        self._check()

    def _check(self) -> None:
        references = [name for name in ("control_plane_ref", "infrastructure_ref") if self._settings.get(name)]
        if self.has_class and references:
            raise Invalid(f"A cluster has either a cluster_class or references, not both: leave out {', '.join(references)}.", references)
        if not self.has_class and len(references) < 2:
            raise Invalid("Set cluster_class, or control_plane_ref and infrastructure_ref.", ["cluster_class"])
        if not self._request.version:
            raise Invalid("Set the version of Kubernetes, for example v1.36.3.", ["version"])
        if not self.has_class:
            for item in self._request.node_requests:
                template = self._settings["worker_templates"].get(item.resource_class)
                if not isinstance(template, Mapping) or not all(
                    _is_reference(template.get(part)) for part in ("bootstrap", "infrastructure")
                ):
                    raise Invalid(
                        f"worker_templates has no bootstrap and infrastructure, with apiVersion, kind and name, for {item.resource_class}.",
                        ["worker_templates"],
                    )

    @property
    def required_object(self) -> tuple[str, str, str, str]:
        """The object that must exist already: apiVersion, kind, name and namespace."""
        if self.has_class:
            return API_VERSION, "ClusterClass", self._settings["cluster_class"], self._class_namespace
        reference = self._settings["control_plane_ref"]
        return reference["apiVersion"], reference["kind"], reference["name"], self._ref.namespace

    @property
    def _class_namespace(self) -> str:
        return self._settings.get("cluster_class_namespace") or self._ref.namespace

    @property
    def _version(self) -> str:
        """With the v that Cluster API would prepend."""
        return f"v{self._request.version.removeprefix('v')}"

    def cluster(self) -> Object:
        settings = self._settings
        network = {
            "pods": {"cidrBlocks": [settings["pod_network_cidr"]]},
            "services": {"cidrBlocks": [settings["service_network_cidr"]]},
            "serviceDomain": settings["service_domain"],
        }
        if self.has_class:
            source: Object = {"topology": self._topology()}
        else:
            source = {
                "controlPlaneRef": _reference(settings["control_plane_ref"]),
                "infrastructureRef": _reference(settings["infrastructure_ref"]),
            }
        return {
            "apiVersion": API_VERSION,
            "kind": "Cluster",
            "metadata": metadata(self._ref, self._ref.name),
            "spec": {"clusterNetwork": network, **source},
        }

    def _topology(self) -> Object:
        settings = self._settings
        entries = [
            worker_entry(self._ref, item, settings["worker_classes"].get(item.resource_class, item.resource_class))
            for item in self._request.node_requests
        ]
        topology: Object = {
            "classRef": {"name": settings["cluster_class"], "namespace": self._class_namespace},
            "version": self._version,
            "controlPlane": {"replicas": settings["control_plane_replicas"]},
        }
        if entries:
            topology["workers"] = {"machineDeployments": entries}
        if settings["variables"]:
            topology["variables"] = [{"name": name, "value": value} for name, value in settings["variables"].items()]
        return topology

    def control_plane(self) -> Object:
        """The part of the spec that every kind of control plane has."""
        return {"version": self._version, "replicas": self._settings["control_plane_replicas"]}

    def deployments(self) -> list[Object]:
        return [self._deployment(item) for item in self._request.node_requests]

    def _deployment(self, item: NodeRequest) -> Object:
        name = self._ref.name
        templates = self._settings["worker_templates"][item.resource_class]
        labels = {self._ref.class_label: item.resource_class, CLUSTER_LABEL: name}
        machine = {
            "clusterName": name,
            "version": self._version,
            "bootstrap": {"configRef": _reference(templates["bootstrap"])},
            "infrastructureRef": _reference(templates["infrastructure"]),
        }
        return {
            "apiVersion": API_VERSION,
            "kind": "MachineDeployment",
            "metadata": metadata(self._ref, f"{name}-{node_set_name(item.resource_class)}", labels),
            "spec": {
                "clusterName": name,
                "replicas": item.number_of_nodes,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": machine},
            },
        }


def _reference(to: Mapping[str, str]) -> Object:
    """In the notation of Cluster API, which finds the version by itself."""
    return {"apiGroup": to["apiVersion"].partition("/")[0], "kind": to["kind"], "name": to["name"]}


def _is_reference(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(value.get(part), str) for part in ("apiVersion", "kind", "name"))
