"""The role worker_vms by a real `ansible-playbook`: it makes NodePools on KubeVirt of a site's classes, or fails before anything exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace

from ..support.playbooks import Task, play, task

RELEASE = "quay.io/openshift-release-dev/ocp-release:4.17.0-multi"
CLASSES = {
    "vm-small": {"kind": "vm", "cores": 2, "memory": "8Gi", "max_nodes": 4},
    "vm-large": {
        "kind": "vm",
        "cores": 8,
        "memory": "32Gi",
        "root_volume_size": "64Gi",
        "storage_class": "fast",
        "network": "networks/blue",
    },
}
SITE = {"classes": CLASSES, "infrastructure": {"vms": {"limits": {"cores": 32}}}}
SETTINGS = {
    "platform": {"type": "KubeVirt"},
    "node_platforms": "{{ worker_vms_result.node_platforms }}",
    "etcd_storage_size": "16Gi",
    "etcd_storage_class": "fast",
}


def nodes(**counts: int) -> list[dict[str, Any]]:
    return [{"resourceClass": name.replace("_", "-"), "numberOfNodes": count} for name, count in counts.items()]


def machines(called: str, requests: list[dict[str, Any]], **variables: Any) -> Task:
    role = {"ansible.builtin.include_role": {"name": "openfleet.clusters.worker_vms"}, "vars": {"node_requests": requests, **variables}}
    return {"name": called, "block": [{"name": f"role: {called}", **role}], "rescue": [failure(called)]}


def failure(called: str) -> Task:
    return {"name": called, "ansible.builtin.debug": {"msg": "{{ ansible_failed_result.msg }}"}}


def test_classes_become_node_pools_and_limits_are_checked_first(quick_hub: Access, tmp_path: Path) -> None:
    (tmp_path / "roles/own_vms/tasks").mkdir(parents=True)
    (tmp_path / "roles/own_vms/tasks/main.yml").write_text(
        "- ansible.builtin.set_fact:\n"
        "    worker_vms_result: {node_platforms: {gpu: {kubevirt: {}}}, asked: '{{ worker_vms_request.state }}'}\n"
    )
    with fresh_namespace(quick_hub) as namespace:
        lab = {"name": "lab", "namespace": namespace, "provider": "hypershift", "version": RELEASE, "settings": SETTINGS}
        requests = nodes(vm_small=2, vm_large=1)
        tasks = [
            machines("no such class", nodes(vm_tiny=1)),
            machines("too many of a class", nodes(vm_small=5)),
            machines("too many cores", nodes(vm_large=5)),
            machines("fits", requests),
            task("cluster", "make it", **lab, node_requests=requests, secrets={"pull_secret": "{}"}),
            machines("fits still", requests),
            task("cluster", "make it again", **lab, node_requests=requests, secrets={"pull_secret": "{}"}),
            machines("released", requests, worker_vms_state="absent"),
            machines("by another system", nodes(gpu=1), worker_vms_adapter="own_vms"),
            {"name": "its answer", "ansible.builtin.debug": {"var": "worker_vms_result"}},
        ]
        played = play(tmp_path, tasks, defaults={"kubeconfig": str(quick_hub.kubeconfig)}, cluster_site=SITE)
        assert played.code == 0, played.output
        assert "There is no class vm-tiny" in played["no such class"].result["msg"]
        assert "5 nodes of vm-small are requested, and the site allows 4" in played["too many of a class"].result["msg"]
        assert "need 40 cores, and the site allows 32 cores" in played["too many cores"].result["msg"]
        assert played.fine("make it").changed and not played.fine("make it again").changed
        assert played["its answer"].result["worker_vms_result"] == {"node_platforms": {"gpu": {"kubevirt": {}}}, "asked": "present"}
        pools = {item["metadata"]["name"]: item["spec"] for item in quick_hub.get("nodepools", "-n", namespace)["items"]}
        cluster = quick_hub.get("hostedcluster", "lab", "-n", namespace)["spec"]
    small, large = pools["lab-vm-small"]["platform"]["kubevirt"], pools["lab-vm-large"]["platform"]["kubevirt"]
    assert small["compute"] | {"qosClass": ""} == {"cores": 2, "memory": "8Gi", "qosClass": ""}
    assert large["compute"] | {"qosClass": ""} == {"cores": 8, "memory": "32Gi", "qosClass": ""}
    assert large["rootVolume"]["persistent"] == {"size": "64Gi", "storageClass": "fast"}
    assert large["additionalNetworks"] == [{"name": "networks/blue"}]
    assert {pool["management"]["upgradeType"] for pool in pools.values()} == {"Replace"}
    assert cluster["etcd"]["managed"]["storage"]["persistentVolume"] == {"size": "16Gi", "storageClassName": "fast"}
    assert cluster["platform"]["kubevirt"]["baseDomainPassthrough"] is True
