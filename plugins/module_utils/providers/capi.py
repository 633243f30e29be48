# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cluster API: a Cluster on the hub, made by a ClusterClass, whose topology has a machine deployment for each set of nodes.

Where no class is used, the Cluster refers to a control plane and an infrastructure that are there already, and the machine deployments
are objects of their own. What others have added to the topology, an autoscaler's nodes or defaults of variables, stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ..common.timestamps import parse_time
from ..common.types import Object
from ..kube.client import FIELD_MANAGER
from ..kube.errors import Invalid
from ..kube.untrusted import kubeconfig_of
from ..lock.fenced_writer import Change, differs
from . import resources
from .base import ClusterRef, NoSuchCluster, NotReadyYet, Provider
from .model import (
    AVAILABLE,
    DEGRADED,
    FALSE,
    INFRASTRUCTURE_READY,
    TRUE,
    ClusterRequest,
    ConditionState,
    Kubeconfig,
    NodeRequest,
    NodeSet,
    ObservedCluster,
    ResourceSet,
    State,
)
from .objects import api_url, condition_state_of, is_deleting, is_outdated, is_true, metadata, node_set_name, resource_class_of

API_VERSION = "cluster.x-k8s.io/v1beta2"
CLUSTER_LABEL = "cluster.x-k8s.io/cluster-name"
DEPLOYMENT_LABEL = "topology.cluster.x-k8s.io/deployment-name"
RECONCILE_FAILED = "ReconcileFailed"
REFERENCE = {
    "type": "dict",
    "options": {
        "apiVersion": {"type": "str", "required": True},
        "kind": {"type": "str", "required": True},
        "name": {"type": "str", "required": True},
    },
}


