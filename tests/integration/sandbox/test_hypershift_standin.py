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
    cluster = hosted_cluster(namespace)
    cluster["metadata"]["labels"] = {"team": "blue"}
    cluster["spec"]["dns"] = {"baseDomain": "example.com"}
    hub.apply(pull_secret(namespace), cluster, node_pool(namespace, replicas=2))
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
    assert hub.get("secret", "demo-admin-kubeconfig", "-n", namespace)["metadata"]["labels"] == {"team": "blue"}
    until(lambda: inside.get("configmap", "console-public", "-n", "openshift-config-managed") is not None, "the console is published")
    console = inside.get("configmap", "console-public", "-n", "openshift-config-managed")["data"]["consoleURL"]
    assert console == "https://console-openshift-console.apps.demo.example.com"


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
    until(lambda: len(hub.get("hostedcluster", "demo", "-n", namespace)["status"]["version"]["history"]) == 2, "the release is observed")
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
    # Not until it is unavailable: that lasts for some seconds only.
    until(lambda: condition(hub, "hostedcluster", "demo", namespace, "Available"), "the control plane is starting")
    hub.kubectl("delete", "hostedcluster/demo", "-n", namespace)
    assert hub.get("hostedclusters,nodepools", "-n", namespace)["items"] == []


def test_deleting_the_namespace_completes(hub: Access, namespace: str) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace), node_pool(namespace))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")
    hub.kubectl("delete", "namespace", namespace, "--timeout=300s")
    assert hub.get("namespace", namespace) is None
    hub.kubectl("create", "namespace", namespace)


def test_fault_never_available(hub: Access, namespace: str) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace, fault="never-available"), node_pool(namespace))
    hub.wait("nodepool/workers", "-n", namespace, "--for=condition=UpdatingVersion")
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
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=ValidReleaseImage=False")
    valid = condition(hub, "hostedcluster", "demo", namespace, "ValidReleaseImage")
    assert valid and valid["reason"] == "SecretNotFound" and "pull-secret" in valid["message"]
    hub.apply(pull_secret(namespace))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")


def test_a_node_pool_waits_for_its_cluster(hub: Access, namespace: str) -> None:
    hub.apply(pull_secret(namespace), node_pool(namespace))
    hub.apply(hosted_cluster(namespace, status_only=True))
    hub.wait("nodepool/workers", "-n", namespace, "--for=condition=Ready")
    owners = hub.get("nodepool", "workers", "-n", namespace)["metadata"]["ownerReferences"]
    assert [(owner["kind"], owner["name"]) for owner in owners] == [("HostedCluster", "demo")]


def test_control_plane_has_a_namespace_that_ends_with_its_cluster(hub: Access, namespace: str) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace, status_only=True), node_pool(namespace))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")
    assert hub.get("namespace", f"{namespace}-demo")["metadata"]["labels"]["hypershift.openshift.io/hosted-control-plane"] == "true"
    cluster = hub.get("hostedcluster", "demo", "-n", namespace)
    assert {"clusterID", "infraID", "secretEncryption"} <= cluster["spec"].keys()
    secret = hub.get("secret", "pull-secret", "-n", namespace)
    assert "referenced-resource.hypershift.openshift.io/demo" in secret["metadata"]["annotations"]
    hub.kubectl("delete", "hostedcluster/demo", "-n", namespace)
    assert hub.get("namespace", f"{namespace}-demo") is None


def test_existing_namespace_is_adopted_and_deleted_with_all_that_is_in_it(hub: Access, namespace: str) -> None:
    hub.kubectl("create", "namespace", f"{namespace}-demo")
    hub.kubectl("create", "configmap", "of-another-client", "-n", f"{namespace}-demo")
    hub.apply(pull_secret(namespace), hosted_cluster(namespace, status_only=True))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")
    hub.kubectl("delete", "hostedcluster/demo", "-n", namespace)
    assert hub.get("namespace", f"{namespace}-demo") is None


