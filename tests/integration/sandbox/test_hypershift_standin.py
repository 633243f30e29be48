"""The stand-in for HyperShift on a real API server, with HyperShift's CRDs."""

from __future__ import annotations

import base64
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox

from ..support.samples import FAULT, NEXT_RELEASE, RELEASE, hosted_cluster, node_pool, pull_secret

FINALIZER = "hypershift.openshift.io/finalizer"


def condition(hub: Access, kind: str, name: str, namespace: str, wanted: str) -> dict[str, Any] | None:
    item = hub.get(kind, name, "-n", namespace)
    conditions = (item or {}).get("status", {}).get("conditions", [])
    return next((entry for entry in conditions if entry["type"] == wanted), None)


def hosted(hub: Access, namespace: str, folder: Path, name: str = "demo") -> Access:
    """The hosted cluster, reached with the kubeconfig that the hub's secret holds."""
    secret = hub.get("secret", f"{name}-admin-kubeconfig", "-n", namespace)
    path = folder / "hosted-kubeconfig"
    path.write_bytes(base64.b64decode(secret["data"]["kubeconfig"]))
    path.chmod(0o600)
    return Access(path)


def test_a_hosted_cluster_becomes_a_real_cluster_with_ready_nodes(hub: Access, namespace: str, tmp_path: Path) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace), node_pool(namespace, replicas=2))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")
    hub.wait("nodepool/workers", "-n", namespace, "--for=condition=Ready")
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=ClusterVersionSucceeding")

    cluster = hub.get("hostedcluster", "demo", "-n", namespace)
    status = cluster["status"]
    assert status["kubeconfig"] == {"name": "demo-admin-kubeconfig"}
    assert status["kubeadminPassword"] == {"name": "demo-kubeadmin-password"}
    assert [(entry["state"], entry["version"]) for entry in status["version"]["history"]] == [("Completed", "4.17.0")]
    assert FINALIZER in cluster["metadata"]["finalizers"]
    assert hub.get("nodepool", "workers", "-n", namespace)["status"]["replicas"] == 2

    inside = hosted(hub, namespace, tmp_path)
    assert f":{status['controlPlaneEndpoint']['port']}" in inside.kubectl("cluster-info").stdout
    nodes = inside.get("nodes")["items"]
    assert [node["metadata"]["name"] for node in nodes] == ["workers-0", "workers-1"]
    assert inside.kubectl("get", "nodes", "--no-headers").stdout.count(" Ready ") == 2
    inside.kubectl("create", "configmap", "mine", "--from-literal=a=b")
    assert hub.get("configmap", "mine") is None


def test_nodes_follow_the_replicas_and_the_release(hub: Access, namespace: str, tmp_path: Path) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace), node_pool(namespace, replicas=1))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=ClusterVersionSucceeding")
    inside = hosted(hub, namespace, tmp_path)

    hub.kubectl("scale", "nodepool/workers", "-n", namespace, "--replicas=3")
    hub.wait("nodepool/workers", "-n", namespace, "--for=jsonpath={.status.replicas}=3")
    assert len(inside.get("nodes")["items"]) == 3
    hub.kubectl("scale", "nodepool/workers", "-n", namespace, "--replicas=1")
    hub.wait("nodepool/workers", "-n", namespace, "--for=jsonpath={.status.replicas}=1")
    assert [node["metadata"]["name"] for node in inside.get("nodes")["items"]] == ["workers-0"]

    image = f'{{"spec": {{"release": {{"image": "{NEXT_RELEASE}"}}}}}}'
    for target in ("hostedcluster/demo", "nodepool/workers"):
        hub.kubectl("patch", target, "-n", namespace, "--type=merge", "-p", image)
    # kubectl does not wait for an entry of a list that is too short yet.
    until(lambda: len(hub.get("hostedcluster", "demo", "-n", namespace)["status"]["version"]["history"]) == 2, "the release is seen")
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=jsonpath={.status.version.history[0].state}=Completed")
    hub.wait("nodepool/workers", "-n", namespace, "--for=jsonpath={.status.version}=4.17.1")
    history = hub.get("hostedcluster", "demo", "-n", namespace)["status"]["version"]["history"]
    assert [(entry["version"], entry["image"]) for entry in history] == [("4.17.1", NEXT_RELEASE), ("4.17.0", RELEASE)]


