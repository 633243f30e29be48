"""The same interfaces over an ACM hub, under the CRDs of Open Cluster Management: works, views, availability, placement."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.acm.deployer import AcmDeployer
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.acm.directory import AcmDirectory
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.acm.placement import SCHEDULING_DISABLED, AcmPlacement
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.acm.reader import AcmReader
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.interfaces import (
    BadPlacement,
    Cluster,
    Decision,
    Deployed,
    Refused,
    Stamp,
    Superseded,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import (
    CLUSTER_VIEW,
    DRPC,
    MANIFEST_WORK,
    PLACEMENT,
    PLACEMENT_DECISION,
    RAMEN,
    VERSIONS,
    VRG,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.read_results import Absent, Found, Listed, Unauthorized, Unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.stamps import EPOCH, position
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Forbidden
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.kinds import known_resource
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import Fenced

from ..support.acm_agent_standin import AgentStandIn
from ..support.dr_objects import ref, vrg
from ..support.manifests import manifest
from ..support.tenants import connect_as

STAMP = Stamp("ours", 3, 9)


@pytest.fixture
def cluster(namespace: str) -> str:
    return f"{namespace}-west"


@pytest.fixture
def agent(acm: Access, cluster: str) -> Iterator[AgentStandIn]:
    """The agents of an available cluster, which is the hub itself."""
    agent = AgentStandIn(acm.kube, cluster, acm.kube)
    agent.join()
    yield agent
    agent.leave()


def work(acm: Access, cluster: str, namespace: str) -> Object:
    return acm.kube.get(VERSIONS[MANIFEST_WORK], MANIFEST_WORK, f"shop-{namespace}-vrg-mw", cluster)


def test_object_is_deployed_by_a_manifest_work_and_read_by_a_view(acm: Access, agent: AgentStandIn, cluster: str, namespace: str) -> None:
    deployer, reader = AcmDeployer(acm.kube), AcmReader(acm.kube)
    assert deployer.apply(cluster, vrg(namespace), STAMP) == Deployed(changed=True)
    assert deployer.apply(cluster, vrg(namespace), STAMP) == Deployed(changed=False)
    assert isinstance(reader.get([cluster], ref(namespace))[cluster], Unreachable)  # the view is just requested
    agent.answer_views()
    assert isinstance(reader.get([cluster], ref(namespace))[cluster], Unreachable)  # the agent has yet to apply it
    agent.apply_works()
    agent.answer_views()
    answer = reader.get([cluster], ref(namespace))[cluster]
    assert isinstance(answer, Found)
    assert position(answer.item) == (3, 9)
    listed = reader.list([cluster], RAMEN, VRG)[cluster]
    assert isinstance(listed, Listed)
    assert [item["metadata"]["name"] for item in listed.items] == ["shop"]
    assert reader.list([cluster], RAMEN, VRG, "elsewhere")[cluster] == Listed([])


def test_view_from_before_the_last_write_is_no_answer(acm: Access, agent: AgentStandIn, cluster: str, namespace: str) -> None:
    deployer, reader = AcmDeployer(acm.kube), AcmReader(acm.kube)
    deployer.apply(cluster, vrg(namespace), STAMP)
    agent.apply_works()
    reader.get([cluster], ref(namespace))
    agent.answer_views()
    deployer.apply(cluster, vrg(namespace, replicationState="secondary"), Stamp("ours", 3, 10))
    assert isinstance(reader.get([cluster], ref(namespace))[cluster], Unreachable)
    assert isinstance(reader.list([cluster], RAMEN, VRG)[cluster], Unreachable)


def test_view_of_a_cluster_that_is_not_available_is_no_answer(acm: Access, agent: AgentStandIn, cluster: str, namespace: str) -> None:
    AcmDeployer(acm.kube).apply(cluster, vrg(namespace), STAMP)
    agent.apply_works()
    reader = AcmReader(acm.kube)
    reader.get([cluster], ref(namespace))
    agent.answer_views()
    agent.join("Unknown")
    answers = reader.get([cluster, "never-imported"], ref(namespace))
    assert isinstance(answers[cluster], Unreachable)
    assert isinstance(answers["never-imported"], Unauthorized)
    assert isinstance(reader.list([cluster], RAMEN, VRG)[cluster], Unreachable)


def test_absent_object_and_forgotten_view(acm: Access, agent: AgentStandIn, cluster: str, namespace: str) -> None:
    reader = AcmReader(acm.kube)
    reader.get([cluster], ref(namespace))
    agent.answer_views()
    assert reader.get([cluster], ref(namespace))[cluster] == Absent()
    reader.forget([cluster], ref(namespace))
    reader.forget([cluster], ref(namespace))
    assert acm.kube.list_all(VERSIONS[CLUSTER_VIEW], CLUSTER_VIEW, cluster) == []


@pytest.mark.usefixtures("agent")
def test_newer_work_is_never_overwritten(acm: Access, cluster: str, namespace: str) -> None:
    deployer = AcmDeployer(acm.kube)
    deployer.apply(cluster, vrg(namespace), STAMP)
    before = work(acm, cluster, namespace)
    old = Stamp("ours", 2, 100)
    assert isinstance(deployer.apply(cluster, vrg(namespace, action="Failover"), old), Superseded)
    assert isinstance(deployer.delete(cluster, ref(namespace), old), Superseded)
    assert isinstance(deployer.apply(cluster, vrg(namespace), Stamp("theirs", 4, 1)), Refused)
    assert work(acm, cluster, namespace) == before
    assert deployer.apply(cluster, vrg(namespace), Stamp("theirs", 4, 1, frozenset(["ours"]))) == Deployed(changed=True)


@pytest.mark.usefixtures("agent")
def test_deletion_of_the_work_can_be_repeated(acm: Access, cluster: str, namespace: str) -> None:
    deployer = AcmDeployer(acm.kube)
    deployer.apply(cluster, vrg(namespace), STAMP)
    assert deployer.delete(cluster, ref(namespace), STAMP) == Deployed(changed=True)
    assert deployer.delete(cluster, ref(namespace), STAMP) == Deployed(changed=False)
    assert isinstance(deployer.apply("never-imported", vrg(namespace), STAMP), Unauthorized)


def test_directory_has_availability_region_and_fence(acm: Access, agent: AgentStandIn, cluster: str) -> None:
    agent.join("Unknown", **{"region_open-cluster-management_io": "eu"})
    assert found(acm, cluster) == Cluster(cluster, "eu", False, "LeaseUpdateStopped")
    spec = {"region": "us", "s3ProfileName": "none", "clusterFence": "Fenced"}
    created = acm.kube.create({"apiVersion": RAMEN, "kind": "DRCluster", "metadata": {"name": cluster}, "spec": spec})
    try:
        agent.join("True")
        assert found(acm, cluster) == Cluster(cluster, "us", True, "ManagedClusterAvailable", fenced=False, fence_requested=True)
    finally:
        acm.kube.delete(created)


def found(acm: Access, name: str) -> Cluster:
    return {cluster.name: cluster for cluster in AcmDirectory(acm.kube).clusters()}[name]


@pytest.fixture
def drpc(acm: Access, namespace: str) -> Object:
    """A DRPlacementControl, and its Placement, which the hub does not schedule."""
    annotations = {SCHEDULING_DISABLED: "true"}
    metadata = {"name": "shop", "namespace": namespace, "annotations": annotations}
    acm.kube.create({"apiVersion": VERSIONS[PLACEMENT], "kind": PLACEMENT, "metadata": metadata, "spec": {}})
    return {"metadata": {"name": "shop", "namespace": namespace}, "spec": {"placementRef": {"kind": PLACEMENT, "name": "shop"}}}


def test_decision_of_a_failover(acm: Access, drpc: Object, namespace: str) -> None:
    placement = AcmPlacement(acm.kube)
    assert placement.read(drpc) == Decision()
    assert placement.set(drpc, "east", Stamp("ours", 1, 1))
    assert not placement.set(drpc, "east", Stamp("ours", 1, 2))
    assert placement.retain(drpc, "east", Stamp("ours", 2, 3))
    assert placement.read(drpc) == Decision("", ("east",))
    assert placement.set(drpc, "west", Stamp("ours", 2, 4))
    (item,) = acm.kube.list_all(VERSIONS[PLACEMENT_DECISION], PLACEMENT_DECISION, namespace)
    assert item["metadata"]["name"] == "shop-decision-1"
    assert item["metadata"]["labels"] == {"cluster.open-cluster-management.io/placement": "shop"}
    assert [(entry["clusterName"], entry["reason"]) for entry in item["status"]["decisions"]] == [
        ("west", "DisasterRecovery"),
        ("east", "RetainedForFailover"),
    ]
    assert placement.clear(drpc, "east", Stamp("ours", 2, 5))
    assert placement.read(drpc) == Decision("west")


def test_late_leader_does_not_change_the_decision(acm: Access, drpc: Object, namespace: str) -> None:
    placement = AcmPlacement(acm.kube)
    placement.set(drpc, "east", Stamp("ours", 2, 1))
    with pytest.raises(Fenced):
        placement.set(drpc, "west", Stamp("ours", 1, 9))
    assert placement.read(drpc) == Decision("east")
    (item,) = acm.kube.list_all(VERSIONS[PLACEMENT_DECISION], PLACEMENT_DECISION, namespace)
    assert item["metadata"]["annotations"][EPOCH] == "2"


def test_placement_that_the_hub_schedules_is_not_changed(acm: Access, drpc: Object, namespace: str) -> None:
    item = acm.kube.get(VERSIONS[PLACEMENT], PLACEMENT, "shop", namespace)
    acm.kube.patch(item, {"metadata": {"annotations": {SCHEDULING_DISABLED: None}}})
    with pytest.raises(BadPlacement, match="kubectl annotate placement shop"):
        AcmPlacement(acm.kube).set(drpc, "east", STAMP)
    assert acm.kube.list_all(VERSIONS[PLACEMENT_DECISION], PLACEMENT_DECISION, namespace) == []


@pytest.mark.parametrize(
    ("reference", "message"),
    [({"kind": "PlacementRule"}, "only a Placement can be used"), ({"name": "none"}, "has no Placement .*none: create it")],
    ids=["a PlacementRule", "a Placement that does not exist"],
)
def test_placement_that_cannot_be_used_has_no_decision_and_gets_none(acm: Access, drpc: Object, reference: Object, message: str) -> None:
    drpc["spec"]["placementRef"] |= reference
    assert AcmPlacement(acm.kube).read(drpc) == Decision()
    with pytest.raises(BadPlacement, match=message):
        AcmPlacement(acm.kube).set(drpc, "east", STAMP)


@pytest.mark.parametrize(("api_version", "kind"), [*((version, kind) for kind, version in VERSIONS.items()), (RAMEN, VRG), (RAMEN, DRPC)])
def test_registered_kind_is_what_the_server_discovers(acm: Access, api_version: str, kind: str) -> None:
    kube = Kube.connect({"kubeconfig": str(acm.kubeconfig)})
    assert kube._mapper.discover(api_version, kind) == known_resource(api_version, kind)  # noqa: SLF001 - around the registry


def test_shipped_role_is_enough_on_the_hub(acm: Access, agent: AgentStandIn, cluster: str, namespace: str, drpc: Object) -> None:
    role = manifest("dr/acm_cluster_role")
    acm.kube.apply(role, force=True)
    user = f"{namespace}-acm"
    binding: Object = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": user}}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role["metadata"]["name"]}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    acm.kube.create(binding | {"roleRef": reference, "subjects": [subject]})
    kube = connect_as(acm, user)

    def is_known() -> bool:
        try:
            return bool(AcmDirectory(kube).clusters())
        except Forbidden:
            return False

    try:
        until(is_known, "the server knows the permissions")
        deployer, reader, placement = AcmDeployer(kube), AcmReader(kube), AcmPlacement(kube)
        assert deployer.apply(cluster, vrg(namespace), STAMP) == Deployed(changed=True)
        assert deployer.apply(cluster, vrg(namespace, action="Failover"), STAMP) == Deployed(changed=True)
        reader.get([cluster], ref(namespace))
        agent.apply_works()
        agent.answer_views()
        assert isinstance(reader.get([cluster], ref(namespace))[cluster], Found)
        assert isinstance(reader.list([cluster], RAMEN, VRG)[cluster], Listed)
        assert deployer.delete(cluster, ref(namespace), STAMP) == Deployed(changed=True)
        reader.forget([cluster], ref(namespace))
        assert placement.set(drpc, "east", STAMP)
        with pytest.raises(Forbidden):
            kube.list_all("v1", "Secret")
    finally:
        acm.kube.delete(binding)
        acm.kube.delete(role)
