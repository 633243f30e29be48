"""What the provider hypershift asks HyperShift for: the objects of a request, new and for a cluster that exists."""

from __future__ import annotations

import base64
from typing import Any
from unittest.mock import Mock

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import ClusterRef, ProviderError
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import ProviderFactory, checked
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.hypershift.encryption import (
    new_key,
    require_key,
    with_present_key,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.hypershift.manifests import Manifests
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.hypershift.node_pools import with_upgrade_type
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ClusterRequest, NodeRequest

REF = ClusterRef(Mock(), "demo", "clusters", class_label="example.com/class")
AGENT = {"type": "Agent", "agent": {"agentNamespace": "hosts"}}
SELECTOR = {"agent": {"agentLabelSelector": {"matchLabels": {"example.com/claim": "u1"}}}}
KEY = {"type": "aescbc", "aescbc": {"activeKey": {"name": "demo-etcd-encryption-key"}}}


def objects(present: Object | None = None, **settings: Any) -> dict[str, Object]:
    """The objects of a request by kind and name."""
    request = ClusterRequest("image", [NodeRequest("small", 2), NodeRequest("large", 1)], settings=settings, secrets={"pull_secret": "{}"})
    made = Manifests(REF, checked(ProviderFactory.get("hypershift"), request), present).objects()
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in made}


def test_a_key_that_is_lost_is_not_replaced_by_another() -> None:
    present = {"spec": {"secretEncryption": KEY}}
    require_key(REF, objects(present).values(), [new_key(REF)])
    require_key(REF, objects({"spec": {"release": {}}}).values(), [])
    with pytest.raises(ProviderError, match="demo-etcd-encryption-key does not exist"):
        require_key(REF, objects(present).values(), [])


def cluster(present: Object | None = None, **settings: Any) -> Object:
    spec: Object = objects(present, **settings)["HostedCluster/demo"]["spec"]
    return spec


def pool(name: str = "small", **settings: Any) -> Object:
    return objects(**settings)[f"NodePool/demo-{name}"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"platform": AGENT}, "InPlace"),
        ({"platform": {"type": "None"}}, "InPlace"),
        ({"platform": {"type": "KubeVirt"}}, "Replace"),
        ({"platform": AGENT, "upgrade_type": "Replace"}, "Replace"),
        ({"platform": {"type": "KubeVirt"}, "upgrade_type": "InPlace"}, "InPlace"),
    ],
)
def test_upgrade_type_is_that_of_the_platform_unless_it_is_set(settings: Object, expected: str) -> None:
    assert pool(**settings)["spec"]["management"]["upgradeType"] == expected


def test_upgrade_type_of_a_pool_never_changes() -> None:
    present = pool(platform=AGENT, upgrade_type="Replace")
    kept = with_upgrade_type(pool(platform=AGENT), present)
    assert kept["spec"]["management"] == {"upgradeType": "Replace", "autoRepair": False}