class ClusterProvider(Provider):
    """A Cluster of the place's name, with a machine deployment for each resource class."""

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

    def create(self, request: ClusterRequest) -> ObservedCluster:
        cluster, deployments = self._look()
        return self._seen(cluster, deployments) if cluster else self._apply(request, None, deployments)

    def update(self, spec: ObservedCluster, request: ClusterRequest) -> ObservedCluster:
        return self._apply(request, *self._look())

    def _apply(self, request: ClusterRequest, cluster: Object | None, deployments: list[Object]) -> ObservedCluster:
        """Make the cluster what is asked for; machine deployments of classes that are no longer asked for go."""
        manifests = Manifests(self.ref, request)
        control_plane = self._needed(*manifests.needs)
        wanted = manifests.cluster()
        if cluster and not differs(cluster, beside_others(wanted, cluster)):
            self.changes.append(Change("unchanged", cluster, cluster))
        else:
            self.changes += self.writer.apply([wanted], known=[cluster] if cluster else [])
        after = self.changes[-1].item
        if not manifests.has_class:
            self._apply_deployments(manifests.deployments(), deployments)
            self.changes.append(self.writer.patch(control_plane, lambda _present: {"spec": manifests.control_plane()}))
            deployments = [change.after for change in self.changes if change.after and change.item["kind"] == "MachineDeployment"]
        return self._seen(after, deployments)

    def _apply_deployments(self, wanted: list[Object], present: list[Object]) -> None:
        kept = {item["metadata"]["name"] for item in wanted}
        self.changes += self.writer.apply(wanted, known=present)
        self.changes += self.writer.delete(item for item in present if item["metadata"]["name"] not in kept)

    def delete(self, spec: ObservedCluster) -> bool:
        """Cluster API takes away what belongs to a Cluster, machines first, before it lets the Cluster go."""
        cluster, deployments = self._look()
        self.changes += self.writer.delete([cluster] if cluster else deployments)
        return cluster is None and not deployments

    def status(self, spec: ObservedCluster) -> ObservedCluster:
        return self._seen(*self._look())

    def observe_objects(self, spec: ObservedCluster, items: Sequence[Object]) -> ObservedCluster:
        clusters = [item for item in items if item["kind"] == "Cluster" and item["metadata"]["name"] == self.ref.name]
        return self._seen(clusters[0] if clusters else None, [item for item in items if self._is_deployment(item)])

    def kubeconfig(self, spec: ObservedCluster) -> Kubeconfig:
        self._existing()
        secret = self.ref.kube.find("v1", "Secret", f"{self.ref.name}-kubeconfig", self.ref.namespace)
        if secret is None:
            raise NotReadyYet(f"The cluster {self.ref.name} has no kubeconfig yet; it gets one when its endpoint is known.")
        return Kubeconfig(kubeconfig_of(secret, key="value"), secret["metadata"]["resourceVersion"])

    def apply_resources(self, spec: ObservedCluster, resource_set: ResourceSet) -> None:
        resources.apply(self, self.connect(spec), resource_set)

    def remove_resources(self, spec: ObservedCluster, name: str) -> bool:
        return resources.remove(self, self.connect(spec), name)

    def scale(self, spec: ObservedCluster, resource_class: str, nodes: int) -> ObservedCluster:
        cluster = self._existing()
        if _topology(cluster):
            self.changes.append(self.writer.patch(cluster, lambda present: self._scaled(present, resource_class, nodes)))
            return self._seen(self.changes[-1].item, self._deployments())
        mine = [item for item in self._deployments() if resource_class_of(item, self.ref.class_label) == resource_class]
        if nodes == 0:
            self.changes += self.writer.delete(mine)
        elif mine:
            self.changes.append(self.writer.patch(mine[0], lambda _present: {"spec": {"replicas": nodes}}))
        else:
            raise Invalid(f"{self.ref.name} has no nodes of class {resource_class}, and no templates to make them of.", ["resource_class"])
        return self._seen(cluster, self._deployments())

    def _scaled(self, cluster: Object, resource_class: str, nodes: int) -> Object:
        """The patch of the topology: a list can only be given as a whole. A new class is one that the ClusterClass calls the same."""
        entries = [dict(entry) for entry in _entries(cluster)]
        mine = [entry for entry in entries if _class_of_entry(entry, self.ref.class_label) == resource_class]
        for entry in mine:
            entry["replicas"] = nodes
        if not mine:
            entries.append(worker_entry(self.ref, NodeRequest(resource_class, nodes), resource_class))
        kept = [entry for entry in entries if entry not in mine] if nodes == 0 else entries
        # Neither the list nor what is around it may be empty.
        others = set(_topology(cluster).get("workers") or {}) - {"machineDeployments"}
        return {"spec": {"topology": {"workers": {"machineDeployments": kept or None} if kept or others else None}}}

    # How it is looked up

    def _look(self) -> tuple[Object | None, list[Object]]:
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

    def _needed(self, api_version: str, kind: str, name: str, namespace: str) -> Object:
        """What a Cluster is made of must be there: Cluster API takes the Cluster without it, and then waits for ever."""
        found = self.ref.kube.find(api_version, kind, name, namespace)
        if found is None:
            there = sorted(item["metadata"]["name"] for item in self.ref.kube.list_all(api_version, kind, namespace))
            known = f"there are {', '.join(there[:10])}" if there else "there is none"
            raise Invalid(f"There is no {kind} {name} in the namespace {namespace}; {known}.", [])
        return found

    def _seen(self, cluster: Object | None, deployments: Sequence[Object]) -> ObservedCluster:
        node_sets = tuple(_node_sets(cluster, deployments, self.ref.class_label))
        if cluster is None:
            return ObservedCluster(status="cleanup" if deployments else "absent", node_sets=node_sets)
        conditions = dict(_conditions(cluster))
        state, details = _state(cluster, conditions, node_sets)
        return ObservedCluster(
            internal_id=f"{self.ref.namespace}/{self.ref.name}",
            status=state,
            status_details=details,
            node_sets=node_sets,
            api_url=api_url((cluster.get("spec") or {}).get("controlPlaneEndpoint")),
            version=_version(cluster, deployments),
            installed=bool(((cluster.get("status") or {}).get("initialization") or {}).get("controlPlaneInitialized")),
            updating=_is_updating(cluster) or any(item.updating for item in node_sets),
            created_at=parse_time(cluster["metadata"].get("creationTimestamp")),
            conditions=conditions,
        )


