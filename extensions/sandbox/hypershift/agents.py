"""The Agents of a hub: discovered hosts, as the infrastructure operator reports them, which NodePools of the platform Agent bind.

A NodePool takes only Agents of its cluster's agent namespace that its selector matches, and that are approved, connected, validated and
unbound; without a selector any such Agent. It has as many machines as Agents. In a namespace without Agents it has as many as it asks for:
that is for those who do not care about hosts.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.controller.informer import Informer, in_thread
from ....plugins.module_utils.controller.work_queue import Key, WorkQueue
from ....plugins.module_utils.kube.client import Kube
from .hub import key_of
from .status import FAULT, annotation, wanted_nodes

API_VERSION, KIND = "agent-install.openshift.io/v1beta1", "Agent"
MACHINE = "agentMachineRef"
POOL = "standin.openfleet.clusters/node-pool"  # annotation on a bound Agent: <namespace>/<name>
DISCONNECTED = "disconnected"


class Agents:
    """All Agents of the hub. `changed` gets the namespace of each that changes."""

    def __init__(self, kube: Kube, changed: Callable[[str], None]) -> None:
        def notify(before: Object | None, after: Object | None) -> None:
            agent = after or before or {}
            if after:
                self.queue.add(key_of(agent))
            changed(agent["metadata"]["namespace"])

        self._kube = kube
        self.informer = Informer(kube, API_VERSION, KIND, notify)
        self.queue = WorkQueue(self._report)

    async def machines(self, cluster: Object, pools: list[Object]) -> dict[str, int | None]:
        """Bind and unbind Agents until each NodePool has as many as it asks for. Returns how many it has; None: as many as it likes."""
        namespace = agent_namespace(cluster)
        if not self.informer.below(namespace):
            return {pool["metadata"]["name"]: None for pool in pools}
        return {pool["metadata"]["name"]: await self._bind(cluster, pool, namespace) for pool in pools}

    async def _bind(self, cluster: Object, pool: Object, namespace: str) -> int:
        agents = sorted(self.informer.below(namespace), key=lambda agent: str(agent["metadata"]["name"]))
        bound = [agent for agent in agents if _pool_of(agent) == str(key_of(pool))]
        wanted = wanted_nodes(pool)
        for agent in bound[wanted:]:
            await self._unbind(agent)
        selector = pool["spec"]["platform"].get("agent", {}).get("agentLabelSelector")
        free = [agent for agent in agents if can_be_bound(agent) and matches(selector, agent["metadata"].get("labels") or {})]
        for agent in free[: max(0, wanted - len(bound))]:
            name, machine = cluster["metadata"]["name"], f"{pool['metadata']['name']}-{agent['metadata']['name']}"[:63].rstrip("-.")
            metadata = {"labels": {MACHINE: machine}, "annotations": {POOL: str(key_of(pool))}}
            deployment = {"name": name, "namespace": f"{cluster['metadata']['namespace']}-{name}"}
            await self._patch(agent, {"metadata": metadata, "spec": {"clusterDeploymentName": deployment}})
            bound.append(agent)
        return min(wanted, len(bound))

    async def unbind_all(self, pool: Object) -> None:
        """Unbind the Agents of a NodePool that is being deleted."""
        for agent in self.informer.all():
            if _pool_of(agent) == str(key_of(pool)):
                await self._unbind(agent)

    async def _unbind(self, agent: Object) -> None:
        metadata = {"labels": {MACHINE: None}, "annotations": {POOL: None}}
        await self._patch(agent, {"metadata": metadata, "spec": {"clusterDeploymentName": None}})

    async def _report(self, key: Key) -> None:
        """Write the conditions that the infrastructure operator writes for a host that it has discovered."""
        agent = self.informer.get(key)
        if agent is None:
            return
        bound, approved = bool(agent["spec"].get("clusterDeploymentName")), bool(agent["spec"].get("approved"))
        connected = DISCONNECTED not in annotation(agent, FAULT)
        wanted = {"Connected": connected, "Validated": connected, "RequirementsMet": approved, "Bound": bound, "Installed": bound}
        known = {item["type"]: item for item in (agent.get("status") or {}).get("conditions") or []}
        if {kind: item["status"] for kind, item in known.items()} == {kind: str(value) for kind, value in wanted.items()}:
            return
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = [
            {"type": kind, "status": str(value), "reason": kind if value else f"Not{kind}", "message": "", "lastTransitionTime": now}
            for kind, value in wanted.items()
        ]
        state = "added-to-existing-cluster" if bound else "known-unbound" if connected else "disconnected-unbound"
        status = {"conditions": conditions, "debugInfo": {"state": state}}
        written = await in_thread(lambda: self._kube.patch(agent, {"status": status}, subresource="status"))
        self.informer.remember(written)

    async def _patch(self, agent: Object, changes: Object) -> None:
        self.informer.remember(await in_thread(lambda: self._kube.patch(agent, changes)))


def agent_namespace(cluster: Object) -> str:
    """The namespace of the Agents of a HostedCluster; empty on another platform."""
    return str(cluster["spec"]["platform"].get("agent", {}).get("agentNamespace", ""))


def can_be_bound(agent: Object) -> bool:
    conditions = {item["type"]: item["status"] for item in (agent.get("status") or {}).get("conditions") or []}
    is_healthy = {kind: conditions.get(kind) for kind in ("Connected", "Validated", "Bound")} == {
        "Connected": "True",
        "Validated": "True",
        "Bound": "False",
    }
    is_unbound = MACHINE not in (agent["metadata"].get("labels") or {}) and not agent["spec"].get("clusterDeploymentName")
    return is_healthy and is_unbound and bool(agent["spec"].get("approved")) and "deletionTimestamp" not in agent["metadata"]


def matches(selector: Mapping[str, object] | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector, which has no expressions here, matches. None matches everything."""
    wanted = (selector or {}).get("matchLabels") or {}
    return isinstance(wanted, Mapping) and wanted.items() <= labels.items()


def _pool_of(agent: Object) -> str:
    return annotation(agent, POOL)
