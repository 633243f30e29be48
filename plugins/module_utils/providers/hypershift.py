# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""HyperShift: the control plane is a HostedCluster on the hub, and each set of nodes a NodePool."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ..common.timestamps import parse_time
from ..common.types import Object
from ..kube.errors import Invalid
from ..kube.kinds import register
from ..kube.untrusted import kubeconfig_of
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
    IdentityProvider,
    Kubeconfig,
    NodeRequest,
    NodeSet,
    ObservedCluster,
    ResourceSet,
    State,
)
from .objects import api_url, condition_state_of, is_deleting, is_outdated, is_true, metadata, node_set_name, resource_class_of, selector

GROUP = "hypershift.openshift.io"
API_VERSION = f"{GROUP}/v1beta1"
register(GROUP, "HostedCluster", "hostedclusters")
register(GROUP, "NodePool", "nodepools", after="HostedCluster")
# How each service of a control plane is published where the request says nothing of it.
PUBLISHING = {"APIServer": "LoadBalancer", "OAuthServer": "Route", "Konnectivity": "Route", "Ignition": "Route"}
AVAILABILITY = ["SingleReplica", "HighlyAvailable"]
NODE_CONDITIONS = ("Ready", "AllMachinesReady", "AllNodesHealthy")
# The names of the identity providers that the cluster was asked for with. What else it has somebody has added, and that stays.
CONFIGURED = "openfleet.clusters/configured-identity-providers"
# For each type of identity provider: the field of its settings, and the one in them that names its secret.
IDENTITY_PROVIDERS = {
    "GitHub": ("github", "clientSecret"),
    "GitLab": ("gitlab", "clientSecret"),
    "Google": ("google", "clientSecret"),
    "HTPasswd": ("htpasswd", "fileData"),
    "LDAP": ("ldap", "bindPassword"),
    "OpenID": ("openID", "clientSecret"),
}
SECRET_KEYS = {"fileData": "htpasswd"}  # elsewhere the key of the secret is called as the field


