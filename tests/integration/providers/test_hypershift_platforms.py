"""What the provider hypershift asks for on each platform is what HyperShift's CRDs accept and keep."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import FencedWriter, holds
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import acquire
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import ClusterRef
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import ProviderFactory, checked
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ClusterRequest, NodeRequest

VOLUME = {"type": "Persistent", "persistent": {"size": "32Gi"}}
SETTINGS: dict[str, dict[str, Any]] = {
    "Agent": {"platform": {"type": "Agent", "agent": {"agentNamespace": "agents"}}, "control_plane_availability": "HighlyAvailable"},
    "KubeVirt": {
        "platform": {"type": "KubeVirt"},
        "node_platform": {"kubevirt": {"rootVolume": VOLUME, "compute": {"cores": 2, "memory": "8Gi"}}},
        "infrastructure_availability": "HighlyAvailable",
        "base_domain": "example.com",
    },
    "None": {
        "publishing": {
            "APIServer": {"type": "NodePort", "nodePort": {"address": "192.0.2.1", "port": 30443}},
            "Konnectivity": "LoadBalancer",
        },
        "network_type": "Other",
        "pod_network_cidr": "10.0.0.0/16",
    },
}


@pytest.mark.parametrize("platform", SETTINGS)
def test_platform_is_accepted_and_kept(platform: str, hub: Access) -> None:
    kube = Kube.connect({"kubeconfig": str(hub.kubeconfig)})
    with fresh_namespace(hub) as namespace:
        writer = FencedWriter(kube, acquire(kube, namespace, "demo", "the tests"), "example.com/lock-token", check_mode=True)
        provider = ProviderFactory.for_cluster(
            "hypershift", ClusterRef(kube, "demo", namespace, {"example.com/x": "y"}, writer=writer, check_mode=True)
        )
        wanted = ClusterRequest(
            "quay.io/openshift-release-dev/ocp-release:4.17.0-multi",
            [NodeRequest("small", 2), NodeRequest("Large_1.x", 1)],
            settings=SETTINGS[platform],
            secrets={"pull_secret": "{}", "ssh_public_key": "ssh-ed25519 none"},
        )
        spec = provider.create(checked(type(provider), wanted))
    assert spec.exists
    after = {(change.item["kind"], change.item["metadata"]["name"]): change.after for change in provider.changes}
    assert all(after.values()), "the API server did not answer what it would make of it"
    cluster = after["HostedCluster", "demo"]
    assert cluster is not None
    assert cluster["spec"]["platform"]["type"] == platform
    pools = [item for (kind, _name), item in after.items() if kind == "NodePool" and item]
    assert [pool["spec"]["platform"]["type"] for pool in pools] == [platform] * 2
    expected = {"Agent": {"agent": {}}, "KubeVirt": SETTINGS["KubeVirt"]["node_platform"], "None": {}}[platform]
    for pool in pools:
        assert holds(pool["spec"]["platform"], expected)
    strategies = {item["service"]: item["servicePublishingStrategy"] for item in cluster["spec"]["services"]}
    if platform == "None":
        assert strategies["APIServer"] == SETTINGS["None"]["publishing"]["APIServer"]
        assert strategies["Konnectivity"]["type"] == "LoadBalancer"
    assert strategies["OAuthServer"]["type"] == "Route"
