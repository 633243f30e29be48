"""`make bench`: what things cost, side by side in one run. Ratios are meant to be compared; seconds on a shared machine are noise."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import ssl
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ..sandbox import gobuild
from ..sandbox.access import Access, until
from ..sandbox.sandbox import Sandbox
from ..sandbox.screen import heading, run_command, stage

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "hosted_cluster.yaml"
STATUS_ONLY = {"standin.openfleet.clusters/mode": "status-only"}
MANY = 200
Row = tuple[str, str, str, str]
Object = dict[str, Any]


class BareClient:
    """The floor: one connection, no library, nothing but the requests themselves."""

    def __init__(self, kubeconfig: Path) -> None:
        content = json.loads(kubeconfig.read_text())
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
            pair.flush()
            context.load_cert_chain(pair.name)
        host, port = cluster["server"].removeprefix("https://").split(":")
        self._connection = http.client.HTTPSConnection(host, int(port), context=context)

    def send(self, method: str, path: str, body: Object | None = None, content_type: str = "application/json") -> str:
        self._connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": content_type})
        response = self._connection.getresponse()
        text = response.read().decode()
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            raise RuntimeError(f"{method} {path}: {text}")
        return text

    def writes(self) -> int:
        """How many writes the API server has answered, by its own count; leases, which it renews for itself, left out."""
        counted = re.findall(r"^apiserver_request_total{(.*)} (\S+)$", self.send("GET", "/metrics"), re.MULTILINE)
        wanted = [
            float(value)
            for labels, value in counted
            if re.search(r'verb="(POST|PUT|PATCH|APPLY|DELETE)"', labels) and "leases" not in labels
        ]
        return int(sum(wanted))


def main() -> int:
    heading("openfleet.clusters: measuring")
    gobuild.build(s3=False)
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox(Path(folder) / "state")
        try:
            rows = [*control_planes(sandbox), *many_status_only(sandbox)]
        finally:
            sandbox.down()
    table(rows)
    return 0


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
    with timed("HostedCluster from delete to gone") as deleted_time:
        hub.kubectl("delete", "hostedcluster", "--all", "-n", "demo")
    yield (
        "hub, its CRDs and the stand-in from nothing to ready",
        seconds(hub_time),
        f"a bare cluster: {seconds(bare_time)}",
        ratio(hub_time, bare_time),
    )
    yield (
        "HostedCluster from apply to 2 Ready nodes",
        seconds(hosted_time),
        f"a bare cluster: {seconds(bare_time)}",
        ratio(hosted_time, bare_time),
    )
    yield (
        "HostedCluster from delete to gone",
        seconds(deleted_time),
        f"its creation: {seconds(hosted_time)}",
        ratio(deleted_time, hosted_time),
    )
    yield "memory of a cluster", f"{megabytes(sandbox, 'bare')} MB", f"the hub: {megabytes(sandbox, 'hub')} MB", ""
    yield "memory of the stand-in", f"{megabytes(sandbox, 'hypershift-standin')} MB", "", ""


def many_status_only(sandbox: Sandbox) -> Iterator[Row]:
    """A load of HostedClusters without processes, against the same number of writes from one bare process."""
    client = BareClient(sandbox.kubeconfig())
    client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "load"}})
    secret, cluster, pool = list(yaml.safe_load_all(EXAMPLE.read_text()))[1:]
    secret["metadata"]["namespace"] = "load"
    client.send("POST", "/api/v1/namespaces/load/secrets", secret)
    before = client.writes()
    with timed(f"{MANY} HostedClusters with NodePools in status-only mode") as load_time:
        for number in range(MANY):
            create(client, "hostedclusters", cluster, f"load-{number}", cluster["spec"], STATUS_ONLY)
            create(client, "nodepools", pool, f"load-{number}", pool["spec"] | {"clusterName": f"load-{number}"})
        until(lambda: settled(client), f"{MANY} HostedClusters settle", 300)
    writes = client.writes() - before
    with timed(f"The same {writes} writes from one bare process") as floor_time:
        client.send("POST", "/api/v1/namespaces/load/configmaps", {"metadata": {"name": "floor"}})
        for number in range(writes):
            client.send("PATCH", "/api/v1/namespaces/load/configmaps/floor", {"data": {"n": f"{number}"}}, "application/merge-patch+json")
    floor = f"{writes} bare writes: {seconds(floor_time)}"
    yield f"{MANY} status-only HostedClusters from first apply to all settled", seconds(load_time), floor, ratio(load_time, floor_time)


def create(client: BareClient, plural: str, item: Object, name: str, spec: Object, annotations: dict[str, str] | None = None) -> None:
    metadata = {"name": name, "annotations": annotations or {}}
    body = {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata, "spec": spec}
    client.send("POST", f"/apis/hypershift.openshift.io/v1beta1/namespaces/load/{plural}", body)


def settled(client: BareClient) -> bool:
    answer = json.loads(client.send("GET", "/apis/hypershift.openshift.io/v1beta1/namespaces/load/hostedclusters"))
    return all(item.get("status", {}).get("version", {}).get("history", [{}])[0].get("state") == "Completed" for item in answer["items"])


@contextlib.contextmanager
def timed(title: str) -> Iterator[list[float]]:
    """A stage on the screen whose seconds are in the list afterwards."""
    taken: list[float] = []
    with stage(title):
        started = time.monotonic()
        yield taken
        taken.append(time.monotonic() - started)


def seconds(taken: list[float]) -> str:
    return f"{taken[0]:.1f} s"


def ratio(taken: list[float], reference: list[float]) -> str:
    return f"{taken[0] / reference[0]:.1f} x"


def megabytes(sandbox: Sandbox, owner: str) -> int:
    pids = [process.pid for process in sandbox.status() if process.owner == owner]
    # Each process's share: the programs are one binary, whose pages would otherwise be counted several times.
    shares = [re.findall(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE) for pid in pids]
    return sum(int(share) for found in shares for share in found) // 1024


def table(rows: list[Row]) -> None:
    titles = ("what", "measured", "beside it", "ratio")
    widths = [max(len(row[column]) for row in (titles, *rows)) for column in range(len(titles))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (titles, *rows)]
    heading("\n".join([lines[0], "-+-".join("-" * width for width in widths), *lines[1:]]))


if __name__ == "__main__":
    run_command(main)
