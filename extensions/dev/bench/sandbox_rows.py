"""What the sandbox itself costs: control planes, hosted clusters, a load of HostedClusters without processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

from ...sandbox.access import Access, until
from ...sandbox.sandbox import Sandbox
from .floor import BareClient
from .timing import Row, megabytes, ratio, seconds, timed

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "hosted_cluster.yaml"
STATUS_ONLY = {"standin.openfleet.clusters/mode": "status-only"}
MANY = 200


def control_planes(sandbox: Sandbox) -> Iterator[Row]:
    """A hosted control plane against a bare one: what the stand-in adds."""
    with timed("Hub from nothing to ready") as hub_time:
        sandbox.up(attached=True)
    with timed("A further cluster") as bare_time:
        sandbox.up(clusters=["bare"])
    hub = Access(sandbox.kubeconfig())
    with timed("HostedCluster from apply to 2 Ready nodes") as hosted_time:
        hub.kubectl("apply", "-f", str(EXAMPLE))
        hub.wait("nodepool", "--all", "-n", "demo", "--for=condition=Ready")
    with timed("HostedCluster from delete to deleted") as deleted_time:
        hub.kubectl("delete", "hostedcluster", "--all", "-n", "demo")
    yield Row(
        "hub, its CRDs and the stand-in from nothing to ready",
        seconds(hub_time),
        f"a bare cluster: {seconds(bare_time)}",
        ratio(hub_time, bare_time),
    )
    yield Row(
        "HostedCluster from apply to 2 Ready nodes",
        seconds(hosted_time),
        f"a bare cluster: {seconds(bare_time)}",
        ratio(hosted_time, bare_time),
    )
    yield Row(
        "HostedCluster from delete to deleted",
        seconds(deleted_time),
        f"its creation: {seconds(hosted_time)}",
        ratio(deleted_time, hosted_time),
    )
    yield Row("memory of a cluster", f"{megabytes(sandbox, 'bare')} MB", f"the hub: {megabytes(sandbox, 'hub')} MB")
    yield Row("memory of the stand-in", f"{megabytes(sandbox, 'hypershift-standin')} MB")


def many_status_only(sandbox: Sandbox) -> Iterator[Row]:
    """A load of HostedClusters without processes, against the same number of bare writes."""
    client = BareClient(sandbox.kubeconfig())
    client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "load"}})
    _namespace, secret, cluster, pool = yaml.safe_load(EXAMPLE.read_text())["items"]
    secret["metadata"]["namespace"] = "load"
    client.send("POST", "/api/v1/namespaces/load/secrets", secret)
    before = client.writes()
    with timed(f"{MANY} HostedClusters with NodePools in status-only mode") as load_time:
        for number in range(MANY):
            create(client, "hostedclusters", cluster, f"load-{number}", cluster["spec"], STATUS_ONLY)
            create(client, "nodepools", pool, f"load-{number}", pool["spec"] | {"clusterName": f"load-{number}"})
        until(lambda: settled(client), f"{MANY} HostedClusters settle", 300)
    writes = client.writes() - before
    with timed(f"The same {writes} writes over one bare connection") as floor_time:
        client.send("POST", "/api/v1/namespaces/load/configmaps", {"metadata": {"name": "floor"}})
        for number in range(writes):
            client.send("PATCH", "/api/v1/namespaces/load/configmaps/floor", {"data": {"n": f"{number}"}}, "application/merge-patch+json")
    floor = f"{writes} bare writes: {seconds(floor_time)}"
    yield Row(f"{MANY} status-only HostedClusters from first apply to all settled", seconds(load_time), floor, ratio(load_time, floor_time))


def create(client: BareClient, plural: str, item: Object, name: str, spec: Object, annotations: dict[str, str] | None = None) -> None:
    metadata = {"name": name, "annotations": annotations or {}}
    body = {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata, "spec": spec}
    client.send("POST", f"/apis/hypershift.openshift.io/v1beta1/namespaces/load/{plural}", body)


def settled(client: BareClient) -> bool:
    answer = json.loads(client.send("GET", "/apis/hypershift.openshift.io/v1beta1/namespaces/load/hostedclusters"))
    return all(item.get("status", {}).get("version", {}).get("history", [{}])[0].get("state") == "Completed" for item in answer["items"])
