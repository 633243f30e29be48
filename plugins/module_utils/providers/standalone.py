# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Clusters that exist already. One is adopted with its kubeconfig and observed through it; deleting only removes the kubeconfig.

The kubeconfig is in a Secret on the hub, `<name>-kubeconfig`. That Secret is all there is of a cluster: no Secret, no cluster. An
annotation on it has the id of the cluster, so that a kubeconfig can be replaced by a newer one and not by that of another cluster.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import urlsplit

from ..common import bounded_yaml
from ..common.third_party import urllib3
from ..common.types import Object
from ..kube.client import Kube
from ..kube.connections import Limits, check_allowed
from ..kube.errors import (
    AddressNotAllowed,
    BadCredentials,
    Forbidden,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from ..kube.untrusted import KEY, kubeconfig_of, target_of, with_address
from . import resources
from .base import CLUSTER_LIMITS, NoSuchCluster, NotSupported, Provider, ProviderError
from .model import (
    AVAILABLE,
    DEGRADED,
    FALSE,
    INFRASTRUCTURE_READY,
    TRUE,
    UNKNOWN,
    ClusterRequest,
    ConditionState,
    Kubeconfig,
    NodeSet,
    ObservedCluster,
    ResourceSet,
    State,
)

CLUSTER_ID = "openfleet.clusters/cluster-id"
OPENSHIFT = "config.openshift.io/v1"
REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
NO_CLASS = "node"
# The status of an unreachable cluster must not take long, nor one that sends a byte a second: other orders wait for it.
CONNECT_SECONDS, READ_SECONDS, TOTAL_SECONDS = 5.0, 15.0, 30.0
RESPONSE_BYTES, TOTAL_BYTES = 2**25, 2**26
SHOWN = 5
# What the cluster calls its things. Anything else from there is not repeated in a status.
WORD = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9._:/+]{0,251}[A-Za-z0-9])?")


