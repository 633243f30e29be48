"""The setting dr_mode on a running system, and the comparison of both modes, which writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.decision import DecisionStore
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.acm.placement import SCHEDULING_DISABLED, AcmPlacement
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.direct.placement import DirectPlacement
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.interfaces import Decision, Deployed, Stamp
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import (
    CLUSTER_VIEW,
    MANAGED_CLUSTER,
    MANIFEST_WORK,
    PLACEMENT,
    PLACEMENT_DECISION,
    RAMEN,
    VERSIONS,
    VRG,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.modes import Access as DrAccess
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.modes import Modes
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.read_results import Absent, Found, Listed, Unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.settings import CONFIG_MAP, InvalidDrSettings
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.store import RegistryStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import Fenced
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore, connect

from ..support.acm_agent_standin import AgentStandIn
from ..support.dr_objects import ref, vrg
from ..support.kubeconfigs import kubeconfig, put_kubeconfig

STAMP = Stamp("ours", 1, 1)
WATCHED = ((RAMEN, VRG), ("v1", "ConfigMap"), ("v1", "Secret"), (RAMEN, "ClusterRegistry"))


class Site:
    """A namespace with settings, a registry with one cluster that is also a managed cluster, a Placement, and a bucket."""

    def __init__(self, hub: Access, namespace: str, store: ObjectStore) -> None:
        self.kube, self.namespace, self.store = hub.kube, namespace, store
        self.cluster = f"{namespace}-east"
        self.agent = AgentStandIn(self.kube, self.cluster, self.kube)
        self.modes = Modes(self.kube, namespace, store, "test")
        self.drpc: Object = {"metadata": {"name": "shop", "namespace": namespace}, "spec": {"placementRef": {"name": "shop"}}}
        put_kubeconfig(self.kube, namespace, "east", kubeconfig(hub))
        RegistryStore(self.kube, "ClusterRegistry").register(namespace, "peers", [{"name": self.cluster, "kubeconfig_secret": "east"}])
        metadata = {"name": "shop", "namespace": namespace, "annotations": {SCHEDULING_DISABLED: "true"}}
        self.kube.create({"apiVersion": VERSIONS[PLACEMENT], "kind": PLACEMENT, "metadata": metadata, "spec": {}})

    def states(self) -> StateStore:
        workload = WorkloadRef(self.namespace, "shop")
        return StateStore(DocumentStore(self.store, workload.identity()), workload, "test")

    def set(self, **data: str) -> DrAccess:
        """Change the settings, and connect for the next reconcile."""
        metadata = {"name": CONFIG_MAP, "namespace": self.namespace}
        self.kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, force=True)
        return self.modes.access()

    def contents(self) -> dict[str, Any]:
        """The version of each object that either mode could write, and of each object of the bucket."""
        kinds = [(version, kind, self.namespace) for version, kind in WATCHED]
        kinds += [(VERSIONS[kind], kind, self.cluster) for kind in (MANIFEST_WORK, CLUSTER_VIEW)]
        kinds += [(VERSIONS[kind], kind, self.namespace) for kind in (PLACEMENT, PLACEMENT_DECISION)]
        kinds += [(VERSIONS[MANAGED_CLUSTER], MANAGED_CLUSTER, "")]
        items = [item for version, kind, namespace in kinds for item in self.kube.list_all(version, kind, namespace or None)]
        versions = {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in items}
        return versions | {key: self.store.get(key) for key in self.store.keys("")}


@pytest.fixture
def site(acm: Access, namespace: str, bucket: dict[str, str]) -> Iterator[Site]:
    site = Site(acm, namespace, connect(bucket))
    site.agent.join()
    yield site
    site.agent.leave()


def test_mode_is_direct_unless_set_and_changes_with_the_next_reconcile(site: Site) -> None:
    assert site.modes.access().mode == "direct"
    access = site.set(dr_mode="acm")
    assert access.mode == "acm"
    assert access.deployer.apply(site.cluster, vrg(site.namespace), STAMP) == Deployed(changed=True)
    assert site.kube.find(RAMEN, VRG, "shop", site.namespace) is None  # the agent applies it
    access = site.set(dr_mode="direct")
    assert access.deployer.apply(site.cluster, vrg(site.namespace), STAMP) == Deployed(changed=True)
    assert isinstance(access.reader.get([site.cluster], ref(site.namespace))[site.cluster], Found)
    with pytest.raises(InvalidDrSettings):
        site.set(dr_mode="hub")


def test_timeout_is_limited_by_the_term_of_a_leader(site: Site) -> None:
    site.set(timeout="300")
    limited = Modes(site.kube, site.namespace, site.store, longest=15)
    assert (site.modes.access().settings.timeout, limited.access().settings.timeout) == (300, 15)


def test_acm_hub_can_be_another_cluster(site: Site, acm: Access) -> None:
    put_kubeconfig(site.kube, site.namespace, "acm-hub", kubeconfig(acm))
    access = site.set(dr_mode="acm", acm_hub_secret="acm-hub")  # noqa: S106 - the name of a Secret
    assert site.cluster in [cluster.name for cluster in access.directory.clusters()]


@pytest.mark.parametrize("mode", ["direct", "acm"])
def test_comparison_reports_differences_and_writes_nothing(site: Site, mode: str) -> None:
    site.kube.create(vrg(site.namespace))
    site.states().seal(1)
    DirectPlacement(site.store).set(site.drpc, site.cluster, STAMP)
    if mode == "acm":
        site.set(dr_mode="acm").reader.get([site.cluster], ref(site.namespace))
    site.agent.join("Unknown")
    access = site.set(dr_mode=mode, compare="true")
    before = site.contents()
    access.directory.clusters()
    answer = access.reader.get([site.cluster], ref(site.namespace))[site.cluster]
    access.reader.list([site.cluster], RAMEN, VRG, site.namespace)
    decision = access.placement.read(site.drpc)
    assert site.contents() == before
    # The caller gets what the active mode says.
    assert isinstance(answer, Found if mode == "direct" else Unreachable)
    assert decision == (Decision(site.cluster) if mode == "direct" else Decision())
    subjects = [text.partition(":")[0] for text in access.differences]
    name = f"{site.namespace}/shop"
    assert {f"VolumeReplicationGroup {name}", "all VolumeReplicationGroup", f"decision of {name}", "clusters"} <= set(subjects)


def test_comparison_of_two_modes_that_agree_is_empty(site: Site) -> None:
    access = site.set(dr_mode="acm")
    access.reader.get([site.cluster], ref(site.namespace))
    site.kube.create(vrg(site.namespace))
    site.agent.answer_views()
    access = site.set(dr_mode="direct", compare="true")
    assert isinstance(access.reader.get([site.cluster], ref(site.namespace))[site.cluster], Found)
    assert isinstance(access.reader.list([site.cluster], RAMEN, VRG, site.namespace)[site.cluster], Listed)
    assert access.placement.read(site.drpc) == Decision()
    assert access.differences == []


def test_mode_that_is_not_set_up_is_a_difference_and_no_error(site: Site) -> None:
    access = site.set(dr_mode="direct", compare="true", acm_hub_secret="missing")  # noqa: S106 - the name of a Secret
    assert access.reader.get([site.cluster], ref(site.namespace)) == {site.cluster: Absent()}
    assert len(access.differences) == 1
    assert "acm failed" in access.differences[0]


def test_active_mode_writes_while_it_is_compared(site: Site) -> None:
    site.states().seal(1)
    access = site.set(dr_mode="direct", compare="true")
    assert access.deployer.apply(site.cluster, vrg(site.namespace), STAMP) == Deployed(changed=True)
    assert access.placement.set(site.drpc, site.cluster, STAMP)
    assert AcmPlacement(site.kube).read(site.drpc) == Decision()
    assert site.kube.list_all(VERSIONS[MANIFEST_WORK], MANIFEST_WORK, site.cluster) == []


def test_direct_decision_is_a_revision_of_the_state_and_is_published(site: Site) -> None:
    placement, states = DirectPlacement(site.store, "test"), site.states()
    states.seal(3)
    assert placement.read(site.drpc) == Decision()
    stamp = Stamp("ours", 3, 1)
    assert [placement.set(site.drpc, "east", stamp), placement.set(site.drpc, "east", stamp)] == [True, False]
    assert placement.retain(site.drpc, "east", stamp)
    assert placement.set(site.drpc, "west", stamp)
    assert placement.read(site.drpc) == Decision("west", ("east",))
    state = states.read()
    assert (state.revision, state.decision) == (4, {"cluster": "west", "retained": ["east"]})
    assert [entry["decision"].get("cluster") for entry in states.history.entries()] == [None, "east", "", "west"]
    published = DecisionStore(DocumentStore(site.store, states.workload.identity()), states.workload)
    assert published.read().decision == state.decision
    assert placement.clear(site.drpc, "east", stamp)


def test_decision_that_was_written_and_not_published_is_published_by_the_next_call(site: Site) -> None:
    states = site.states()
    states.seal(1)
    written = states.write(1, {"decision": {"cluster": "east", "retained": []}})
    assert not DirectPlacement(site.store).set(site.drpc, "east", STAMP)
    published = DecisionStore(DocumentStore(site.store, states.workload.identity()), states.workload).read()
    assert (published.decision, published.revision) == (written.decision, written.revision)


def test_late_leader_does_not_change_the_direct_decision(site: Site) -> None:
    site.states().seal(2)
    with pytest.raises(Fenced):
        DirectPlacement(site.store).set(site.drpc, "east", STAMP)
    assert DirectPlacement(site.store).read(site.drpc) == Decision()
