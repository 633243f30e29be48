"""Disaster recovery through an ACM hub: a process on the hub, the members' agents, and the delivery of the application by its Placement.

The hub is a cluster of its own with the kinds of Open Cluster Management. ACM's agents and its delivery are stand-ins; the members, with
their replication, are those of the tests without a hub.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.acm.placement import SCHEDULING_DISABLED
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import PLACEMENT, PLACEMENT_DECISION, VERSIONS
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.reconcile import Result

from .acm_agent_standin import AgentStandIn
from .dr_run import Recovery, clean_up, recovery
from .manifests import manifest
from .replication import Protected

HUB = "hub"
RBAC = "rbac.authorization.k8s.io"


class ManagedRecovery:
    """A recovery whose process is on the hub. Between two reconciles the agents of the members that are up do their work."""

    def __init__(self, dr: Recovery, hub: Access) -> None:
        self.dr, self.hub = dr, hub
        self.agents = {name: AgentStandIn(hub.kube, name, site.kube) for name, site in dr.sites.items()}
        self.delivers = True  # ACM deploys the application by its placement
        self._down: set[str] = set()
        for agent in self.agents.values():
            agent.join()
        metadata = {"name": "app", "namespace": dr.namespace, "annotations": {SCHEDULING_DISABLED: "true"}}
        hub.kube.create({"apiVersion": VERSIONS[PLACEMENT], "kind": PLACEMENT, "metadata": metadata, "spec": {}})

    def lose(self, site: str) -> None:
        """The agents of a cluster report no more; its API server is not asked any more."""
        self._down.add(site)
        self.agents[site].join("Unknown")

    def find_again(self, site: str) -> None:
        self._down.discard(site)
        self.agents[site].join()

    def lead(self, epoch: int) -> Result:
        self.work()
        return self.dr.lead(HUB, epoch)

    def work(self) -> None:
        """What ACM does until nothing is left to do: applies works, deploys by the placement, answers views."""
        placed = self.placed()
        for name, agent in self.agents.items():
            if name in self._down:
                continue
            agent.apply_works()
            if self.delivers:
                self._deliver(name, name in placed)
            agent.answer_views()

    def until_running(self, site: str) -> None:
        self.work()
        self.dr.application.until_running(site)

    def placed(self) -> dict[str, str]:
        """The clusters of the decision, with the reason of each."""
        items = self.hub.kube.list_all(VERSIONS[PLACEMENT_DECISION], PLACEMENT_DECISION, self.dr.namespace)
        return {entry["clusterName"]: entry["reason"] for item in items for entry in (item.get("status") or {}).get("decisions") or []}

    def objects(self, kind: str) -> dict[str, list[Object]]:
        """The objects of a kind of ACM that a member has on the hub."""
        found = {name: self.hub.kube.list_all(VERSIONS[kind], kind, name) for name in self.agents}
        return {name: list(items) for name, items in found.items() if items}

    def _deliver(self, name: str, is_placed: bool) -> None:
        application, kube = self.dr.application, self.dr.sites[name].kube
        claim, deployment = application.app.objects(replicas=1)
        if is_placed:
            for item in (claim, deployment):
                kube.apply(item, force=True)
        else:
            kube.delete(deployment)


@contextlib.contextmanager
def managed(application: Protected, bucket: Mapping[str, str], hub: Access) -> Iterator[ManagedRecovery]:
    """Afterwards nothing is left on the members, nor on the hub, whatever the test did."""
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in (application.namespace, "ramen-system")]
    role = manifest("dr/acm_cluster_role")
    binding: Object = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{application.namespace}-acm"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": "controller", "namespace": application.namespace}],
    }
    with recovery(application, bucket) as dr:
        for item in (*namespaces, role, binding):
            hub.kube.apply(item, force=True)
        dr.add_process(HUB, hub)
        dr.settings(HUB, dr_mode="acm")
        run = ManagedRecovery(dr, hub)
        try:
            yield run
        finally:
            clean_up(hub.kube, application)
            for agent in run.agents.values():
                agent.leave()
            roles = [manifest(f"dr/{account}_cluster_role") for account in ("peer", "controller")]
            for item in (binding, role, *roles, *namespaces):
                hub.kube.delete(item)
            # The next test uses namespaces of the same names.
            for name in (*run.agents, "ramen-system"):
                until(lambda name=name: hub.kube.find("v1", "Namespace", name) is None, "the namespace is deleted")  # type: ignore[misc]