class ClusterProvider(Provider):
    """A cluster that is created and deleted elsewhere."""

    TYPE = "standalone"
    SECRETS: ClassVar[Mapping[str, Any]] = {
        KEY: {
            "type": "raw",
            "no_log": True,
            "description": "How to reach the cluster: a kubeconfig, as an object or as text, with the credentials in it.",
        }
    }

    def create(self, request: ClusterRequest) -> ObservedCluster:
        _refuse_choices(request)
        secret = self._secret()
        if secret is not None:
            return self._observed(secret)
        if KEY not in request.secrets:
            raise ProviderError(
                f"standalone creates no clusters, it adopts existing ones: set secrets.kubeconfig to the kubeconfig of {self.ref.name}."
            )
        return self._record(request.secrets[KEY], None)

    def update(self, observed: ObservedCluster, request: ClusterRequest) -> ObservedCluster:
        _refuse_choices(request)
        secret = self._existing()
        return self._record(request.secrets[KEY], secret) if KEY in request.secrets else self._observed(secret)

    def delete(self, observed: ObservedCluster) -> bool:
        """Delete the kubeconfig. The cluster itself stays, with everything in it."""
        secret = self._secret()
        if secret is None:
            return True
        self.changes += self.writer.delete([secret])
        return self._secret() is None

    def status(self, observed: ObservedCluster) -> ObservedCluster:
        secret = self._secret()
        return ObservedCluster() if secret is None else self._observed(secret)

    def kubeconfig(self, observed: ObservedCluster) -> Kubeconfig:
        secret = self._existing()
        content = self._with_checked_address(kubeconfig_of(secret))  # a template uses it with clients of its own
        return Kubeconfig(content, version=hashlib.sha256(secret["data"][KEY].encode()).hexdigest()[:16])

    def dns(self, observed: ObservedCluster) -> str:
        kube = self.connect(observed)
        for kind, field in (("Ingress", "domain"), ("DNS", "baseDomain")):
            found = _openshift(kube, kind)
            if domain := _word(((found or {}).get("spec") or {}).get(field)):
                return domain
        raise ProviderError(f"{self.ref.name} does not report the domain of its applications: only OpenShift's configuration has one.")

    def apply_resources(self, observed: ObservedCluster, resource_set: ResourceSet) -> None:
        resources.apply(self, self.connect(observed), resource_set)

    def remove_resources(self, observed: ObservedCluster, name: str) -> bool:
        return resources.remove(self, self.connect(observed), name)

    # The Secret

    @property
    def _secret_name(self) -> str:
        return f"{self.ref.name}-kubeconfig"

    def _secret(self) -> Object | None:
        return self.ref.kube.find("v1", "Secret", self._secret_name, self.ref.namespace)

    def _existing(self) -> Object:
        secret = self._secret()
        if secret is None:
            raise NoSuchCluster(
                f"There is no kubeconfig of {self.ref.name}, no Secret {self.ref.namespace}/{self._secret_name}: create the cluster first."
            )
        return secret

    def _record(self, kubeconfig: Any, secret: Object | None) -> ObservedCluster:
        """Write the kubeconfig into the Secret, once it works and is of the same cluster as the one before."""
        content = _parsed(kubeconfig)
        # An unreachable cluster is refused with the error that says why.
        cluster_id = _word(self._connected(content).cluster_id())
        if not cluster_id:
            raise ProviderError("The server of secrets.kubeconfig is not a Kubernetes API server; check its address.")
        recorded = _recorded_id(secret) if secret else ""
        if recorded and recorded != cluster_id:
            raise ProviderError(
                f"The kubeconfig is of another cluster (id {cluster_id}) than {self.ref.name} (id {recorded}). To adopt it under this "
                "name, delete this one first: only its kubeconfig is deleted."
            )
        wanted = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {
                "name": self._secret_name,
                "namespace": self.ref.namespace,
                "labels": dict(self.ref.labels),
                "annotations": {CLUSTER_ID: cluster_id},
            },
            "data": {KEY: base64.b64encode(json.dumps(content, sort_keys=True).encode()).decode()},
        }
        [change] = self.writer.apply([wanted], known=[secret] if secret else [])
        self.changes.append(change)
        return self._observed(change.after or wanted)

    # The cluster

    def connect(self, observed: ObservedCluster, limits: Limits = CLUSTER_LIMITS) -> Kube:
        return Kube(target_of(kubeconfig_of(self._existing())), limits=replace(limits, addresses=self.ref.allowed_addresses))

    def _connected(self, content: Object) -> Kube:
        """A connection for one observation."""
        limits = Limits(RESPONSE_BYTES, TOTAL_BYTES, TOTAL_SECONDS, self.ref.allowed_addresses)
        return Kube(target_of(content), urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS), limits=limits)

    def _with_checked_address(self, content: Object) -> Object:
        """The kubeconfig with the address that was checked. Behind a proxy the name stays, because the proxy resolves it."""
        target = target_of(content)
        host = urlsplit(target.server).hostname or ""
        addresses = check_allowed(host, self.ref.allowed_addresses, CONNECT_SECONDS)
        if target.proxy:
            check_allowed(urlsplit(target.proxy).hostname or "", self.ref.allowed_addresses, CONNECT_SECONDS)
        return content if target.proxy or addresses in ([], [host]) else with_address(content, host, addresses[0])

    def _observed(self, secret: Object) -> ObservedCluster:
        """The cluster as it is through its kubeconfig. That it is unreachable is its status, not an error."""
        cluster = ObservedCluster(internal_id=f"{self.ref.namespace}/{self._secret_name}", external_id=_recorded_id(secret), installed=True)
        try:
            kube = self._connected(kubeconfig_of(secret))
            kube.readyz()
            version = _word(kube.version())
            return self._described(replace(cluster, api_url=kube.target.server, version=version, running_version=version), kube)
        except (AddressNotAllowed, BadCredentials, Unauthorized, Forbidden) as error:
            # Without access the state is unknown, and only an administrator can change that.
            return _unreachable(cluster, "failed", error, UNKNOWN)
        except (Unreachable, ServerError, TooManyRequests) as error:
            return _unreachable(cluster, "cluster_provisioning", error, FALSE)

    def _described(self, cluster: ObservedCluster, kube: Kube) -> ObservedCluster:
        nodes = kube.list_all("v1", "Node")
        not_ready = [f"{_word(node['metadata']['name'])} is not ({_why_not_ready(node)})" for node in nodes if not _is_ready(node)]
        message = f"{len(nodes) - len(not_ready)} of {len(nodes)} nodes are ready{_listing(not_ready)}"
        healthy = bool(nodes) and not not_ready
        zones = {zone for node in nodes if (zone := _label(node, ZONE))}
        cluster = replace(
            cluster,
            status="ready" if healthy else "cluster_provisioned",
            status_details="" if healthy else message,
            external_id=_word(kube.cluster_id()),
            cloud_provider=_joined(_word(str(node.get("spec", {}).get("providerID", "")).partition(":")[0]) for node in nodes),
            region=_joined(_label(node, REGION) for node in nodes),
            multi_az=len(zones) > 1,
            node_sets=self._node_sets(nodes),
            conditions={
                INFRASTRUCTURE_READY: ConditionState(TRUE, "Existing", "The cluster existed before."),
                AVAILABLE: ConditionState(TRUE, "AsExpected", "The API server is ready."),
                DEGRADED: ConditionState(FALSE, "AsExpected", message) if healthy else ConditionState(TRUE, "NodesNotReady", message),
            },
        )
        return _with_openshift(cluster, kube) if _is_openshift(kube) else cluster

    def _node_sets(self, nodes: Sequence[Object]) -> tuple[NodeSet, ...]:
        classes: dict[str, list[Object]] = {}
        for node in nodes:
            classes.setdefault(_label(node, self.ref.class_label) or _label(node, INSTANCE_TYPE) or NO_CLASS, []).append(node)
        return tuple(
            NodeSet(name, name, len(found), sum(map(_is_ready, found)), preexisting=True) for name, found in sorted(classes.items())
        )