def test_settings_of_nodes_are_those_of_their_class() -> None:
    settings = {
        "platform": AGENT,
        "node_platform": {"agent": {}},
        "node_platforms": {"small": SELECTOR, "unused": {}},
        "node_labels": {"small": {"gpu": "true"}},
        "node_taints": {"small": [{"key": "gpu", "effect": "NoSchedule"}]},
    }
    small, large = pool(**settings), pool("large", **settings)
    assert small["spec"]["platform"] == {"type": "Agent", **SELECTOR}
    assert (small["spec"]["nodeLabels"], small["spec"]["taints"]) == ({"gpu": "true"}, [{"key": "gpu", "effect": "NoSchedule"}])
    assert small["metadata"]["annotations"] == {"openfleet.clusters/class-settings": "small"}
    assert large["spec"]["platform"] == {"type": "Agent", "agent": {}}
    assert not {"nodeLabels", "taints"} & large["spec"].keys() and "annotations" not in large["metadata"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"node_platforms": {"small": "kubevirt"}}, "settings.node_platforms.small is not a dict."),
        ({"node_taints": {"small": {"key": "gpu"}}}, "settings.node_taints.small is not a list."),
        ({"upgrade_type": "Later"}, "upgrade_type"),
    ],
)
def test_setting_of_the_wrong_form_is_named(settings: Object, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        objects(**settings)


@pytest.mark.parametrize(
    ("platform", "encryption"), [(AGENT, KEY), ({"type": "None"}, KEY), ({"type": "KubeVirt"}, None)], ids=["Agent", "None", "KubeVirt"]
)
def test_secrets_are_encrypted_with_a_generated_key_where_hypershift_adds_none(platform: Object, encryption: Object | None) -> None:
    made = objects(platform=platform)
    assert made["HostedCluster/demo"]["spec"].get("secretEncryption") == encryption
    assert ("Secret/demo-etcd-encryption-key" in made) is (encryption is not None)


def test_key_is_kept() -> None:
    first, second = new_key(REF), new_key(REF)
    assert len(base64.b64decode(first["data"]["key"])) == 32
    assert first["data"] != second["data"]
    assert with_present_key(second, first)["data"] == first["data"]


def test_cluster_keeps_what_was_decided_at_its_creation() -> None:
    old = {"spec": {"etcd": {"managementType": "Managed", "managed": {"storage": {"type": "PersistentVolume"}}}}}
    spec = cluster(old, platform=AGENT, etcd_storage_size="16Gi", etcd_storage_class="fast")
    assert spec["etcd"] == old["spec"]["etcd"]
    assert "secretEncryption" not in spec and "Secret/demo-etcd-encryption-key" not in objects(old, platform=AGENT)
    rotated = {"type": "aescbc", "aescbc": {"activeKey": {"name": "by-hand"}}}
    assert cluster({"spec": {"secretEncryption": rotated}}, platform=AGENT)["secretEncryption"] == rotated


@pytest.mark.parametrize(
    ("settings", "volume"),
    [
        ({}, {"size": "8Gi"}),
        ({"etcd_storage_size": "16Gi", "etcd_storage_class": "fast"}, {"size": "16Gi", "storageClassName": "fast"}),
    ],
)
def test_storage_of_etcd_can_be_set(settings: Object, volume: Object) -> None:
    assert cluster(**settings)["etcd"]["managed"]["storage"] == {"type": "PersistentVolume", "persistentVolume": volume}


def test_fips_mode_is_set_only_where_it_is_requested() -> None:
    assert "fips" not in cluster(), "it is immutable, and a cluster that has none keeps none"
    assert cluster(fips=True)["fips"] is True


@pytest.mark.parametrize(
    ("settings", "present", "expected"),
    [
        ({}, None, {"baseDomainPassthrough": True}),
        ({"base_domain": "example.com"}, None, None),
        ({"platform": {"type": "KubeVirt", "kubevirt": {"baseDomainPassthrough": False}}}, None, {"baseDomainPassthrough": False}),
        ({}, {"platform": {"type": "KubeVirt"}}, None),
        ({}, {"platform": {"type": "KubeVirt", "kubevirt": {"baseDomainPassthrough": True}}}, {"baseDomainPassthrough": True}),
    ],
    ids=["no domain", "a domain", "set", "made without", "made with"],
)
def test_virtual_cluster_without_a_domain_is_named_below_the_hub(settings: Object, present: Object | None, expected: Object | None) -> None:
    spec = cluster({"spec": present} if present else None, **({"platform": {"type": "KubeVirt"}} | settings))
    assert spec["platform"] == {"type": "KubeVirt", **({"kubevirt": expected} if expected else {})}


@pytest.mark.parametrize(
    ("pods", "services", "fits"),
    [
        ("10.132.0.0/14", "172.31.0.0/16", True),
        ("fd01::/48", "fd02::/112", True),
        ("10.132.0.0/14", "fd02::/112", False),
        ("fd01::/48", "172.31.0.0/16", False),
        ("none", "172.31.0.0/16", False),
    ],
)
def test_networks_that_hypershift_refuses_are_refused_before(pods: str, services: str, fits: bool) -> None:
    """Its CRD accepts different IP versions, and its operator does not."""
    settings = {"pod_network_cidr": pods, "service_network_cidr": services}
    if fits:
        assert objects(**settings)
        return
    with pytest.raises(Invalid, match="pod_network_cidr"):
        objects(**settings)
