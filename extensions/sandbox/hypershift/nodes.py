"""The Nodes of a NodePool in the hosted cluster's own API server: objects without machines, Ready as kubelets would report them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.kube.client import Kube
from .status import Faults, release_version, wanted_nodes

# How many machines each NodePool can have, by its name; None is as many as it wants.
Machines = Mapping[str, int | None]
POOL_LABEL = "hypershift.openshift.io/nodePool"


class HostedNodes:
    """The Nodes of one hosted cluster."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    def reconcile(self, pools: list[Object], machines: Machines) -> dict[str, int]:
        """Create and delete Nodes until they are as the pools ask, and have machines for; returns how many of each pool are Ready.

        It blocks.
        """
        present = {node["metadata"]["name"]: node for node in self._kube.list_all("v1", "Node")}
        by_pool = {pool["metadata"]["name"]: _wanted(pool, machines.get(pool["metadata"]["name"])) for pool in pools}
        wanted = {name: (pool, ready) for pool in pools for name, ready in by_pool[pool["metadata"]["name"]].items()}
        for name in present.keys() - wanted.keys():
            self._kube.delete(present[name])
        for name, (pool, ready) in wanted.items():
            version = f"v1.{_kubernetes_minor(pool)}.0"
            node = present.get(name)
            if node is None or (_is_ready(node), _kubelet_version(node)) != (ready, version):
                node = node or self._kube.create(
                    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": _labels(name, pool)}}
                )
                self._kube.patch(node, _status(name, ready, version), subresource="status", checked=False)
        return {name: sum(nodes.values()) for name, nodes in by_pool.items()}


def _wanted(pool: Object, machines: int | None) -> dict[str, bool]:
    """The Nodes of a pool by name, and whether each is Ready: a lost node is the last one."""
    count = wanted_nodes(pool) if machines is None else min(wanted_nodes(pool), machines)
    lost = Faults.of(pool).lose_node
    return {f"{pool['metadata']['name']}-{number}": not (lost and number == count - 1) for number in range(count)}


def ready_count(pool: Object, machines: int | None = None) -> int:
    """How many nodes of the pool count as Ready in a cluster without processes, which has no Nodes."""
    return sum(_wanted(pool, machines).values())


def _is_ready(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def _kubelet_version(node: Object) -> str:
    return str(node.get("status", {}).get("nodeInfo", {}).get("kubeletVersion", ""))


def _kubernetes_minor(pool: Object) -> int:
    """OpenShift 4.n is based on Kubernetes 1.(n + 13)."""
    parts = release_version(pool["spec"]["release"]["image"]).split(".")
    return int(parts[1]) + 13 if len(parts) > 1 and parts[1].isdigit() else 30


def _labels(name: str, pool: Object) -> dict[str, str]:
    own = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node-role.kubernetes.io/worker": "",
        POOL_LABEL: pool["metadata"]["name"],
    }
    return {**pool["spec"].get("nodeLabels", {}), **own}


def _status(name: str, ready: bool, version: str) -> Object:
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    reason, message = (
        ("KubeletReady", "kubelet is posting ready status") if ready else ("NodeStatusUnknown", "Kubelet stopped posting node status.")
    )
    condition = {
        "type": "Ready",
        "status": "True" if ready else "Unknown",
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    info = {
        "kubeletVersion": version,
        "containerRuntimeVersion": "standin://0",
        "osImage": "HyperShift stand-in",
        "architecture": "amd64",
        "operatingSystem": "linux",
        "kernelVersion": "",
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
        "kubeProxyVersion": version,
    }
    return {"status": {"conditions": [condition], "nodeInfo": info, "addresses": [{"type": "Hostname", "address": name}]}}