def _refuse_choices(request: ClusterRequest) -> None:
    """An existing cluster cannot be changed by a request."""
    choices = {
        "a choice of the version": request.version,
        "a change of the number of nodes": request.node_requests,
        "a choice of the cloud provider": request.cloud_provider,
        "a choice of the region": request.region,
        "a choice of availability zones": request.multi_az,
    }
    for what, choice in choices.items():
        if choice:
            raise NotSupported(ClusterProvider.TYPE, what)


def _parsed(kubeconfig: Any) -> Object:
    """The kubeconfig as an object. Its errors quote nothing of it."""
    content, why = kubeconfig, ""
    if isinstance(kubeconfig, str):
        try:
            content = bounded_yaml.load(kubeconfig)
        except bounded_yaml.BadYaml as error:
            content, why = None, f", because it {error}"
    if not isinstance(content, Mapping) or not content.get("clusters"):
        raise BadCredentials(
            f"secrets.kubeconfig is not a kubeconfig{why}; "
            "set it to what `kubectl config view --raw --flatten` shows, as an object or as text."
        )
    return dict(content)


def _word(value: Any) -> str:
    """A name or a version from the cluster; empty where it is none."""
    text = str(value or "")
    return text if WORD.fullmatch(text) else ""


def _recorded_id(secret: Object) -> str:
    return str((secret["metadata"].get("annotations") or {}).get(CLUSTER_ID, ""))


def _unreachable(cluster: ObservedCluster, state: State, error: KubeError, available: str) -> ObservedCluster:
    condition = ConditionState(available, type(error).__name__, str(error))
    return replace(cluster, status=state, status_details=str(error), retryable=error.retryable, conditions={AVAILABLE: condition})


def _is_ready(node: Object) -> bool:
    return _ready_condition(node).get("status") == TRUE


def _why_not_ready(node: Object) -> str:
    return _word(_ready_condition(node).get("reason")) or "no reason reported"


def _ready_condition(node: Object) -> Object:
    conditions = node.get("status", {}).get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == "Ready"), {})


def _listing(entries: Sequence[str]) -> str:
    more = f", and {len(entries) - SHOWN} more" if len(entries) > SHOWN else ""
    return f": {', '.join(entries[:SHOWN])}{more}" if entries else ""


def _label(item: Object, name: str) -> str:
    return _word((item["metadata"].get("labels") or {}).get(name))


def _joined(values: Any) -> str:
    return ",".join(sorted({value for value in values if value}))


# OpenShift's own configuration


def _is_openshift(kube: Kube) -> bool:
    try:
        return not kube.namespaced(OPENSHIFT, "Infrastructure")
    except NotFound:
        return False


def _openshift(kube: Kube, kind: str, name: str = "cluster") -> Object | None:
    return kube.find(OPENSHIFT, kind, name)


def _with_openshift(cluster: ObservedCluster, kube: Kube) -> ObservedCluster:
    """The cluster with what OpenShift's configuration knows better than the nodes."""
    infrastructure, version, console = (
        (_openshift(kube, kind, name) or {}).get("status") or {}
        for kind, name in (("Infrastructure", "cluster"), ("ClusterVersion", "version"), ("Console", "cluster"))
    )
    platform = infrastructure.get("platformStatus") or {}
    cloud = str(platform.get("type") or "")
    region = next((str(part["region"]) for part in platform.values() if isinstance(part, Mapping) and part.get("region")), "")
    done = [_word(entry["version"]) for entry in version.get("history") or [] if entry.get("state") == "Completed"]
    updates = [_word(entry["version"]) for entry in version.get("availableUpdates") or []]
    return replace(
        cluster,
        cloud_provider="" if cloud == "None" else re.sub(r"\W", "", cloud).lower() or cluster.cloud_provider,
        region=_word(region) or cluster.region,
        api_url=_url(infrastructure.get("apiServerURL")) or cluster.api_url,
        console_url=_url(console.get("consoleURL")),
        version=done[0] if done else cluster.version,
        running_version=done[0] if done else cluster.version,
        available_updates=tuple(filter(None, updates)),
    )


def _url(value: Any) -> str:
    """An address from the cluster's configuration; empty where it is none."""
    text = str(value or "")
    return text if text.startswith("https://") and _word(text.removeprefix("https://").rstrip("/")) else ""
