"""Orders, HostedClusters and NodePools as an API server would give them, for the tests of what is made of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import DEFAULT_GROUP
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names, config_version
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.observe import ObservedState
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.outcome import Outcome
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.status import derive_status
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import ClusterRef
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import ProviderFactory
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import NodeRequest, ObservedCluster

START = datetime(2026, 1, 1, tzinfo=UTC)
EARLIER = START - timedelta(hours=1)
NAMESPACE = Names().working_namespace("orders", "demo")
REFERENCE = {"namespace": NAMESPACE, "hostedClusterName": "demo", "serviceAccountName": "", "roleBindingName": ""}


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def order_object(status: Object | None = None, nodes: dict[str, int] | None = None, group: str = DEFAULT_GROUP, **metadata: Any) -> Object:
    spec: Object = {"templateID": "openfleet.clusters.ocp_4_17_small", "templateParameters": json.dumps({"size": 1, "name": "x"})}
    requests = {"large": 3} if nodes is None else nodes
    if requests:
        spec["nodeRequests"] = [{"resourceClass": name, "numberOfNodes": count} for name, count in requests.items()]
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "ClusterOrder",
        "metadata": {
            "namespace": "orders",
            "name": "demo",
            "uid": "u1",
            "generation": 1,
            "resourceVersion": "7",
            "finalizers": [f"{group}/finalizer", f"{group}/infrastructure"],
        }
        | metadata,
        "spec": spec,
    } | ({"status": status} if status is not None else {})


def order(status: Object | None = None, nodes: dict[str, int] | None = None, **metadata: Any) -> ClusterOrder:
    return ClusterOrder.from_object(order_object(status, nodes, **metadata))


def condition(kind: str, status: str, reason: str = "AsExpected", message: str = "", generation: int | None = 1) -> Object:
    item = {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": text(EARLIER)}
    return item if generation is None else item | {"observedGeneration": generation}


def hosted_cluster(
    *changes: Object, releases: tuple[str, ...] = ("Completed",), generation: int = 1, deleting: bool = False, created: datetime = EARLIER
) -> Object:
    """A healthy HostedCluster, but for the given conditions."""
    conditions = {
        "Available": condition("Available", "True"),
        "Degraded": condition("Degraded", "False"),
        "Progressing": condition("Progressing", "False"),
        "InfrastructureReady": condition("InfrastructureReady", "True"),
    }
    conditions |= {item["type"]: item for item in changes}
    return {
        "metadata": {"name": "demo", "namespace": NAMESPACE, "generation": generation, "creationTimestamp": text(created)}
        | ({"deletionTimestamp": text(START)} if deleting else {}),
        "spec": {"dns": {"baseDomain": "example.com"}},
        "status": {
            "controlPlaneEndpoint": {"host": "api.demo.example.com", "port": 6443},
            "version": {"history": [{"state": state} for state in releases]},
            "conditions": list(conditions.values()),
        },
    }


def new_hosted_cluster() -> Object:
    """A HostedCluster without a status."""
    made = hosted_cluster()
    return {"metadata": made["metadata"], "spec": made["spec"]}


def node_pool(
    ready: int | None, asked: int | None = 3, kind: str = "large", observed: int | None = 1, deleting: bool = False, updating: bool = False
) -> Object:
    pool: Object = {
        "metadata": {
            "name": f"demo-{kind}",
            "namespace": NAMESPACE,
            "generation": 1,
            "labels": {f"{DEFAULT_GROUP}/resource-class": kind},
        }
        | ({"deletionTimestamp": text(START)} if deleting else {}),
        "spec": {"autoScaling": {"min": 1, "max": 9}} if asked is None else {"replicas": asked},
    }
    if ready is not None:
        conditions = [
            condition("Ready", "True", generation=observed),
            condition("UpdatingVersion", "True" if updating else "False", generation=observed),
        ]
        pool["status"] = {"replicas": ready, "conditions": conditions}
    return pool


def observed_from(cluster: Object | None = None, pools: Sequence[Object] = (), namespace_exists: bool = True) -> ObservedState:
    """The state that HyperShift's provider derives from these objects."""
    ref = ClusterRef(Mock(), "demo", NAMESPACE, class_label=f"{DEFAULT_GROUP}/resource-class")
    items = [{"kind": "HostedCluster", **cluster}] if cluster else []
    items += [{"kind": "NodePool", **pool} for pool in pools]
    return ObservedState(ProviderFactory.for_cluster("hypershift", ref).observe_objects(ObservedCluster(), items), namespace_exists)


HEALTHY = observed_from(hosted_cluster(), (node_pool(3),))


def observed_with(*pools: Object, cluster: Object | None = None) -> ObservedState:
    """A healthy HostedCluster, and these NodePools."""
    return observed_from(hosted_cluster() if cluster is None else cluster, pools)


def provisioned(of: ClusterOrder, **changes: Any) -> Outcome:
    """The report of a successful install; the template has no further step."""
    return Outcome("provision", config_version(of), **({"provider": "hypershift", "finished": True, "template_applied": True} | changes))


def with_status(of: ClusterOrder, observed_with: ObservedState, now: datetime = START, outcome: Outcome | None = None) -> ClusterOrder:
    """The order after its derived status was written."""
    return stored(of, derive_status(of, observed_with, now, outcome))


def stored(of: ClusterOrder, status: Object) -> ClusterOrder:
    return ClusterOrder.from_object(copy.deepcopy(of.raw) | {"status": copy.deepcopy(status)}, of.names)


def changed(of: ClusterOrder, **spec: Any) -> ClusterOrder:
    """The order after its tenant's edit: the API server counts the generation up."""
    raw = copy.deepcopy(of.raw)
    raw["spec"] |= spec
    raw["metadata"]["generation"] += 1
    return ClusterOrder.from_object(raw, of.names)


def scaled(of: ClusterOrder, **nodes: int) -> ClusterOrder:
    return changed(of, nodeRequests=[{"resourceClass": name, "numberOfNodes": count} for name, count in nodes.items()])


def deleted(of: ClusterOrder) -> ClusterOrder:
    raw = copy.deepcopy(of.raw)
    raw["metadata"] |= {"deletionTimestamp": text(START), "generation": raw["metadata"]["generation"] + 1}
    return ClusterOrder.from_object(raw, of.names)


def ready_order(nodes: dict[str, int] | None = None, observed_with: ObservedState = HEALTHY) -> ClusterOrder:
    """An order whose cluster exists and is healthy."""
    new = order(nodes=nodes)
    defaults = None if new.node_requests else (NodeRequest("large", 3),)
    made = with_status(new, observed_with, START, provisioned(new, node_requests=defaults))
    assert made.phase == "Ready"
    return made


def state_of(status: Object, kind: str) -> tuple[str, str]:
    """Status and reason of a condition."""
    item = next(item for item in status["conditions"] if item["type"] == kind)
    return item["status"], item["reason"]


def message_of(status: Object, kind: str) -> str:
    return str(next(item["message"] for item in status["conditions"] if item["type"] == kind))


def since(status: Object, kind: str) -> str:
    return str(next(item["lastTransitionTime"] for item in status["conditions"] if item["type"] == kind))