def test_deleting_a_hosted_cluster_removes_its_node_pools_secrets_and_processes(hub: Access, namespace: str, tmp_path: Path) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace), node_pool(namespace))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")
    inside = hosted(hub, namespace, tmp_path)
    hub.kubectl("delete", "hostedcluster/demo", "-n", namespace)
    assert hub.get("nodepools", "-n", namespace)["items"] == []
    assert "refused" in inside.kubectl("get", "nodes", check=False).stderr
    until(lambda: hub.get("secret", "demo-admin-kubeconfig", "-n", namespace) is None, "the garbage collector removes the secret")


def test_an_object_stays_while_another_finalizer_holds_it(hub: Access, namespace: str) -> None:
    cluster = hosted_cluster(namespace, status_only=True)
    cluster["metadata"]["finalizers"] = ["example.com/other"]
    hub.apply(pull_secret(namespace), cluster, node_pool(namespace))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")
    hub.kubectl("delete", "hostedcluster/demo", "-n", namespace, "--wait=false")
    until(
        lambda: hub.get("hostedcluster", "demo", "-n", namespace)["metadata"]["finalizers"] == ["example.com/other"],
        "only the other is left",
    )
    assert hub.get("nodepools", "-n", namespace)["items"] == []
    hub.kubectl("patch", "hostedcluster/demo", "-n", namespace, "--type=json", "-p", '[{"op": "remove", "path": "/metadata/finalizers"}]')
    until(lambda: hub.get("hostedcluster", "demo", "-n", namespace) is None, "the cluster is gone")


def test_deletion_while_the_control_plane_is_starting(hub: Access, namespace: str) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace), node_pool(namespace))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available=False")
    hub.kubectl("delete", "hostedcluster/demo", "-n", namespace)
    assert hub.get("hostedclusters,nodepools", "-n", namespace)["items"] == []


def test_deleting_the_namespace_completes(hub: Access, namespace: str) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace), node_pool(namespace))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")
    hub.kubectl("delete", "namespace", namespace, "--timeout=120s")
    assert hub.get("namespace", namespace) is None
    hub.kubectl("create", "namespace", namespace)


def test_fault_never_available(hub: Access, namespace: str) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace, fault="never-available"), node_pool(namespace))
    hub.wait("nodepool/workers", "-n", namespace, "--for=condition=Ready=False")
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available=False")
    available = condition(hub, "hostedcluster", "demo", namespace, "Available")
    assert available and (available["status"], available["reason"]) == ("False", "WaitingForAvailable")
    assert hub.get("secret", "demo-admin-kubeconfig", "-n", namespace) is None
    hub.kubectl("annotate", "hostedcluster/demo", "-n", namespace, f"{FAULT}-")
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")


def test_fault_degraded_later_and_healed(hub: Access, namespace: str) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace, status_only=True), node_pool(namespace))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")
    hub.kubectl("annotate", "hostedcluster/demo", "-n", namespace, f"{FAULT}=degraded")
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Degraded")
    degraded = condition(hub, "hostedcluster", "demo", namespace, "Degraded")
    assert degraded and degraded["reason"] == "UnavailableReplicas"
    hub.kubectl("annotate", "hostedcluster/demo", "-n", namespace, f"{FAULT}-")
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Degraded=False")


def test_fault_slow_delays_availability(hub: Access, namespace: str) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace, fault="slow=4", status_only=True), node_pool(namespace))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")
    cluster = hub.get("hostedcluster", "demo", "-n", namespace)
    available = condition(hub, "hostedcluster", "demo", namespace, "Available")
    assert available
    waited = time.mktime(_parsed(available["lastTransitionTime"])) - time.mktime(_parsed(cluster["metadata"]["creationTimestamp"]))
    assert waited >= 3  # both times are cut to whole seconds


def _parsed(timestamp: str) -> time.struct_time:
    return time.strptime(timestamp, "%Y-%m-%dT%H:%M:%SZ")


