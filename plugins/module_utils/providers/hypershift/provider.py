# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The provider of HyperShift clusters: creates, changes, deletes and observes a HostedCluster and its NodePools."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ...common.types import Object
from ...kube.client import Kube
from ...kube.errors import Invalid, KubeError
from ...kube.untrusted import kubeconfig_of, target_of
from .. import resources
from ..base import ClusterRef, NoSuchCluster, NotReadyYet, Provider
from ..model import AVAILABLE, ClusterRequest, IdentityProvider, Kubeconfig, NodeRequest, ObservedCluster, ResourceSet
from ..objects import resource_class_of, selector
from .console import LIMITS as CONSOLE_LIMITS
from .console import console_url
from .encryption import key_name, require_key, with_present_key
from .identity import foreign_providers, identity_entry, identity_patch, identity_providers, identity_secret_name, with_foreign_providers
from .manifests import Manifests
from .node_pools import API_VERSION, IN_PLACE, REPLACE, has_class_settings, node_pool, with_upgrade_type
from .observe import domain_of, observed_cluster, with_console

NAMESPACE_LIMIT = 63
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
AVAILABILITY = ["SingleReplica", "HighlyAvailable"]


class ClusterProvider(Provider):
    """A HostedCluster of the cluster's name, and a NodePool for each resource class."""

    TYPE = "hypershift"
    WATCHES = ((API_VERSION, "HostedCluster"), (API_VERSION, "NodePool"))
    SETTINGS: ClassVar[Mapping[str, Any]] = {
        "platform": {"type": "dict", "default": {"type": "None"}},
        "node_platform": {"type": "dict", "default": {}},
        "node_platforms": {"type": "dict", "default": {}},
        "node_labels": {"type": "dict", "default": {}},
        "node_taints": {"type": "dict", "default": {}},
        "upgrade_type": {"type": "str", "choices": [REPLACE, IN_PLACE]},
        "base_domain": {"type": "str"},
        "pod_network_cidr": {"type": "str", "default": "10.132.0.0/14"},
        "service_network_cidr": {"type": "str", "default": "172.31.0.0/16"},
        "machine_network_cidr": {"type": "str"},
        "network_type": {"type": "str", "default": "OVNKubernetes"},
        "control_plane_availability": {"type": "str", "choices": AVAILABILITY, "default": "SingleReplica"},
        "infrastructure_availability": {"type": "str", "choices": AVAILABILITY},
        "etcd_storage_size": {"type": "str", "default": "8Gi"},
        "etcd_storage_class": {"type": "str"},
        "fips": {"type": "bool", "default": False},
        "publishing": {"type": "dict", "default": {}},
        "configuration": {"type": "dict", "default": {}},
    }
    NETWORKS = ("pod_network_cidr", "service_network_cidr", "machine_network_cidr")
    SECRETS: ClassVar[Mapping[str, Any]] = {
        "pull_secret": {"type": "str", "required": True, "no_log": True},
        "ssh_public_key": {"type": "str"},
        "extra": {"type": "dict", "default": {}, "no_log": True},
    }

    def __init__(self, ref: ClusterRef) -> None:
        super().__init__(ref)
        self._last_read: tuple[Object | None, list[Object]] | None = None

    def create(self, request: ClusterRequest) -> ObservedCluster:
        cluster, pools = self._read_or_last()
        recorded = ObservedCluster()
        return observed_cluster(self.ref, cluster, pools, recorded) if cluster else self._apply(recorded, request, None, pools)

    def update(self, observed: ObservedCluster, request: ClusterRequest) -> ObservedCluster:
        return self._apply(observed, request, *self._read_or_last())

    def _apply(self, recorded: ObservedCluster, request: ClusterRequest, cluster: Object | None, pools: list[Object]) -> ObservedCluster:
        """Apply the objects of the request, and delete NodePools of classes that it does not have."""
        if cluster is None:
            self._require_free_control_plane()
        wanted = Manifests(self.ref, request, cluster)
        items = wanted.objects()
        wanted_pools = {item["metadata"]["name"] for item in items if item["kind"] == "NodePool"}
        known = [self._without_providers(cluster, wanted.hosted_cluster()), *pools, *self._secrets()] if cluster else pools
        if cluster:
            require_key(self.ref, items, known)
        changes = self.writer.apply(items, self._in_view_of, known, new=cluster is None)
        changes += self.writer.delete(pool for pool in pools if pool["metadata"]["name"] not in wanted_pools)
        self.changes += changes
        after = [change.after for change in changes if change.after]
        return self.observe_objects(recorded, after)

    def _require_free_control_plane(self) -> None:
        """HyperShift puts the control plane into a namespace of both names, and would use one that exists for something else."""
        name = f"{self.ref.namespace}-{self.ref.name}"
        if len(name) > NAMESPACE_LIMIT or not LABEL.fullmatch(name):
            raise Invalid(
                f"HyperShift would create the control plane in the namespace {name}, of both names: shorten or change them until that is a "
                "name of at most 63 lower-case letters, digits and dashes.",
                ["name"],
            )
        if self.ref.kube.find("v1", "Namespace", name):
            raise NotReadyYet(f"The namespace {name}, in which HyperShift would create the control plane, exists for something else.")

    def _without_providers(self, cluster: Object, wanted: Object) -> Object:
        """The cluster without identity providers, where none is wanted: an apply would leave what other writers have changed in them."""
        if identity_providers(wanted) or foreign_providers(wanted, cluster) or not identity_providers(cluster):
            return cluster
        self.changes.append(self.writer.patch(cluster, lambda present: identity_patch(present, foreign_providers(wanted, present))))
        return self.changes[-1].item

    def delete(self, observed: ObservedCluster) -> bool:
        """The Secrets are deleted after the HostedCluster: until then HyperShift may need them."""
        cluster, pools = self._read_or_last()
        remains = [cluster] if cluster else self._secrets()
        self.changes += self.writer.delete([*remains, *pools])
        return not remains and not pools

    def _secrets(self) -> list[Object]:
        """The Secrets of the cluster, in one request. HyperShift copies labels of the HostedCluster to Secrets that it owns."""
        found = self.ref.kube.list_all("v1", "Secret", self.ref.namespace, selector(self.ref))
        return [item for item in found if not item["metadata"].get("ownerReferences")]

    def status(self, observed: ObservedCluster) -> ObservedCluster:
        self._last_read = self._read()
        return observed_cluster(self.ref, *self._last_read, observed)

    def observe_objects(self, observed: ObservedCluster, items: Sequence[Object]) -> ObservedCluster:
        clusters = [item for item in items if item["kind"] == "HostedCluster" and item["metadata"]["name"] == self.ref.name]
        pools = [item for item in items if item["kind"] == "NodePool"]
        return observed_cluster(self.ref, clusters[0] if clusters else None, pools, observed)

    def observe_inside(self, observed: ObservedCluster) -> ObservedCluster:
        if observed.console_url or not observed.installed or not observed.is_true(AVAILABLE):
            return observed
        try:
            found = console_url(Kube(target_of(self.kubeconfig(observed).content, foreign=False), limits=CONSOLE_LIMITS))
        except KubeError:  # what the cluster does not tell now, it tells at the end of another run
            return observed
        return with_console(observed, found)

    def kubeconfig(self, observed: ObservedCluster) -> Kubeconfig:
        name = (self._existing().get("status") or {}).get("kubeconfig", {}).get("name")
        if not name:
            raise NotReadyYet(f"The cluster {self.ref.name} has no kubeconfig yet; it gets one when its control plane is available.")
        secret = self.ref.kube.get("v1", "Secret", name, self.ref.namespace)
        # Every account with access to the namespace can write the Secret.
        return Kubeconfig(kubeconfig_of(secret), secret["metadata"]["resourceVersion"])

    def dns(self, observed: ObservedCluster) -> str:
        domain = domain_of(self._existing())
        if not domain:
            raise NotReadyYet(f"The cluster {self.ref.name} has no base domain; set base_domain in its settings.")
        return f"apps.{domain}"

    def apply_resources(self, observed: ObservedCluster, resource_set: ResourceSet) -> None:
        resources.apply(self, self.connect(observed), resource_set)

    def remove_resources(self, observed: ObservedCluster, name: str) -> bool:
        return resources.remove(self, self.connect(observed), name)

    def scale(self, observed: ObservedCluster, resource_class: str, nodes: int) -> ObservedCluster:
        cluster, pools = self._existing(), self._pools()
        mine = [pool for pool in pools if resource_class_of(pool, self.ref.class_label) == resource_class]
        if nodes == 0:
            self.changes += self.writer.delete(mine)
        elif mine:
            self.changes.append(self.writer.patch(mine[0], lambda _present: {"spec": {"replicas": nodes, "autoScaling": None}}))
        elif any(map(has_class_settings, pools)):
            raise Invalid(
                f"The nodes of {self.ref.name} have settings of their classes, and those of {resource_class} are not known here: "
                "request the class with the module cluster, or in the order.",
                ["resource_class"],
            )
        elif pools:
            pool = node_pool(self.ref, NodeRequest(resource_class, nodes), {**pools[0]["spec"], "autoScaling": None})
            self.changes += self.writer.apply([pool])
        else:
            raise Invalid(f"{self.ref.name} has no nodes of another class, whose settings {resource_class} could have.", ["resource_class"])
        return observed_cluster(self.ref, cluster, self._pools(), observed)

    def add_identity_provider(self, observed: ObservedCluster, identity_provider: IdentityProvider) -> None:
        cluster = self._existing()
        entry, secret = identity_entry(self.ref, identity_provider)
        self.changes += self.writer.apply([secret] if secret else [])

        def merged(present: Object) -> Object:
            entries = identity_providers(present)
            names = [item["name"] for item in entries]
            if entry["name"] in names:
                entries[names.index(entry["name"])] = entry
            else:
                entries.append(entry)
            return identity_patch(present, entries)

        self.changes.append(self.writer.patch(cluster, merged))

    def remove_identity_provider(self, observed: ObservedCluster, name: str) -> None:
        def without(present: Object) -> Object:
            left = [item for item in identity_providers(present) if item["name"] != name]
            return identity_patch(present, left) if left != identity_providers(present) else {}

        self.changes.append(self.writer.patch(self._existing(), without))
        secret = self.ref.kube.find("v1", "Secret", identity_secret_name(self.ref, name), self.ref.namespace)
        self.changes += self.writer.delete([secret] if secret else [])

    def _in_view_of(self, wanted: Object, present: Object) -> Object:
        """The wanted object with what stays of the one that exists."""
        if wanted["kind"] == "NodePool":
            return with_upgrade_type(wanted, present)
        if wanted["kind"] == "Secret" and wanted["metadata"]["name"] == key_name(self.ref):
            return with_present_key(wanted, present)
        return with_foreign_providers(wanted, present)

    # Reads

    def _read_or_last(self) -> tuple[Object | None, list[Object]]:
        """The objects of the cluster. Those of the last status are not read again: a write is refused if they have changed since."""
        last, self._last_read = self._last_read, None
        return last or self._read()

    def _read(self) -> tuple[Object | None, list[Object]]:
        return self.ref.kube.find(API_VERSION, "HostedCluster", self.ref.name, self.ref.namespace), self._pools()

    def _existing(self) -> Object:
        cluster = self.ref.kube.find(API_VERSION, "HostedCluster", self.ref.name, self.ref.namespace)
        if cluster is None:
            raise NoSuchCluster(f"There is no HostedCluster {self.ref.namespace}/{self.ref.name}.")
        return cluster

    def _pools(self) -> list[Object]:
        return self.ref.kube.list_all(API_VERSION, "NodePool", self.ref.namespace, selector(self.ref))