class Manifests:
    """The objects that a request comes to."""

    def __init__(self, ref: ClusterRef, request: ClusterRequest) -> None:
        self._ref = ref
        self._request = request
        self._settings = request.settings
        self.has_class = bool(self._settings.get("cluster_class"))
        self._check()

    def _check(self) -> None:
        references = [name for name in ("control_plane_ref", "infrastructure_ref") if self._settings.get(name)]
        if self.has_class and references:
            raise Invalid(
                f"A cluster is made by cluster_class or of references, not by both: leave out {', '.join(references)}.", references
            )
        if not self.has_class and len(references) < 2:
            raise Invalid("Give the cluster_class to make the cluster by, or control_plane_ref and infrastructure_ref.", ["cluster_class"])
        if not self._request.version:
            raise Invalid("Give the version of Kubernetes, for example v1.36.3.", ["version"])
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
    def needs(self) -> tuple[str, str, str, str]:
        """What must be there beforehand: apiVersion, kind, name and namespace."""
        if self.has_class:
            return API_VERSION, "ClusterClass", self._settings["cluster_class"], self._class_namespace
        reference = self._settings["control_plane_ref"]
        return reference["apiVersion"], reference["kind"], reference["name"], self._ref.namespace

    @property
    def _class_namespace(self) -> str:
        return self._settings.get("cluster_class_namespace") or self._ref.namespace

    @property
    def _version(self) -> str:
        """With the v that Cluster API would put before it."""
        return f"v{self._request.version.removeprefix('v')}"

    def cluster(self) -> Object:
        settings = self._settings
        network = {
            "pods": {"cidrBlocks": [settings["pod_network_cidr"]]},
            "services": {"cidrBlocks": [settings["service_network_cidr"]]},
            "serviceDomain": settings["service_domain"],
        }
        if self.has_class:
            made_of: Object = {"topology": self._topology()}
        else:
            made_of = {
                "controlPlaneRef": _reference(settings["control_plane_ref"]),
                "infrastructureRef": _reference(settings["infrastructure_ref"]),
            }
        return {
            "apiVersion": API_VERSION,
            "kind": "Cluster",
            "metadata": metadata(self._ref, self._ref.name),
            "spec": {"clusterNetwork": network, **made_of},
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
        """What every control plane has in its spec, whoever provides it."""
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


def worker_entry(ref: ClusterRef, item: NodeRequest, worker_class: str) -> Object:
    """The nodes of one class in a topology; the label tells them from an entry that somebody else has added."""
    return {
        "name": node_set_name(item.resource_class),
        "class": worker_class,
        "replicas": item.number_of_nodes,
        "metadata": {"labels": {ref.class_label: item.resource_class}},
    }


def beside_others(wanted: Object, present: Object) -> Object:
    """The wanted Cluster with what others have put into its lists, as it is there: only to see whether anything is to be written."""
    topology, there = wanted["spec"].get("topology"), _topology(present)
    if not topology or not there:
        return wanted
    owned = _owned_fields(present).get("f:spec", {}).get("f:topology", {})
    workers = _merged(
        (topology.get("workers") or {}).get("machineDeployments") or [],
        _entries(present),
        owned.get("f:workers", {}).get("f:machineDeployments", {}),
    )
    variables = _merged(topology.get("variables") or [], there.get("variables") or [], owned.get("f:variables", {}))
    merged = {
        **topology,
        **({"workers": {"machineDeployments": workers}} if workers else {}),
        **({"variables": variables} if variables else {}),
    }
    return {**wanted, "spec": {**wanted["spec"], "topology": merged}}


def _merged(wanted: Sequence[Object], present: Sequence[Object], owned: Mapping[str, Any]) -> list[Object]:
    """Both lists by name, in the order that is there. Of what is not wanted only others' stays."""
    by_name = {item["name"]: item for item in wanted}
    names = {item["name"] for item in present}
    ours = {json.loads(key[2:])["name"] for key in owned if key.startswith("k:")}
    kept = [by_name.get(item["name"], item) for item in present if item["name"] in by_name or item["name"] not in ours]
    return [*kept, *(item for item in wanted if item["name"] not in names)]


def _owned_fields(item: Object) -> Mapping[str, Any]:
    entries = item["metadata"].get("managedFields") or []
    return next((each["fieldsV1"] for each in entries if (each["manager"], each["operation"]) == (FIELD_MANAGER, "Apply")), {})


def _reference(to: Mapping[str, str]) -> Object:
    """As Cluster API has it: it finds the version by itself."""
    return {"apiGroup": to["apiVersion"].partition("/")[0], "kind": to["kind"], "name": to["name"]}


def _is_reference(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(value.get(part), str) for part in ("apiVersion", "kind", "name"))


# What the objects say


def _topology(cluster: Object) -> Object:
    return (cluster.get("spec") or {}).get("topology") or {}


def _entries(cluster: Object) -> list[Object]:
    return (_topology(cluster).get("workers") or {}).get("machineDeployments") or []


def _class_of_entry(entry: Object, class_label: str) -> str:
    return resource_class_of({"metadata": entry.get("metadata") or {}}, class_label)


def _conditions(cluster: Object) -> Iterator[tuple[str, ConditionState]]:
    """What the cluster says of itself in our words: Available is that of its control plane, as the nodes are counted apart."""
    infrastructure = _said(cluster, "InfrastructureReady", "The infrastructure is ready")
    if infrastructure:
        yield INFRASTRUCTURE_READY, infrastructure
    available = _said(cluster, "ControlPlaneAvailable", "The control plane is available")
    if not available:
        return
    answers = condition_state_of(cluster, "RemoteConnectionProbe")
    if available.status == TRUE and answers and answers.status != TRUE:
        available = answers
    yield AVAILABLE, available
    if available.status == TRUE:
        lost = infrastructure if infrastructure and infrastructure.status == FALSE else None
        mended = condition_state_of(cluster, "Remediating")
        trouble = lost or (mended if mended and mended.status == TRUE else None)
        yield DEGRADED, ConditionState(TRUE, trouble.reason, trouble.message) if trouble else ConditionState(FALSE, "AsExpected")


def _said(cluster: Object, kind: str, if_true: str) -> ConditionState | None:
    """A condition, with words of ours where Cluster API has none because all is well."""
    verdict = condition_state_of(cluster, kind)
    return replace(verdict, message=if_true) if verdict and verdict.status == TRUE and not verdict.message else verdict


def _state(cluster: Object, conditions: Mapping[str, ConditionState], node_sets: Sequence[NodeSet]) -> tuple[State, str]:
    """The state, and in words why it is not ready."""
    if is_deleting(cluster):
        deleting = condition_state_of(cluster, "Deleting")
        return "deprovisioning", f"Deleting is {deleting}" if deleting else "The Cluster is being deleted"
    reconciled = condition_state_of(cluster, "TopologyReconciled")
    if reconciled and reconciled.status == FALSE and reconciled.reason == RECONCILE_FAILED:
        return "failed", f"TopologyReconciled is {reconciled}"
    infrastructure, available, degraded = (conditions.get(kind) for kind in (INFRASTRUCTURE_READY, AVAILABLE, DEGRADED))
    if available is None:
        return "cluster_accepted", "Cluster API has not looked at the Cluster yet"
    if available.status != TRUE:
        if infrastructure and infrastructure.status != TRUE:
            return "cluster_provisioning", f"InfrastructureReady is {infrastructure}"
        return "cluster_provisioning", f"ControlPlaneAvailable is {available}"
    if degraded and degraded.status == TRUE:
        return "cluster_provisioned", f"Degraded is {degraded}"
    missing = sum(max((item.requested or 0) - item.ready, 0) for item in node_sets)
    if missing:
        workers = condition_state_of(cluster, "WorkersAvailable")
        return "cluster_provisioned", f"{missing} nodes are not ready yet" + (f": WorkersAvailable is {workers}" if workers else "")
    whole = condition_state_of(cluster, "Available")
    if whole is None or whole.status != TRUE:
        return "cluster_provisioned", f"Available is {whole}"
    return "ready", ""


def _node_sets(cluster: Object | None, deployments: Sequence[Object], class_label: str) -> Iterator[NodeSet]:
    """Nodes that carry a resource class. Those without are nobody's order, so they are neither counted nor missed."""
    entries = {entry["name"]: entry for entry in _entries(cluster or {}) if _class_of_entry(entry, class_label)}
    for name, entry in entries.items():
        made = next((item for item in deployments if resource_class_of(item, DEPLOYMENT_LABEL) == name), None)
        yield _node_set(name, _class_of_entry(entry, class_label), entry.get("replicas"), made)
    for item in deployments:
        resource_class, name = resource_class_of(item, class_label), resource_class_of(item, DEPLOYMENT_LABEL)
        if not name and resource_class:
            yield _node_set(item["metadata"]["name"], resource_class, (item.get("spec") or {}).get("replicas"), item)
        elif name not in entries and resource_class:
            yield _node_set(name, resource_class, 0, item, deleting=True)  # not in the topology any more


def _node_set(name: str, resource_class: str, requested: int | None, made: Object | None, deleting: bool = False) -> NodeSet:
    if made is None:
        return NodeSet(name, resource_class, requested, 0)
    status, replicas = made.get("status") or {}, (made.get("spec") or {}).get("replicas")
    return NodeSet(
        name=name,
        resource_class=resource_class,
        requested=requested,
        ready=status.get("readyReplicas") or 0,
        outdated=is_outdated(made, status) or (requested is not None and requested != replicas),
        updating=is_true(made, "RollingOut"),
        deleting=deleting or is_deleting(made),
    )


def _is_updating(cluster: Object) -> bool:
    """Whether another version or configuration is being rolled out, or waits for its turn."""
    reconciled = condition_state_of(cluster, "TopologyReconciled")
    waits = reconciled is not None and reconciled.status == FALSE and "Upgrad" in reconciled.reason
    return waits or is_true(cluster, "RollingOut")


def _version(cluster: Object, deployments: Sequence[Object]) -> str:
    """The version that is asked for; without a topology the machines tell it."""
    machines = [(((item.get("spec") or {}).get("template") or {}).get("spec") or {}).get("version") for item in deployments]
    return str(_topology(cluster).get("version") or next(filter(None, machines), ""))