def test_fault_lose_node_makes_a_real_node_not_ready(hub: Access, namespace: str, tmp_path: Path) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace), node_pool(namespace, replicas=2))
    hub.wait("nodepool/workers", "-n", namespace, "--for=condition=Ready")
    hub.kubectl("annotate", "nodepool/workers", "-n", namespace, f"{FAULT}=lose-node")
    hub.wait("nodepool/workers", "-n", namespace, "--for=condition=AllNodesHealthy=False")
    assert hub.get("nodepool", "workers", "-n", namespace)["status"]["replicas"] == 1
    nodes = hosted(hub, namespace, tmp_path).kubectl("get", "nodes", "--no-headers").stdout
    assert (nodes.count(" Ready "), nodes.count(" NotReady ")) == (1, 1)
    hub.kubectl("annotate", "nodepool/workers", "-n", namespace, f"{FAULT}-")
    hub.wait("nodepool/workers", "-n", namespace, "--for=condition=Ready")


def test_an_unknown_fault_is_named(hub: Access, namespace: str) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace, fault="explode"))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=ValidConfiguration=False")
    valid = condition(hub, "hostedcluster", "demo", namespace, "ValidConfiguration")
    assert valid and "explode" in valid["message"]


def test_a_missing_pull_secret_is_named_and_waited_for(hub: Access, namespace: str) -> None:
    hub.apply(hosted_cluster(namespace, status_only=True))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available=False")
    valid = condition(hub, "hostedcluster", "demo", namespace, "ValidConfiguration")
    assert valid and valid["reason"] == "SecretNotFound" and "pull-secret" in valid["message"]
    hub.apply(pull_secret(namespace))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")


def test_a_node_pool_waits_for_its_cluster(hub: Access, namespace: str) -> None:
    hub.apply(pull_secret(namespace), node_pool(namespace))
    hub.apply(hosted_cluster(namespace, status_only=True))
    hub.wait("nodepool/workers", "-n", namespace, "--for=condition=Ready")
    owners = hub.get("nodepool", "workers", "-n", namespace)["metadata"]["ownerReferences"]
    assert [(owner["kind"], owner["name"]) for owner in owners] == [("HostedCluster", "demo")]


def test_a_killed_control_plane_comes_back_with_its_data(sandbox: Sandbox, hub: Access, namespace: str, tmp_path: Path) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace), node_pool(namespace))
    hub.wait("nodepool/workers", "-n", namespace, "--for=condition=Ready")
    inside = hosted(hub, namespace, tmp_path)
    inside.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    victim = next(p for p in sandbox.status() if p.owner == f"{namespace}/demo" and p.name == "kube-apiserver")
    os.kill(victim.pid, signal.SIGKILL)
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available=False")
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")
    assert hosted(hub, namespace, tmp_path).get("configmap", "kept")["data"] == {"a": "b"}


def test_many_status_only_clusters_settle(sandbox: Sandbox, hub: Access, namespace: str, soak: int) -> None:
    names = [f"load-{number}" for number in range(40 * soak)]
    clusters = [hosted_cluster(namespace, name, status_only=True) for name in names]
    pools = [node_pool(namespace, name, name=name) for name in names]
    hub.apply(pull_secret(namespace), *clusters, *pools)
    # `make bench` measures how long 200 of them take.
    hub.wait("hostedclusters", "--all", "-n", namespace, "--for=condition=ClusterVersionSucceeding", timeout="300s")
    hub.wait("nodepools", "--all", "-n", namespace, "--for=condition=Ready", timeout="300s")
    assert not [process for process in sandbox.status() if process.owner.startswith(f"{namespace}/")]
    hub.kubectl("delete", "hostedclusters", "--all", "-n", namespace, "--timeout=300s")
    assert hub.get("nodepools", "-n", namespace)["items"] == []


def test_a_cluster_deleted_while_the_standin_was_away_leaves_nothing(new_sandbox: Callable[..., Sandbox]) -> None:
    sandbox = new_sandbox()
    hub = Access(sandbox.kubeconfig())
    with fresh_namespace(hub) as namespace:
        hub.apply(pull_secret(namespace), hosted_cluster(namespace), node_pool(namespace))
        hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")
        standin = next(process for process in sandbox.status() if process.name == "hypershift-standin")
        os.kill(standin.pid, signal.SIGKILL)
        hub.kubectl("delete", "hostedcluster/demo", "-n", namespace, "--wait=false")
        until(lambda: [process for process in sandbox.status() if not process.running], "the end of the stand-in is noticed")
        sandbox.up()
        hub.wait("hostedcluster/demo", "-n", namespace, "--for=delete")
        sandbox.check()
        assert {process.owner for process in sandbox.status()} == {"hub", "hypershift-standin"}
    sandbox.down()
