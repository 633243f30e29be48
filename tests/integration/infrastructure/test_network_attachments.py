"""Networks of clusters of virtual machines: NetworkAttachmentDefinitions on a real hub, under the locks of the clusters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.network_attachments import API_VERSION, GROUP, KIND
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease

from ..plugins.test_examples import examples
from ..support.actions import answer
from ..support.inside import open_crd
from ..support.manifests import manifest
from ..support.playbooks import Answer, play

CRD = open_crd(GROUP, "v1", KIND, "network-attachment-definitions")


@pytest.fixture
def multus(hub: Access) -> Iterator[None]:
    hub.install_crds(CRD)
    yield
    hub.kubectl("delete", "crd", CRD["metadata"]["name"])


def attach(hub: Access, namespace: str, state: str = "present", **more: Any) -> Answer:
    cluster = {"name": "lab", "namespace": namespace, "provider": "hypershift", "kubeconfig": str(hub.kubeconfig)}
    wanted = {"bridge": "br-tenants", "vlan": 103} if state == "present" else {}
    return answer("cluster_network_attachment", **cluster | wanted | {"attachment_namespace": namespace} | more, state=state)


def attachments(hub: Access, namespace: str) -> list[Object]:
    return list(hub.kube.list_all(API_VERSION, KIND, namespace))


def vlan(item: Object) -> int:
    return int(json.loads(item["spec"]["config"])["vlan"])


@pytest.mark.usefixtures("multus")
def test_a_cluster_has_one_attachment_and_only_the_holder_of_its_lock_changes_it(hub: Access, namespace: str) -> None:
    assert attach(hub, namespace, check=True).changed and attachments(hub, namespace) == []
    made = attach(hub, namespace)
    (found,) = attachments(hub, namespace)
    assert made.changed and made.result["network"] == f"{namespace}/{found['metadata']['name']}" and vlan(found) == 103
    assert not attach(hub, namespace).changed
    locks = []
    for holder in ("late", "current"):
        locks.append(lease.acquire(hub.kube, namespace, "lab", holder, duration=3600).as_dict())
        if holder == "late":
            lease.release(hub.kube, lease.Lock(**locks[0]))
    assert attach(hub, namespace, vlan=104, lock=locks[1]).changed
    assert attach(hub, namespace, vlan=105, lock=locks[0]).result["reason"] == "LockLost"
    assert attach(hub, namespace, "absent", lock=locks[0]).result["reason"] == "LockLost"
    assert [vlan(item) for item in attachments(hub, namespace)] == [104]
    assert attach(hub, namespace, "absent", lock=locks[1]).changed and attachments(hub, namespace) == []
    assert not attach(hub, namespace, "absent", lock=locks[1]).changed


@pytest.mark.usefixtures("multus")
def test_an_attachment_ends_with_the_namespace_of_its_cluster(hub: Access, namespace: str) -> None:
    with fresh_namespace(hub) as of_cluster:
        attach(hub, of_cluster, attachment_namespace=namespace)
        assert len(attachments(hub, namespace)) == 1
    until(lambda: attachments(hub, namespace) == [], "Kubernetes has deleted it")


def test_a_hub_without_multus_has_one_message(hub: Access, namespace: str) -> None:
    refused = attach(hub, namespace)
    assert refused.result["reason"] == "SiteMistake" and f"The hub has no kind {KIND}" in refused.message
    assert not attach(hub, namespace, "absent").failed, "nothing keeps a cluster from its deletion"


@pytest.mark.usefixtures("multus")
def test_the_shipped_role_is_enough(hub: Access, namespace: str) -> None:
    user = {"kind": "User", "name": f"engine-{namespace}", "apiGroup": "rbac.authorization.k8s.io"}
    roles = [manifest("networks/attachments_role"), manifest("role"), manifest("cluster_role")]
    roles[0]["metadata"]["namespace"] = namespace
    for role in roles:
        role["metadata"]["name"] += f"-{namespace}"
        reference = {"apiGroup": user["apiGroup"], "kind": role["kind"], "name": role["metadata"]["name"]}
        binding = {"apiVersion": role["apiVersion"], "kind": f"{role['kind']}Binding", "metadata": role["metadata"], "roleRef": reference}
        hub.apply(role, binding | {"subjects": [user]})
    try:
        until(lambda: not attach(hub, namespace, impersonate_user=user["name"]).failed, "the server knows the roles")
        assert attach(hub, namespace, vlan=104, impersonate_user=user["name"]).changed
        assert attach(hub, namespace, "absent", impersonate_user=user["name"]).changed
    finally:
        for kind in ("clusterrole", "clusterrolebinding"):
            hub.kubectl("delete", kind, roles[2]["metadata"]["name"])
        for kind in ("role", "rolebinding"):
            hub.kubectl("delete", kind, roles[1]["metadata"]["name"], "-n", lease.SITE_NAMESPACE)


@pytest.mark.usefixtures("multus")
def test_examples_of_attachments(hub: Access, tmp_path: Path) -> None:
    played = play(tmp_path, examples("cluster_network_attachment"), defaults={"kubeconfig": str(hub.kubeconfig)})
    assert played.code == 0, played.output
    assert played["Show what NodePools name"].result["msg"].startswith("default/clusters-lab-")
    assert played["Remove the network when the cluster is deleted"].changed
