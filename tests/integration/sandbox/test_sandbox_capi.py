"""Cluster API in the sandbox: its own managers and webhooks create a cluster, make it Available, and delete it."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.capi import CLASS_NAMESPACE
from ansible_collections.openfleet.clusters.extensions.sandbox.capi_manifests import CLASS_NAME, WORKER_CLASS
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import ProcessStatus, Sandbox
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

TIMEOUT_SECONDS = 900


@pytest.fixture
def capi_namespace(capi_hub: Access) -> Iterator[str]:
    """A namespace for clusters of one test."""
    with fresh_namespace(capi_hub) as name:
        yield name


def cluster(namespace: str, workers: int = 2, worker_class: str = WORKER_CLASS, version: str = "v1.36.3") -> Object:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "dev", "namespace": namespace},
        "spec": {
            "topology": {
                "classRef": {"name": CLASS_NAME, "namespace": CLASS_NAMESPACE},
                "version": version,
                "controlPlane": {"replicas": 1},
                "workers": {"machineDeployments": [{"class": worker_class, "name": "workers", "replicas": workers}]},
            }
        },
    }


def available_workers(hub: Access, namespace: str) -> int:
    """How many workers are available, if Available is True and said of the cluster as it is now; else none."""
    found = hub.get("cluster", "dev", "-n", namespace)
    status, now = found.get("status", {}), found["metadata"]["generation"]
    available = next((each for each in status.get("conditions", []) if each["type"] == "Available"), None)
    good = available and available["status"] == "True" and available["observedGeneration"] == now
    return int(status["workers"].get("availableReplicas", 0)) if good else 0


def inside(hub: Access, namespace: str, folder: Path) -> Access:
    """The cluster itself, reached with the kubeconfig that Cluster API left on the hub."""
    secret = hub.get("secret", "dev-kubeconfig", "-n", namespace)
    (folder / "kubeconfig").write_bytes(base64.b64decode(secret["data"]["value"]))
    return Access(folder / "kubeconfig")


def managers(sandbox: Sandbox) -> dict[str, ProcessStatus]:
    return {process.name: process for process in sandbox.status() if process.owner == "cluster-api"}


def first_port(manager: ProcessStatus) -> int:
    said = re.search(rb"--first-port=(\d+)", Path(f"/proc/{manager.pid}/cmdline").read_bytes())
    assert said
    return int(said[1])


def kill(sandbox: Sandbox, name: str) -> ProcessStatus:
    """Kill one of the managers, and wait until the sandbox has noticed its end."""
    victim = managers(sandbox)[name]
    os.kill(victim.pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{victim.pid}").exists(), "it is dead, and has no port any more")
    return victim


def assert_webhooks_judge(hub: Access, namespace: str) -> None:
    with pytest.raises(UserError, match='"gold" does not exist in ClusterClass'):
        hub.apply(cluster(namespace, worker_class="gold"))
    assert hub.get("cluster", "dev", "-n", namespace) is None


def test_a_cluster_becomes_available_scales_and_is_deleted(capi_hub: Access, capi_namespace: str, tmp_path: Path) -> None:
    capi_hub.apply(cluster(capi_namespace))
    until(lambda: available_workers(capi_hub, capi_namespace) == 2, "the cluster is available", TIMEOUT_SECONDS)
    nodes = inside(capi_hub, capi_namespace, tmp_path).get("nodes")["items"]
    assert len(nodes) == 3
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes} == {"v1.36.3"}

    capi_hub.apply(cluster(capi_namespace, workers=3))
    until(lambda: available_workers(capi_hub, capi_namespace) == 3, "the third worker is available", TIMEOUT_SECONDS)
    assert len(inside(capi_hub, capi_namespace, tmp_path).get("nodes")["items"]) == 4

    capi_hub.kubectl("delete", "cluster", "dev", "-n", capi_namespace, "--wait=false")
    left = "clusters,machines,machinedeployments,kubeadmcontrolplanes,kubeadmconfigs,devclusters,devmachines,secrets"
    until(lambda: not capi_hub.get(left, "-n", capi_namespace)["items"], "nothing is left", TIMEOUT_SECONDS)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"worker_class": "gold"}, 'MachineDeploymentClass with name "gold" does not exist in ClusterClass'),
        ({"version": "latest"}, "version must be a valid semantic version"),
    ],
)
def test_a_bad_cluster_is_refused_by_the_webhook(capi_hub: Access, capi_namespace: str, wrong: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        capi_hub.apply(cluster(capi_namespace, **wrong))  # type: ignore[arg-type]
    assert capi_hub.get("cluster", "dev", "-n", capi_namespace) is None


def test_objects_of_the_older_version_are_converted(capi_hub: Access) -> None:
    older = capi_hub.get("clusterclasses.v1beta1.cluster.x-k8s.io", CLASS_NAME, "-n", CLASS_NAMESPACE)
    assert older["apiVersion"] == "cluster.x-k8s.io/v1beta1"
    assert older["spec"]["infrastructure"]["ref"]["kind"] == "DevClusterTemplate"


def test_a_crashed_manager_is_named_and_up_restarts_it(capi_hub: Access, sandbox: Sandbox, capi_namespace: str) -> None:
    before = managers(sandbox)
    kill(sandbox, "capi-core")
    with pytest.raises(UserError, match="capi-core of cluster-api has ended"):
        sandbox.check()
    with pytest.raises(UserError, match="failed calling webhook"):
        capi_hub.apply(cluster(capi_namespace))
    sandbox.up()
    sandbox.check()
    assert_webhooks_judge(capi_hub, capi_namespace)
    assert {name for name, process in managers(sandbox).items() if process != before[name]} == {"capi-core"}


def test_a_port_taken_meanwhile_is_replaced_by_another(capi_hub: Access, sandbox: Sandbox) -> None:
    before = first_port(managers(sandbox)["capi-in-memory"])
    kill(sandbox, "capi-in-memory")
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # A sandbox of another test may be faster, which is as good.
        with contextlib.suppress(OSError):
            other.bind(("127.0.0.1", before))
            other.listen()
        sandbox.up()
        assert first_port(managers(sandbox)["capi-in-memory"]) != before
    copies = capi_hub.get("devclustertemplate", CLASS_NAME, "-n", CLASS_NAMESPACE)
    copies["metadata"] = {"name": "again", "namespace": CLASS_NAMESPACE}
    capi_hub.apply(copies)


def test_two_sandboxes_have_cluster_api_side_by_side(sandbox: Sandbox, capi_hub: Access, new_sandbox: Callable[..., Sandbox]) -> None:
    second = new_sandbox(capi=True)
    assert first_port(managers(second)["capi-in-memory"]) != first_port(managers(sandbox)["capi-in-memory"])
    pids = [process.pid for process in managers(second).values()]
    assert len(pids) == 4
    for each in (capi_hub, Access(second.kubeconfig())):
        with fresh_namespace(each) as namespace:
            assert_webhooks_judge(each, namespace)
    second.down()
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
