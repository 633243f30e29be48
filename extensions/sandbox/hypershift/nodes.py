"""The Nodes of a NodePool in the hosted cluster's own API server: objects without machines, but Ready as kubelets would say."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from kubernetes.aio import client, config

from .status import Faults, Object, release_version, wanted_nodes

POOL_LABEL = "hypershift.openshift.io/nodePool"
MERGE = "application/merge-patch+json"


class HostedNodes:
    """A connection to a hosted cluster, to keep its Nodes as its NodePools ask for them."""

    def __init__(self, api: client.ApiClient) -> None:
        self._api = api
        # Its signatures ask for models where plain dicts are taken as well.
        self._core: Any = client.CoreV1Api(api)

    @classmethod
    async def connect(cls, kubeconfig: Path) -> HostedNodes:
        return cls(await config.new_client_from_config(config_file=str(kubeconfig)))

    async def close(self) -> None:
        await self._api.close()

    async def settle(self, pools: list[Object]) -> dict[str, int]:
        """Register and remove Nodes until they are as the pools ask; returns how many of each pool are Ready."""
        listed = await self._core.list_node()
        present = {node.metadata.name: (_is_ready(node), node.status.node_info.kubelet_version) for node in listed.items}
        wanted = {name: (pool, ready) for pool in pools for name, ready in _wanted(pool).items()}
        for name in present.keys() - wanted.keys():
            await self._core.delete_node(name)
        for name, (pool, ready) in wanted.items():
            version = f"v1.{_kubernetes_minor(pool)}.0"
            if name not in present:
                await self._core.create_node({"metadata": {"name": name, "labels": _labels(name, pool)}})
            if present.get(name) != (ready, version):
                await self._core.patch_node_status(name, _status(name, ready, version), _content_type=MERGE)
        return {pool["metadata"]["name"]: sum(_wanted(pool).values()) for pool in pools}


def _wanted(pool: Object) -> dict[str, bool]:
    """The Nodes of a pool by name, and whether each is Ready: a lost node is the last one."""
    count = wanted_nodes(pool)
    lost = Faults.of(pool).lose_node
    return {f"{pool['metadata']['name']}-{number}": not (lost and number == count - 1) for number in range(count)}


def ready_count(pool: Object) -> int:
    """How many nodes of the pool are Ready where no Nodes are kept."""
    return sum(_wanted(pool).values())


def _is_ready(node: Any) -> bool:
    return any(item.type == "Ready" and item.status == "True" for item in node.status.conditions or [])


def _kubernetes_minor(pool: Object) -> int:
    """OpenShift 4.n carries Kubernetes 1.(n + 13)."""
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
