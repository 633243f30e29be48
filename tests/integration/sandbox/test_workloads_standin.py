"""The stand-in for nodes: on a hosted cluster, known images run as processes and all other workloads are reported as running."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.flux_manifest import Manifest
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import works_in
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox

from ..support.gitops import FLUX_NAMESPACE, condition, is_available
from ..support.replication import soon
from ..support.samples import hosted_cluster, pull_secret


def workload(kind: str, name: str, image: str, replicas: int = 2) -> dict[str, Any]:
    pod = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": pod}
    more = {"serviceName": name} if kind == "StatefulSet" else {}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": {**spec, **more}}


def inside(hub: Access, namespace: str, folder: Path) -> Access:
    hub.apply(pull_secret(namespace), hosted_cluster(namespace))
    hub.wait("hostedcluster/demo", "-n", namespace, "--for=condition=Available")
    secret = hub.get("secret", "demo-admin-kubeconfig", "-n", namespace)
    path = folder / "kubeconfig"
    path.write_bytes(base64.b64decode(secret["data"]["kubeconfig"]))
    path.chmod(0o600)
    return Access(path)


def controllers(sandbox: Sandbox, namespace: str) -> dict[str, int]:
    """The running controllers of the hosted cluster, and their process ids."""
    return {each.name: each.pid for each in sandbox.status() if each.owner == f"{namespace}/demo (Flux)" and each.running}


def test_a_hosted_cluster_runs_fluxs_controllers_and_reports_other_workloads(
    sandbox: Sandbox, hub: Access, namespace: str, flux_manifest: Manifest, tmp_path: Path
) -> None:
    cluster = inside(hub, namespace, tmp_path)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": "default"}}
    cluster.apply(
        workload("Deployment", "web", "example.com/web:1"),
        workload("Deployment", "lost", "example.com/web:broken"),
        workload("StatefulSet", "store", "example.com/store@sha256:aa"),
        {**pod, "spec": {"containers": [{"name": "main", "image": "example.com/one"}]}},
    )
    cluster.wait("deployment/web", "--for=condition=Available")
    cluster.kubectl("rollout", "status", "deployment/web", "statefulset/store", "--timeout=120s")
    cluster.wait("pod/one", "--for=condition=Ready")
    lost = until(lambda: (found := cluster.get("deployment", "lost")).get("status") and found, "it has a status")
    assert condition(lost, "Available")["status"] == "False"
    assert "example.com/web:broken" in condition(lost, "Available")["message"]

    # One controller is enough here: the image decides, wherever its registry and whatever its name.
    everything = list(yaml.safe_load_all(flux_manifest.path.read_text(encoding="utf-8")))
    wanted = [each for each in everything if each["kind"] in ("Namespace", "CustomResourceDefinition")]
    (source,) = (each for each in everything if each["kind"] == "Deployment" and each["metadata"]["name"] == "source-controller")
    source["spec"]["template"]["spec"]["containers"][0]["image"] = "mirror.example.com/fluxcd/source-controller:v1.2.3"
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all([*wanted, source]))
    until(lambda: is_available(cluster, "source-controller"), "source-controller is available")
    assert list(controllers(sandbox, namespace)) == ["source-controller"]

    cluster.kubectl("scale", "deployment/source-controller", "-n", FLUX_NAMESPACE, "--replicas=0")
    until(lambda: not controllers(sandbox, namespace), "it ends with its last replica")
    cluster.kubectl("scale", "deployment/source-controller", "-n", FLUX_NAMESPACE, "--replicas=1")
    pid = until(lambda: controllers(sandbox, namespace).get("source-controller"), "it runs again")
    hub.kubectl("delete", "hostedcluster/demo", "-n", namespace)
    assert not works_in(pid, sandbox.state)
    assert not controllers(sandbox, namespace)


def test_two_stand_ins_on_one_cluster_do_not_overwrite_the_status_of_its_workloads(dr_sites: dict[str, Access], sandbox: Sandbox) -> None:
    """Each would take the other's status for a change, as fast as the API server answers."""
    assert dr_sites
    sandbox.up(clusters=["flux"], workloads=["flux"])
    kube = Access(sandbox.kubeconfig("flux")).kube
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    item, stateful = workload("Deployment", "both", "example.com/both:1"), workload("StatefulSet", "both", "example.com/both:1")
    stateful["spec"] |= {"volumeClaimTemplates": [claim]}
    kube.apply(item, force=True)
    kube.apply(stateful, force=True)

    def is_stable() -> bool:
        """Whether nothing writes to the Deployment for some seconds."""
        before = kube.get("apps/v1", "Deployment", "both", "default")
        time.sleep(3)
        after = kube.get("apps/v1", "Deployment", "both", "default")
        return bool(after["status"].get("readyReplicas")) and before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]

    try:
        # It creates the claims of StatefulSets, so it is at work.
        soon(
            lambda: kube.find("v1", "PersistentVolumeClaim", "data-both-0", "default"), "the stand-in for replication has created the claim"
        )
        soon(is_stable, "the status stays as it is")
    finally:
        kube.delete(item)
        kube.delete(stateful)
        for number in range(2):
            metadata = {"name": f"data-both-{number}", "namespace": "default"}
            kube.delete({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata})
