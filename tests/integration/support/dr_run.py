"""Reconciles of disaster recovery on two clusters: a process on each, the objects they need, and an application that is protected.

Each process has the permissions of the shipped roles, and reaches its peers with those of the shipped role for peers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.setup import profile_of
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import History, StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import State as StateDocument
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.term import begin_term
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.fencing import fence_name
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import CSI_ADDONS, NETWORK_FENCE
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.modes import Modes
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.reconcile import Reconciler, Result
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.model import REGISTRY
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.store import RegistryStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect

from .kubeconfigs import create_account, create_token, put_kubeconfig, until_granted, with_user
from .manifests import manifest
from .replication import RAMEN, Protected

POLICY = "east-west"
ACCOUNTS = ("peer", "controller")
# What Ramen reads to fence a cluster.
STORAGE = {
    f"drcluster.ramendr.openshift.io/storage-{name}": value
    for name, value in {
        "driver": "csi.example.com",
        "clusterid": "storage",
        "secret-name": "csi",
        "secret-namespace": "storage",
    }.items()
}
SECONDS = 120.0  # what a busy machine may need


class Recovery:
    """The DRPlacementControl `app` of a protected application, and one process for each cluster."""

    def __init__(self, application: Protected, bucket: Mapping[str, str], interval: str = "1m") -> None:
        self.application = application
        self._interval = interval  # an empty one is synchronous
        self.namespace = application.namespace
        self.sites = application.sites
        self.options = dict(bucket)
        self.store = connect(bucket)
        self.workload = WorkloadRef(self.namespace, "app")
        self._leases: dict[str, Lease] = {}
        self._processes: dict[str, Access] = dict(self.sites)  # the clusters that have a process
        self._tokens = {name: install_roles(site.kube, self.namespace) for name, site in self.sites.items()}
        for site in self.sites.values():
            self.register(site, self.namespace)

    def add_process(self, name: str, cluster: Access) -> None:
        """A process on a cluster that is no member, such as a hub."""
        self._processes[name] = cluster
        self._tokens[name] = install_roles(cluster.kube, self.namespace)
        self.register(cluster, self.namespace)

    def register(self, site: Access, namespace: str) -> None:
        """What a cluster has before anything is protected. Each has its own copy of it all."""
        for peer in self.sites:
            put_kubeconfig(site.kube, namespace, f"{peer}-kubeconfig", self.peer_kubeconfig(peer))
            spec = {"region": peer, "s3ProfileName": profile_of(peer), "cidrs": [f"10.0.{len(peer)}.0/24"]}
            metadata = {"name": peer, "annotations": STORAGE}
            site.kube.apply({"apiVersion": RAMEN, "kind": "DRCluster", "metadata": metadata, "spec": spec}, force=True)
        entries = [{"name": peer, "kubeconfig_secret": f"{peer}-kubeconfig"} for peer in self.sites]
        RegistryStore(site.kube, REGISTRY).register(namespace, "peers", entries)
        policy = {"drClusters": list(self.sites), "schedulingInterval": self._interval}
        site.kube.apply({"apiVersion": RAMEN, "kind": "DRPolicy", "metadata": {"name": POLICY}, "spec": policy}, force=True)

    def settings(self, site: str, **settings: str) -> None:
        metadata = {"name": "dr-settings", "namespace": self.namespace}
        self._processes[site].kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": settings}, force=True)

    def protect(self, site: str, **spec: Any) -> None:
        """Create the DRPlacementControl on one cluster."""
        wanted = {
            "drPolicyRef": {"name": POLICY},
            "placementRef": {"kind": "Placement", "name": "app"},
            "preferredCluster": "east",
            "pvcSelector": {"matchLabels": self.application.app.labels},
        }
        metadata = {"name": "app", "namespace": self.namespace}
        self._processes[site].kube.create({"apiVersion": RAMEN, "kind": "DRPlacementControl", "metadata": metadata, "spec": wanted | spec})

    def ask(self, site: str, **spec: Any) -> None:
        """Change the spec of the copy on one cluster."""
        self._processes[site].kube.patch(self.drpc(site), {"spec": spec}, checked=False)

    def drpc(self, site: str) -> Object:
        return self._processes[site].kube.get(RAMEN, "DRPlacementControl", "app", self.namespace)

    def has_drpc(self, site: str) -> bool:
        return self._processes[site].kube.find(RAMEN, "DRPlacementControl", "app", self.namespace) is not None

    def status(self, site: str) -> Object:
        """The status of the copy, also while it comes and goes: empty without one."""
        found: Object = self._processes[site].kube.find(RAMEN, "DRPlacementControl", "app", self.namespace) or {}
        status: Object = found.get("status") or {}
        return status

    def conditions(self, site: str) -> dict[str, tuple[str, str]]:
        return {item["type"]: (item["status"], item["reason"]) for item in self.drpc(site)["status"]["conditions"]}

    def state(self) -> StateDocument:
        return StateStore(DocumentStore(self.store, self.workload.identity()), self.workload).read()

    def history(self) -> list[dict[str, Any]]:
        return History(DocumentStore(self.store, self.workload.identity()), self.workload).entries()

    def acquire(self, site: str) -> int:
        """Let the process of a cluster lead, after the one that led before has released its lease."""
        for lease in self._leases.values():
            lease.release()
        lease = self._leases[site] = Lease(self.store, self.workload, site, site)
        assert lease.try_acquire()
        begin_term(self.store, lease)
        return lease.epoch

    def kubeconfig(self, site: str) -> Object:
        """How the process of a cluster connects to it."""
        return with_user(self._processes[site], token=self._tokens[site]["controller"])

    def peer_kubeconfig(self, site: str) -> Object:
        """How the processes of other clusters connect to it."""
        return with_user(self.sites[site], token=self._tokens[site]["peer"])

    def reconciler(self, site: str, pause: Callable[[], None] = lambda: None) -> Reconciler:
        kube = Kube.connect({"kubeconfig": self.kubeconfig(site)})
        access = Modes(kube, self.namespace, self.store, site).access()
        return Reconciler(kube, access, self.store, site, pause=pause)

    def lead(self, site: str, epoch: int) -> Result:
        return self.reconciler(site).lead(self.workload, epoch)

    def watch(self, site: str) -> Result:
        return self.reconciler(site).watch(self.workload)

    def lead_until(self, site: str, epoch: int, phase: str, progression: str, *, peer_ready: bool = True) -> list[Result]:
        """Reconcile as each change of a VolumeReplicationGroup would, until the request is complete."""
        results: list[Result] = []

        def reached() -> bool:
            result = self.lead(site, epoch)
            results.append(result)
            assert result.ended in ("Waiting", "Settled", "Acting"), result
            state = result.view.state if result.view else None
            return bool(state and (state.phase, state.progression) == (phase, progression) and (state.peer_ready or not peer_ready))

        until(reached, f"{phase}/{progression}", SECONDS)
        return results


def install_roles(kube: Kube, namespace: str) -> dict[str, str]:
    """Create an account with each shipped role, and return their tokens. The namespace stands for that of the site."""
    tokens = {}
    for account in ACCOUNTS:
        role = manifest(f"dr/{account}_cluster_role")
        kube.apply(role, force=True)
        create_account(kube, namespace, account, role["metadata"]["name"])
        tokens[account] = create_token(kube, namespace, account)
    for name, where in (("controller", namespace), ("ramen", "ramen-system")):
        role, binding = manifest(f"dr/{name}_role"), manifest(f"dr/{name}_role_binding")
        subjects = [{"kind": "ServiceAccount", "name": "controller", "namespace": namespace}]
        for item in (role, binding | {"subjects": subjects}):
            kube.apply(item | {"metadata": item["metadata"] | {"namespace": where}}, force=True)
        until_granted(kube, namespace, "controller", role, where)
    return tokens


@contextlib.contextmanager
def recovery(application: Protected, bucket: Mapping[str, str], interval: str = "1m") -> Iterator[Recovery]:
    """Afterwards nothing is left on the clusters, whatever the test did."""
    created = Recovery(application, bucket, interval)
    try:
        yield created
    finally:
        for site in application.sites.values():
            clean_up(site.kube, application)


def clean_up(kube: Kube, application: Protected) -> None:
    """Delete what a process needs on its cluster, besides its namespace."""
    found = kube.find(RAMEN, "DRPlacementControl", "app", application.namespace)
    if found:
        kube.patch(found, {"metadata": {"finalizers": None}}, checked=False)
    for kind, name in (("DRPolicy", POLICY), *(("DRCluster", name) for name in application.sites)):
        kube.delete({"apiVersion": RAMEN, "kind": kind, "metadata": {"name": name}})
    for name in application.sites:
        kube.delete({"apiVersion": CSI_ADDONS, "kind": NETWORK_FENCE, "metadata": {"name": fence_name(name)}})
    for account in ACCOUNTS:
        metadata = {"name": f"{application.namespace}-{account}"}
        kube.delete({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": metadata})
