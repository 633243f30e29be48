"""What a HostedCluster depends on at the hub: the namespace of its control plane, permissions for Agents, Secrets.

What is missing there is a problem that the HostedCluster reports.
"""

from __future__ import annotations

import re
import secrets
import uuid

from ....plugins.module_utils.common.types import Object
from .hub import Hub
from .status import RECONCILED, VALID_CONFIGURATION, VALID_RELEASE_IMAGE, Problem, control_plane_namespace, invalid_networks

NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
NAMESPACE_LABELS = {"hypershift.openshift.io/hosted-control-plane": "true", "pod-security.kubernetes.io/enforce": "privileged"}
REFERENCED = "referenced-resource.hypershift.openshift.io/"
RBAC = "rbac.authorization.k8s.io"


def generated_fields(cluster: Object) -> Object:
    """The fields of the spec that HyperShift fills in."""
    spec, name = cluster["spec"], cluster["metadata"]["name"]
    filled: Object = {}
    if "clusterID" not in spec:
        filled["clusterID"] = str(uuid.uuid4())
    if "infraID" not in spec:
        filled["infraID"] = f"{name}-{secrets.token_hex(3)}"
    if platform_type(cluster) == "KubeVirt" and "secretEncryption" not in spec:
        filled["secretEncryption"] = {"type": "aescbc", "aescbc": {"activeKey": {"name": f"{name}-etcd-encryption-key"}}}
    return filled


def platform_type(cluster: Object) -> str:
    return str(cluster["spec"].get("platform", {}).get("type", ""))


class Dependencies:
    """The objects that HostedClusters of a hub depend on.

    Without `new_namespaces` it adopts and deletes existing namespaces, and creates none: the deletion of a namespace costs the API server a
    hundred requests, too many for a hub with hundreds of clusters.
    """

    def __init__(self, hub: Hub, new_namespaces: bool) -> None:
        self._hub = hub
        self._new_namespaces = new_namespaces
        self._complete: set[str] = set()

    async def ensure(self, cluster: Object) -> Problem | None:
        """Create what is missing; returns what keeps HyperShift from going on."""
        uid = cluster["metadata"]["uid"]
        if problem := await self._missing(cluster):
            self._complete.discard(uid)
            return problem
        if uid not in self._complete:
            namespace, *others = _dependencies_of(cluster)
            if self._new_namespaces or await self._hub.find("Namespace", namespace["metadata"]["name"]):
                await self._hub.apply(namespace)
            await self._hub.apply(*others)
            for name in _secret_names(cluster):
                secret = await self._hub.find("Secret", name, cluster["metadata"]["namespace"])
                if secret:
                    await self._hub.annotate(secret, f"{REFERENCED}{cluster['metadata']['name']}", "true")
            self._complete.add(uid)
        return None

    async def remove(self, cluster: Object) -> bool:
        """Delete what was created, also if another client uses it; False until all of it is deleted."""
        self._complete.discard(cluster["metadata"]["uid"])
        namespace, *others = _dependencies_of(cluster)
        found = await self._hub.find("Namespace", namespace["metadata"]["name"])
        if found is None or "deletionTimestamp" not in found["metadata"]:
            await self._hub.delete_others([*others, *([found] if found else [])])
        return found is None

    async def _missing(self, cluster: Object) -> Problem | None:
        name, namespace = control_plane_namespace(cluster), cluster["metadata"]["namespace"]
        if not NAMESPACE.fullmatch(name):
            return Problem(RECONCILED, "ReconciliationError", f'Namespace "{name}" is invalid: it must be a name of at most 63 characters')
        if wrong := invalid_networks(cluster):
            return Problem(VALID_CONFIGURATION, "InvalidConfiguration", wrong)
        if cluster["metadata"]["uid"] not in self._complete:
            pull_secret, *others = _secret_names(cluster)
            if await self._hub.find("Secret", pull_secret, namespace) is None:
                return Problem(VALID_RELEASE_IMAGE, "SecretNotFound", f"pull secret {pull_secret} not found")
            for other in others:
                if await self._hub.find("Secret", other, namespace) is None:
                    return Problem(RECONCILED, "ReconciliationError", f'Secret "{other}" not found')
        agents = _agent_namespace(cluster)
        if agents and await self._hub.find("Namespace", agents) is None:
            return Problem(VALID_CONFIGURATION, "InvalidConfiguration", f'agent namespace "{agents}" not found')
        return None


def generated_key() -> dict[str, bytes]:
    """The content of the Secret for the encryption that HyperShift adds by itself."""
    return {"key": secrets.token_bytes(32)}


def _secret_names(cluster: Object) -> list[str]:
    """The Secrets that the HostedCluster names, its pull secret first."""
    spec = cluster["spec"]
    key = spec.get("secretEncryption", {}).get("aescbc", {}).get("activeKey")
    return [reference["name"] for reference in (spec["pullSecret"], spec.get("sshKey"), key) if reference]


def _agent_namespace(cluster: Object) -> str:
    return str(cluster["spec"].get("platform", {}).get("agent", {}).get("agentNamespace", ""))


def _dependencies_of(cluster: Object) -> list[Object]:
    """The namespace of the control plane, which is adopted if it exists, and the permissions of its Cluster API in that of the Agents."""
    name, agents = control_plane_namespace(cluster), _agent_namespace(cluster)
    namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": NAMESPACE_LABELS}}
    if not agents:
        return [namespace]
    role = f"capi-provider-role-{name}"
    rules = [{"apiGroups": ["agent-install.openshift.io"], "resources": ["agents"], "verbs": ["*"]}]
    return [
        namespace,
        {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": role, "namespace": agents}, "rules": rules},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"cluster-api-agent-{name}", "namespace": agents},
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "capi-provider", "namespace": name}],
        },
    ]