class ClusterProvider(Provider):
    """A HostedCluster of the place's name, and a NodePool for each resource class."""

    TYPE = "hypershift"
    WATCHES = ((API_VERSION, "HostedCluster"), (API_VERSION, "NodePool"))
    SETTINGS: ClassVar[Mapping[str, Any]] = {
        "platform": {"type": "dict", "default": {"type": "None"}},
        "node_platform": {"type": "dict", "default": {}},
        "base_domain": {"type": "str"},
        "pod_network_cidr": {"type": "str", "default": "10.132.0.0/14"},
        "service_network_cidr": {"type": "str", "default": "172.31.0.0/16"},
        "network_type": {"type": "str", "default": "OVNKubernetes"},
        "control_plane_availability": {"type": "str", "choices": AVAILABILITY, "default": "SingleReplica"},
        "infrastructure_availability": {"type": "str", "choices": AVAILABILITY},
        "publishing": {"type": "dict", "default": {}},
        "configuration": {"type": "dict", "default": {}},
    }
    SECRETS: ClassVar[Mapping[str, Any]] = {
        "pull_secret": {"type": "str", "required": True, "no_log": True},
        "ssh_public_key": {"type": "str"},
        "extra": {"type": "dict", "default": {}, "no_log": True},
    }

    def __init__(self, ref: ClusterRef) -> None:
        super().__init__(ref)
        self._looked: tuple[Object | None, list[Object]] | None = None

    def create(self, request: ClusterRequest) -> ObservedCluster:
        cluster, pools = self._look()
        return self._seen(cluster, pools) if cluster else self._apply(request, None, pools)

    def update(self, spec: ObservedCluster, request: ClusterRequest) -> ObservedCluster:
        return self._apply(request, *self._look())

    def _apply(self, request: ClusterRequest, cluster: Object | None, pools: list[Object]) -> ObservedCluster:
        """Make the cluster what is asked for; NodePools of classes that are no longer asked for go."""
        wanted = Manifests(self.ref, request)
        items = wanted.objects()
        kept = {item["metadata"]["name"] for item in items if item["kind"] == "NodePool"}
        known = [self._without_the_last(cluster, wanted.hosted_cluster()), *pools, *self._secrets()] if cluster else pools
        changes = self.writer.apply(items, _beside_others, known)
        changes += self.writer.delete(pool for pool in pools if pool["metadata"]["name"] not in kept)
        self.changes += changes
        after = [change.after for change in changes if change.after]
        return self.observe_objects(ObservedCluster(), after)

    def _without_the_last(self, cluster: Object, wanted: Object) -> Object:
        """The cluster, where no identity provider is to be left, without those it has: an apply leaves what others have written since."""
        if _providers(wanted) or _others(wanted, cluster) or not _providers(cluster):
            return cluster
        self.changes.append(self.writer.patch(cluster, lambda present: _identity_patch(present, _others(wanted, present))))
        return self.changes[-1].item

    def delete(self, spec: ObservedCluster) -> bool:
        """The secrets go when the HostedCluster is gone: until then HyperShift may need them."""
        cluster, pools = self._look()
        remains = [cluster] if cluster else self._secrets()
        self.changes += self.writer.delete([*remains, *pools])
        return not remains and not pools

    def _secrets(self) -> list[Object]:
        """Those that belong to the cluster, in one request."""
        return list(self.ref.kube.list_all("v1", "Secret", self.ref.namespace, selector(self.ref)))

    def status(self, spec: ObservedCluster) -> ObservedCluster:
        self._looked = self._read()
        return self._seen(*self._looked)

    def observe_objects(self, spec: ObservedCluster, items: Sequence[Object]) -> ObservedCluster:
        clusters = [item for item in items if item["kind"] == "HostedCluster" and item["metadata"]["name"] == self.ref.name]
        return self._seen(clusters[0] if clusters else None, [item for item in items if item["kind"] == "NodePool"])

    def kubeconfig(self, spec: ObservedCluster) -> Kubeconfig:
        name = (self._existing().get("status") or {}).get("kubeconfig", {}).get("name")
        if not name:
            raise NotReadyYet(f"The cluster {self.ref.name} has no kubeconfig yet; it gets one when its control plane is available.")
        secret = self.ref.kube.get("v1", "Secret", name, self.ref.namespace)
        # Whoever works in the namespace can write the Secret.
        return Kubeconfig(kubeconfig_of(secret), secret["metadata"]["resourceVersion"])

    def dns(self, spec: ObservedCluster) -> str:
        domain = _domain(self._existing())
        if not domain:
            raise NotReadyYet(f"The cluster {self.ref.name} has no base domain; set base_domain in its settings.")
        return f"apps.{domain}"

    def apply_resources(self, spec: ObservedCluster, resource_set: ResourceSet) -> None:
        resources.apply(self, self.connect(spec), resource_set)

    def remove_resources(self, spec: ObservedCluster, name: str) -> bool:
        return resources.remove(self, self.connect(spec), name)

    def scale(self, spec: ObservedCluster, resource_class: str, nodes: int) -> ObservedCluster:
        cluster, pools = self._existing(), self._pools()
        mine = [pool for pool in pools if resource_class_of(pool, self.ref.class_label) == resource_class]
        if nodes == 0:
            self.changes += self.writer.delete(mine)
        elif mine:
            self.changes.append(self.writer.patch(mine[0], lambda _present: {"spec": {"replicas": nodes, "autoScaling": None}}))
        elif pools:
            pool = node_pool(self.ref, NodeRequest(resource_class, nodes), {**pools[0]["spec"], "autoScaling": None})
            self.changes += self.writer.apply([pool])
        else:
            raise Invalid(f"{self.ref.name} has no nodes of another class to take as an example for {resource_class}.", ["resource_class"])
        return self._seen(cluster, self._pools())

    def add_identity_provider(self, spec: ObservedCluster, identity_provider: IdentityProvider) -> None:
        cluster = self._existing()
        entry, secret = _identity_provider(self.ref, identity_provider)
        self.changes += self.writer.apply([secret] if secret else [])

        def merged(present: Object) -> Object:
            entries = _providers(present)
            names = [item["name"] for item in entries]
            if entry["name"] in names:
                entries[names.index(entry["name"])] = entry
            else:
                entries.append(entry)
            return _identity_patch(present, entries)

        self.changes.append(self.writer.patch(cluster, merged))

    def remove_identity_provider(self, spec: ObservedCluster, name: str) -> None:
        def without(present: Object) -> Object:
            left = [item for item in _providers(present) if item["name"] != name]
            return _identity_patch(present, left) if left != _providers(present) else {}

        self.changes.append(self.writer.patch(self._existing(), without))
        secret = self.ref.kube.find("v1", "Secret", _identity_secret(self.ref, name), self.ref.namespace)
        self.changes += self.writer.delete([secret] if secret else [])

    # How it is looked up

    def _look(self) -> tuple[Object | None, list[Object]]:
        """What is there. What a status was just made of need not be read again: a write of it is refused if it is no longer so."""
        looked, self._looked = self._looked, None
        return looked or self._read()

    def _read(self) -> tuple[Object | None, list[Object]]:
        return self.ref.kube.find(API_VERSION, "HostedCluster", self.ref.name, self.ref.namespace), self._pools()

    def _existing(self) -> Object:
        cluster = self.ref.kube.find(API_VERSION, "HostedCluster", self.ref.name, self.ref.namespace)
        if cluster is None:
            raise NoSuchCluster(f"There is no HostedCluster {self.ref.namespace}/{self.ref.name}.")
        return cluster

    def _pools(self) -> list[Object]:
        return self.ref.kube.list_all(API_VERSION, "NodePool", self.ref.namespace, selector(self.ref))

    def _seen(self, cluster: Object | None, pools: Sequence[Object]) -> ObservedCluster:
        node_sets = _node_sets(pools, self.ref.class_label)
        if cluster is None:
            return ObservedCluster(status="cleanup" if pools else "absent", node_sets=node_sets)
        conditions = {
            kind: verdict for kind in (INFRASTRUCTURE_READY, AVAILABLE, DEGRADED) if (verdict := condition_state_of(cluster, kind))
        }
        state, details = _state(cluster, conditions, node_sets)
        return ObservedCluster(
            internal_id=f"{self.ref.namespace}/{self.ref.name}",
            external_id=str((cluster.get("spec") or {}).get("clusterID") or ""),
            status=state,
            status_details=details,
            node_sets=node_sets,
            api_url=api_url((cluster.get("status") or {}).get("controlPlaneEndpoint")),
            console_url=_console_url(cluster),
            version=str((cluster.get("spec") or {}).get("release", {}).get("image") or ""),
            retryable=False,
            installed=_is_installed(cluster),
            updating=_is_updating(cluster, node_sets),
            created_at=parse_time(cluster["metadata"].get("creationTimestamp")),
            conditions=conditions,
        )


