"""Which other DRPlacementControls of a cluster protect a common namespace, on the real API server and S3."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import DR_POLICY, DRPC, RAMEN
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import Member, Neighbor, Policy
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.neighbors import find_neighbors
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.readers import read_intent
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect


@pytest.fixture
def ops(hub: Access) -> Iterator[str]:
    with fresh_namespace(hub) as name:
        yield name


@pytest.fixture
def policy(hub: Access, namespace: str) -> Iterator[Callable[..., str]]:
    """Creates DRPolicies."""
    created = []

    def create(*clusters: str) -> str:
        metadata = {"name": f"{namespace}-{'-'.join(clusters)}"}
        spec = {"drClusters": list(clusters), "schedulingInterval": "5m"}
        created.append(hub.kube.create({"apiVersion": RAMEN, "kind": DR_POLICY, "metadata": metadata, "spec": spec}))
        return metadata["name"]

    yield create
    for item in created:
        hub.kube.delete(item)


def test_neighbors_share_a_namespace_and_a_cluster(
    hub: Access, namespace: str, ops: str, policy: Callable[..., str], bucket: dict[str, str]
) -> None:
    store, same, other, apart = connect(bucket), policy("east", "west"), policy("west", "south"), policy("north", "south")

    def create(where: str, name: str, under: str, *namespaces: str) -> None:
        spec = {"placementRef": {"name": name}, "drPolicyRef": {"name": under}, "pvcSelector": {}}
        metadata = {"name": name, "namespace": where}
        protected = {"protectedNamespaces": list(namespaces)} if namespaces else {}
        hub.kube.create({"apiVersion": RAMEN, "kind": DRPC, "metadata": metadata, "spec": spec | protected})

    def found(where: str, name: str) -> set[Neighbor]:
        intent = read_intent(hub.kube.get(RAMEN, DRPC, name, where))
        return set(find_neighbors(hub.kube, store, intent, Policy(same, (Member("east"), Member("west"))), ops))

    create(namespace, "web", same)
    create(namespace, "database", same)
    assert found(namespace, "web") == set(), "two applications of one namespace are protected by their own labels"
    create(ops, "all", other, namespace, "bank")
    create(ops, "elsewhere", apart, namespace)
    create(ops, "bank", same, "bank")
    assert found(namespace, "web") == {Neighbor(f"{ops}/all", (namespace,), begun=False)}
    states = StateStore(DocumentStore(store, WorkloadRef(ops, "all").identity()), WorkloadRef(ops, "all"))
    states.seal(1)
    states.write(1, {"intent": {"home": "west"}})
    assert found(namespace, "web") == {Neighbor(f"{ops}/all", (namespace,), begun=True)}
    names = {neighbor.name: neighbor.namespaces for neighbor in found(ops, "all")}
    assert names == {f"{namespace}/web": (namespace,), f"{namespace}/database": (namespace,), f"{ops}/bank": ("bank",)}