def test_name_that_is_too_long_for_a_namespace_is_all_that_happens(hub: Access, namespace: str) -> None:
    name = "x" * (64 - len(namespace))
    hub.apply(pull_secret(namespace), hosted_cluster(namespace, name, status_only=True), node_pool(namespace, name))
    hub.wait(f"hostedcluster/{name}", "-n", namespace, "--for=condition=ReconciliationSucceeded=False")
    reconciled = condition(hub, "hostedcluster", name, namespace, "ReconciliationSucceeded")
    assert reconciled and "is invalid" in reconciled["message"]
    cluster = hub.get("hostedcluster", name, "-n", namespace)
    assert {entry["type"] for entry in cluster["status"]["conditions"] if entry["status"] == "Unknown"} >= {"Degraded", "EtcdAvailable"}
    assert "status" not in hub.get("nodepool", "workers", "-n", namespace)
    hub.kubectl("delete", f"hostedcluster/{name}", "-n", namespace)


def test_downgrade_is_refused_and_the_cluster_runs_on(hub: Access, namespace: str) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace, status_only=True), node_pool(namespace))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=ClusterVersionSucceeding")
    image = RELEASE.replace("4.17.0", "4.16.9")
    patch = f'{{"spec": {{"release": {{"image": "{image}"}}}}}}'
    hub.kubectl("patch", "hostedcluster/demo", "-n", namespace, "--type=merge", "-p", patch)
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=ValidReleaseImage=False")
    cluster = hub.get("hostedcluster", "demo", "-n", namespace)
    assert cluster["spec"]["release"]["image"] == image
    assert [entry["version"] for entry in cluster["status"]["version"]["history"]] == ["4.17.0"]
    progressing = condition(hub, "hostedcluster", "demo", namespace, "Progressing")
    assert progressing and (progressing["status"], progressing["reason"]) == ("False", "Blocked")


def test_missing_agent_namespace_is_waited_for(hub: Access, namespace: str) -> None:
    agents = f"{namespace}-agents"
    cluster = hosted_cluster(namespace, status_only=True)
    cluster["spec"]["platform"] = {"type": "Agent", "agent": {"agentNamespace": agents}}
    hub.apply(pull_secret(namespace), cluster)
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=ValidConfiguration=False")
    hub.kubectl("create", "namespace", agents)
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")
    names = {item["metadata"]["name"] for item in hub.get("roles,rolebindings", "-n", agents)["items"]}
    assert names == {f"capi-provider-role-{namespace}-demo", f"cluster-api-agent-{namespace}-demo"}
    hub.kubectl("delete", "hostedcluster/demo", "-n", namespace)
    assert hub.get("roles,rolebindings", "-n", agents)["items"] == []
    hub.kubectl("delete", "namespace", agents, "--wait=false")


def test_a_killed_control_plane_comes_back_with_its_data(sandbox: Sandbox, hub: Access, namespace: str, tmp_path: Path) -> None:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace), node_pool(namespace))
    hub.wait("nodepool/workers", "-n", namespace, "--for=condition=Ready")
    inside = hosted(hub, namespace, tmp_path)
    inside.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    victim = next(p for p in sandbox.status() if p.owner == f"{namespace}/demo" and p.name == "kube-apiserver")
    before = condition(hub, "hostedcluster", "demo", namespace, "Available")
    os.kill(victim.pid, signal.SIGKILL)

    def is_back() -> bool:
        """Available again, and not before: it was unavailable for some seconds meanwhile."""
        now = condition(hub, "hostedcluster", "demo", namespace, "Available")
        return bool(before and now) and now["status"] == "True" and now["lastTransitionTime"] > before["lastTransitionTime"]

    until(is_back, "the control plane was unavailable and is back")
    assert hosted(hub, namespace, tmp_path).get("configmap", "kept")["data"] == {"a": "b"}


def test_many_status_only_clusters_settle(sandbox: Sandbox, hub: Access, namespace: str, soak: int) -> None:
    names = [f"load-{number}" for number in range(12 * soak)]
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


def test_hub_for_load_gets_no_namespaces_of_control_planes_but_adopts_them(quick_hub: Access) -> None:
    with fresh_namespace(quick_hub) as namespace:
        quick_hub.kubectl("create", "namespace", f"{namespace}-adopted")
        clusters = [hosted_cluster(namespace, name) for name in ("adopted", "alone")]
        quick_hub.apply(pull_secret(namespace), *clusters)
        quick_hub.wait("hostedclusters", "--all", "-n", namespace, "--for=condition=Available")
        assert quick_hub.get("namespace", f"{namespace}-alone") is None
        quick_hub.kubectl("delete", "hostedclusters", "--all", "-n", namespace)
        assert quick_hub.get("namespace", f"{namespace}-adopted") is None