class Manifests:
    """The objects that a request comes to."""

    def __init__(self, ref: ClusterRef, request: ClusterRequest) -> None:
        self._ref = ref
        self._request = request
        self._settings = request.settings

    def objects(self) -> list[Object]:
        platform, node_platform = self._settings["platform"], dict(self._settings["node_platform"])
        kind = platform.get("type")
        if kind == "Agent":
            node_platform.setdefault("agent", {})
        pool = {
            "release": {"image": self._request.version},
            "management": {"upgradeType": "Replace", "autoRepair": False},
            "platform": {"type": kind, **node_platform},
        }
        pools = [node_pool(self._ref, request, pool) for request in self._request.node_requests]
        return [*self._secrets(), self.hosted_cluster(), *pools]

    def _secrets(self) -> list[Object]:
        name, given = self._ref.name, self._request.secrets
        made = [secret(self._ref, f"{name}-pull-secret", {".dockerconfigjson": given["pull_secret"]}, "kubernetes.io/dockerconfigjson")]
        if given.get("ssh_public_key"):
            made.append(secret(self._ref, f"{name}-ssh-key", {"id_rsa.pub": given["ssh_public_key"]}))
        return [*made, *(secret(self._ref, extra, content) for extra, content in given["extra"].items())]

    def hosted_cluster(self) -> Object:
        settings, name = self._settings, self._ref.name
        publishing: dict[str, Any] = {**PUBLISHING, **settings["publishing"]}
        spec: Object = {
            "release": {"image": self._request.version},
            "pullSecret": {"name": f"{name}-pull-secret"},
            "platform": settings["platform"],
            "networking": {
                "clusterNetwork": [{"cidr": settings["pod_network_cidr"]}],
                "serviceNetwork": [{"cidr": settings["service_network_cidr"]}],
                "networkType": settings["network_type"],
            },
            "controllerAvailabilityPolicy": settings["control_plane_availability"],
            "infrastructureAvailabilityPolicy": settings.get("infrastructure_availability") or settings["control_plane_availability"],
            "etcd": {
                "managementType": "Managed",
                "managed": {"storage": {"type": "PersistentVolume", "persistentVolume": {"size": "8Gi"}}},
            },
            "services": [
                {"service": service, "servicePublishingStrategy": {"type": how} if isinstance(how, str) else how}
                for service, how in publishing.items()
            ],
        }
        if self._request.secrets.get("ssh_public_key"):
            spec["sshKey"] = {"name": f"{name}-ssh-key"}
        if settings.get("base_domain"):
            spec["dns"] = {"baseDomain": settings["base_domain"]}
        if settings["configuration"]:
            spec["configuration"] = settings["configuration"]
        cluster: Object = {"apiVersion": API_VERSION, "kind": "HostedCluster", "metadata": metadata(self._ref, name), "spec": spec}
        if configured := _names(_providers(cluster)):
            cluster["metadata"]["annotations"] = {CONFIGURED: json.dumps(configured)}
        return cluster


