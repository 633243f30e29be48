"""The provider `capi` beyond the conformance suite, with Cluster API's own managers: refusals, nodes, versions, references."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.capi_manifests import CLASS_NAME, WORKER_CLASS, cluster_class
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_backend import NONE, ORDER_LABEL, TOKEN_ANNOTATION
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import FencedWriter
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import ClusterRef, Provider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import ProviderFactory, checked
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ClusterRequest, NodeRequest, ObservedCluster

from ..support.census import Census, lock_of
from ..support.orders import Orders

PATIENCE_SECONDS = 900
SETTINGS = {"cluster_class": CLASS_NAME, "worker_classes": {"small": WORKER_CLASS}}


class Site:
    """A namespace of the hub with a ClusterClass of its own."""

    def __init__(self, hub: Access, namespace: str) -> None:
        self.namespace = namespace
        self.hub = hub
        self.kube = Kube.connect({"kubeconfig": str(hub.kubeconfig)})
        hub.apply(*cluster_class(namespace))
        # What a cluster asks for is not checked against a class that Cluster API has not reconciled yet.
        hub.wait(f"clusterclass/{CLASS_NAME}", "-n", namespace, "--for=condition=VariablesReady")

    def provider(self, name: str) -> Provider:
        lock = lease.acquire(self.kube, self.namespace, name, "test", duration=3600)
        writer = FencedWriter(self.kube, lock, TOKEN_ANNOTATION)
        return ProviderFactory.for_cluster("capi", ClusterRef(self.kube, name, self.namespace, {ORDER_LABEL: name}, writer=writer))

    def ready(self, name: str, version: str = "") -> ObservedCluster:
        """The cluster once it is ready, and in that version if one is given."""
        provider, spec = self.provider(name), NONE

        def is_ready() -> bool:
            nonlocal spec
            spec = provider.status(NONE)
            return spec.status == "ready" and not spec.updating and version in ("", *self.versions(name))

        until(is_ready, f"the cluster {name} is ready", PATIENCE_SECONDS)
        return spec

    def versions(self, name: str) -> set[str]:
        """What the machines of the control plane and the workers have, if that is one version."""
        status = self.kube.get("cluster.x-k8s.io/v1beta2", "Cluster", name, self.namespace)["status"]
        found = {each["version"] for part in ("controlPlane", "workers") for each in status[part].get("versions", [])}
        return found if len(found) == 1 else set()


@pytest.fixture
def site(capi_hub: Access) -> Iterator[Site]:
    with fresh_namespace(capi_hub) as namespace:
        yield Site(capi_hub, namespace)


def request(nodes: int = 1, **settings: Any) -> ClusterRequest:
    wanted = ClusterRequest("v1.36.3", [NodeRequest("small", nodes)], settings=SETTINGS | settings)
    return checked(ProviderFactory.get("capi"), wanted)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (request(cluster_class="absent"), r"There is no ClusterClass absent in the namespace \S+; there are in-memory\."),
        (request(cluster_class_namespace="default"), r"There is no ClusterClass in-memory in the namespace default; there is none\."),
        (request(worker_classes={}), '"small" does not exist in ClusterClass "in-memory"'),
        (request(variables={"colour": "red"}), "colour"),
        (replace(request(), version="newest"), "version must be a valid semantic version"),
        (replace(request(), version=""), "Set the version"),
        (request(cluster_class=None), "Set cluster_class"),
        (request(control_plane_ref={"apiVersion": "x/v1", "kind": "X", "name": "x"}), "not both: leave out control_plane_ref"),
    ],
)
def test_what_cannot_be_made_is_refused_in_one_sentence_and_nothing_is_made(site: Site, wrong: ClusterRequest, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        site.provider("lab").create(wrong)
    assert site.provider("lab").status(NONE).is_absent


def of_references(site: Site) -> ClusterRequest:
    """A control plane, an infrastructure and templates, made by hand; and the cluster that refers to them."""
    cluster, machines, control_plane, join, _class = cluster_class(site.namespace)

    def made(template: Object, kind: str, **more: Any) -> Object:
        return {
            **template,
            "kind": kind,
            # Cluster API's in-memory backend panics for a DevCluster without any annotation.
            "metadata": {**template["metadata"], "name": "own", "annotations": {"example.com/made": "by hand"}},
            "spec": template["spec"]["template"]["spec"] | more,
        }

    def reference(to: Object) -> Object:
        return {"apiVersion": to["apiVersion"], "kind": to["kind"], "name": to["metadata"]["name"]}

    own_machines, own_join = copy.deepcopy(machines), copy.deepcopy(join)
    own_machines["metadata"]["name"] = own_join["metadata"]["name"] = "own"
    by = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "own"}
    plane = made(control_plane, "KubeadmControlPlane", version="v1.36.2", replicas=1, machineTemplate={"spec": {"infrastructureRef": by}})
    infrastructure = made(cluster, "DevCluster")
    site.hub.apply(own_machines, own_join, infrastructure, plane)
    return request(
        cluster_class=None,
        worker_classes={},
        control_plane_ref=reference(plane),
        infrastructure_ref=reference(infrastructure),
        worker_templates={"small": {"bootstrap": reference(own_join), "infrastructure": reference(own_machines)}},
    )


def test_clusters_of_a_class_and_of_references_are_made_scaled_upgraded_and_removed(site: Site) -> None:
    wanted = {"classy": request(), "plain": of_references(site)}
    for name, each in wanted.items():
        assert site.provider(name).create(each).exists
    for name, each in wanted.items():
        ready = site.ready(name, "v1.36.3")
        assert (ready.version, [(item.resource_class, item.requested, item.ready) for item in ready.node_sets]) == (
            "v1.36.3",
            [("small", 1, 1)],
        )
        assert ready.api_url.startswith("https://127.0.0.1:")
        provider = site.provider(name)
        provider.update(ready, each)
        assert [change.action for change in provider.changes if change.changed] == []
        assert len(site.provider(name).connect(NONE).list_all("v1", "Node")) == 2

        scaled = site.provider(name).scale(ready, "small", 2)
        assert scaled.node_sets[0].requested == 2
        assert scaled.status != "ready"
    for name in wanted:
        assert site.ready(name).node_sets[0].ready == 2

    for name, each in wanted.items():
        upgraded = site.provider(name).update(NONE, replace(each, version="1.36.4", node_requests=[NodeRequest("small", 2)]))
        assert upgraded.version == "v1.36.4"
    for name in wanted:
        assert site.ready(name, "v1.36.4").node_sets[0].ready == 2

    for name in wanted:
        assert site.provider(name).scale(NONE, "small", 0).status != "failed"
    for name in wanted:
        until(lambda name=name: not site.provider(name).status(NONE).node_sets, "the class is gone", PATIENCE_SECONDS)  # type: ignore[misc]
        assert site.provider(name).delete(NONE) is False
    for name in wanted:
        until(lambda name=name: site.provider(name).delete(NONE), "the cluster is gone", PATIENCE_SECONDS)  # type: ignore[misc]
        assert site.provider(name).status(NONE).is_absent


def test_a_new_class_that_the_cluster_class_does_not_have_is_refused(site: Site) -> None:
    site.provider("lab").create(request())
    with pytest.raises(Invalid, match='"gold" does not exist in ClusterClass'):
        site.provider("lab").scale(NONE, "gold", 1)
    assert [item.resource_class for item in site.provider("lab").status(NONE).node_sets] == ["small"]


def test_what_others_add_to_the_topology_stays_and_is_no_change(site: Site) -> None:
    site.provider("lab").create(request())
    other = {"name": "others", "class": WORKER_CLASS, "replicas": 1}
    site.hub.kubectl(
        *("patch", "cluster", "lab", "-n", site.namespace, "--type=json", "-p"),
        f'[{{"op": "add", "path": "/spec/topology/workers/machineDeployments/-", "value": {str(other).replace(chr(39), chr(34))}}}]',
    )
    provider = site.provider("lab")
    spec = provider.update(NONE, request())
    assert [change.action for change in provider.changes if change.changed] == []
    assert [item.resource_class for item in spec.node_sets] == ["small"]
    provider.update(NONE, request(nodes=2))
    kept = site.kube.get("cluster.x-k8s.io/v1beta2", "Cluster", "lab", site.namespace)["spec"]["topology"]["workers"]["machineDeployments"]
    assert {entry["name"]: entry["replicas"] for entry in kept} == {"small": 2, "others": 1}


def test_an_order_returns_everything_to_the_hub(capi_hub: Access, tmp_path: Path) -> None:
    with fresh_namespace(capi_hub) as namespace:
        orders, census = Orders(capi_hub, namespace, tmp_path), Census(capi_hub)
        orders.put_secret("of-the-tenant", value="x")
        before = census.take()
        orders.apply(template="capi_small", nodes={"small": 1})
        orders.provision()
        orders.remove()
        census.assert_equal(before, lock_of(orders), namespace)