def node_pool(ref: ClusterRef, request: NodeRequest, spec: Mapping[str, Any]) -> Object:
    """The NodePool of a resource class; `spec` is what all NodePools of the cluster share."""
    name = f"{ref.name}-{node_set_name(request.resource_class)}"
    own = {"clusterName": ref.name, "replicas": request.number_of_nodes}
    return {
        "apiVersion": API_VERSION,
        "kind": "NodePool",
        "metadata": metadata(ref, name, {ref.class_label: request.resource_class}),
        "spec": {key: value for key, value in {**spec, **own}.items() if value is not None},
    }


def secret(ref: ClusterRef, name: str, content: Mapping[str, str], kind: str = "Opaque") -> Object:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in content.items()}
    return {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata(ref, name), "data": data}


# What the objects say


def _state(cluster: Object, conditions: Mapping[str, ConditionState], node_sets: Sequence[NodeSet]) -> tuple[State, str]:
    """The state, and in words why it is not ready."""
    if is_deleting(cluster):
        return "deprovisioning", "The HostedCluster is being deleted"
    valid = condition_state_of(cluster, "ValidConfiguration")
    if valid and valid.status == FALSE:
        return "failed", f"ValidConfiguration is {valid}"
    available, degraded = conditions.get(AVAILABLE), conditions.get(DEGRADED)
    if available is None:
        return "cluster_accepted", "HyperShift has not looked at the HostedCluster yet"
    if available.status != TRUE:
        return "cluster_provisioning", f"Available is {available}"
    if degraded and degraded.status == TRUE:
        return "cluster_provisioned", f"Degraded is {degraded}"
    missing = sum(max((item.requested or 0) - item.ready, 0) for item in node_sets)
    if missing:
        return "cluster_provisioned", f"{missing} nodes are not ready yet"
    if not _is_installed(cluster):
        return "cluster_provisioned", "The release is not installed completely yet"
    return "ready", ""


def _is_installed(cluster: Object) -> bool:
    return any(release.get("state") == "Completed" for release in _history(cluster))


def _node_sets(pools: Sequence[Object], class_label: str) -> tuple[NodeSet, ...]:
    """The NodePools that carry a resource class. One without is nobody's order, so it is neither counted nor missed."""
    return tuple(_node_set(pool, resource_class) for pool in pools if (resource_class := resource_class_of(pool, class_label)))


def _node_set(pool: Object, resource_class: str) -> NodeSet:
    spec, status = pool.get("spec") or {}, pool.get("status") or {}
    answers = [condition for condition in status.get("conditions") or [] if condition["type"] in NODE_CONDITIONS]
    return NodeSet(
        name=pool["metadata"]["name"],
        resource_class=resource_class,
        requested=None if spec.get("autoScaling") else spec.get("replicas") or 0,
        ready=status.get("replicas") or 0,
        outdated=any(is_outdated(pool, condition) for condition in answers),
        updating=is_true(pool, "UpdatingVersion") or is_true(pool, "UpdatingConfig"),
        deleting=is_deleting(pool),
    )


def _history(cluster: Object) -> list[Object]:
    """The releases, newest first."""
    return ((cluster.get("status") or {}).get("version") or {}).get("history") or []


def _is_updating(cluster: Object, node_sets: Sequence[NodeSet]) -> bool:
    """Whether a release or a configuration is being rolled out, on the control plane or on nodes."""
    history = _history(cluster)
    rolling = is_true(cluster, "Progressing") or (bool(history) and history[0].get("state") != "Completed")
    return rolling or any(item.updating for item in node_sets)


def _domain(cluster: Object) -> str:
    """The base domain, below a prefix that is the cluster's name unless set, even to nothing."""
    dns = (cluster.get("spec") or {}).get("dns") or {}
    if not dns.get("baseDomain"):
        return ""
    return ".".join(part for part in (dns.get("baseDomainPrefix", cluster["metadata"]["name"]), dns["baseDomain"]) if part)


def _console_url(cluster: Object) -> str:
    """Where OpenShift puts its console."""
    domain = _domain(cluster)
    return f"https://console-openshift-console.apps.{domain}" if domain else ""


# Identity providers


def _identity_provider(ref: ClusterRef, wanted: IdentityProvider) -> tuple[Object, Object | None]:
    """The entry for the HostedCluster, and the secret that it names."""
    if wanted.type not in IDENTITY_PROVIDERS:
        raise Invalid(f"There is no identity provider of type {wanted.type}; it is one of {', '.join(IDENTITY_PROVIDERS)}.", ["type"])
    section, reference = IDENTITY_PROVIDERS[wanted.type]
    key = SECRET_KEYS.get(reference, reference)
    if set(wanted.secrets) - {key}:
        raise Invalid(f"An identity provider of type {wanted.type} has one secret, {key}.", ["secrets"])
    settings, content = dict(wanted.settings), None
    if wanted.secrets:
        content = secret(ref, _identity_secret(ref, wanted.name), wanted.secrets)
        settings[reference] = {"name": content["metadata"]["name"]}
    return {"name": wanted.name, "mappingMethod": "claim", "type": wanted.type, section: settings}, content


def _identity_secret(ref: ClusterRef, name: str) -> str:
    return f"{ref.name}-idp-{name.lower()}"


def _oauth(cluster: Object) -> Object:
    return ((cluster.get("spec") or {}).get("configuration") or {}).get("oauth") or {}


def _providers(cluster: Object) -> list[Object]:
    return list(_oauth(cluster).get("identityProviders") or [])


def _names(providers: Sequence[Object]) -> list[str]:
    return [str(item["name"]) for item in providers]


def _configured(cluster: Object) -> list[str]:
    """The names of those that it was asked for with before."""
    try:
        return [str(name) for name in json.loads((cluster["metadata"].get("annotations") or {}).get(CONFIGURED, "[]"))]
    except (ValueError, TypeError):
        return []  # whoever has written it meant something else; then nothing goes


def _others(wanted: Object, present: Object) -> list[Object]:
    """Those that stay beside the wanted ones: all but what was asked for before. Of two with one name the wanted one counts."""
    ours = {*_names(_providers(wanted)), *_configured(present)}
    return [item for item in _providers(present) if item["name"] not in ours]


def _beside_others(wanted: Object, present: Object) -> Object:
    """What to apply: a HostedCluster with the identity providers of others behind its own."""
    others = _others(wanted, present) if wanted["kind"] == "HostedCluster" else []
    if not others:
        return wanted
    oauth = {**_oauth(wanted), "identityProviders": [*_providers(wanted), *others]}
    return {**wanted, "spec": {**wanted["spec"], "configuration": {**wanted["spec"].get("configuration", {}), "oauth": oauth}}}


def _identity_patch(present: Object, entries: Sequence[Object]) -> Object:
    """What makes these the identity providers, and leaves no empty settings: with any, there is no first administrator any more."""
    more = set(_oauth(present)) - {"identityProviders"}
    oauth = {"identityProviders": [*entries] or None} if entries or more else None
    return {"spec": {"configuration": {"oauth": oauth}}}
