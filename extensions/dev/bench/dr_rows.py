"""Measures disaster recovery: failover and relocation without the waits, and a leader with a thousand protected applications.

Alone and with fewer applications: `python -m ...bench.dr_rows 50`.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.drpc_requests import new_drpc
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.settings import TIMEOUT
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect

from ...sandbox.build import build
from ...sandbox.sandbox import Sandbox
from ...sandbox.screen import run_command
from ..dr_clusters import CLUSTERS, EAST, POLICY, WEST, WORKLOAD, DrClusters
from ..dr_timeline import Step, steps, until_stage
from .dr_copies import EPOCH, copy_application, release_leases, workload_of
from .floor import BareClient
from .timing import Row, at_most, paused, table, timed

THOUSAND = 1000
FEWER = 10
OWN_SECONDS = 10.0
READERS = 8  # as many as the controller has workers
OTHERS = ("replication-standin", "kube-controller-manager")
RAMEN = "ramendr.openshift.io/v1alpha1"
PROGRAM = f"{__package__}.dr_leader"


def disaster_recovery(folder: Path, size: int = THOUSAND) -> Iterator[Row]:
    """All rows, on two clusters of their own."""
    sandbox = Sandbox(folder / "recovery")
    clusters = DrClusters(sandbox)
    try:
        with timed("Two clusters with replication, and a protected application"):
            clusters.start()
            clusters.prepare()
            clusters.create_application()
        yield from moves(clusters, sandbox)
        with paused(sandbox, *OTHERS):
            yield from cycle(clusters, size)
    finally:
        clusters.end()


def moves(clusters: DrClusters, sandbox: Sandbox) -> Iterator[Row]:
    """Failover from a killed cluster and from one that hangs, each after a relocation home. The controller of west leads."""
    kube = clusters.site(WEST).kube
    options = {"policy": POLICY, "cluster": EAST, "pvc_selector": {"matchLabels": {"app": WORKLOAD.name}}}
    kube.create(new_drpc(WORKLOAD.namespace, WORKLOAD.name, options))
    with controller(clusters):
        until_protected(clusters, "Deployed")
        clusters.write(EAST, "first")
        for how in (signal.SIGKILL, signal.SIGSTOP):
            pids = [process.pid for process in sandbox.status() if process.owner == EAST and process.name in ("kube-apiserver", "etcd")]
            for pid in pids:
                os.kill(pid, how)
            killed = how == signal.SIGKILL
            title = f"failover from a cluster that {'was killed' if killed else 'hangs'}"
            with timed(title.capitalize()):
                asked = ask(clusters, action="Failover", failoverCluster=WEST)
                clusters.until(lambda: clusters.runs(WEST), "the application runs on west")
            yield moved(clusters, title, f"Failover to {WEST}", asked, OWN_SECONDS if killed else OWN_SECONDS + TIMEOUT)
            if not killed:
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)
            with timed("Cluster returns"):
                clusters.start()
                until_protected(clusters, "FailedOver")
            with timed("Relocation home"):
                asked = ask(clusters, action="Relocate", preferredCluster=EAST)
                clusters.until(lambda: clusters.runs(EAST) and not clusters.runs(WEST), "the application runs on east")
                until_protected(clusters, "Relocated")
            if killed:
                yield moved(clusters, "relocation home", f"Relocate to {EAST}", asked)


def moved(clusters: DrClusters, what: str, request: str, asked: datetime.datetime, limit: float = OWN_SECONDS) -> Row:
    """The row of a move, from the request until the workload is started on its new home."""

    def stages() -> list[Step]:
        entries = [entry for entry in clusters.history() if datetime.datetime.fromisoformat(entry["written_at"]) >= asked]
        return steps([*entries, *entries[-1:]])  # the last one is complete so far

    clusters.until(lambda: "Clean" in {step.stage for step in stages()}, f"the workload of {request} is placed")
    passed = until_stage(stages(), request, "Clean")
    # Until the first step everything is our own time; a cluster that hangs is waited for there.
    begin = (passed[0].at - asked).total_seconds()
    own, total = (begin + sum(seconds) for seconds in zip(*((step.own_seconds, step.seconds) for step in passed), strict=True))
    waits = ", ".join(dict.fromkeys(gate for step in passed for gate in step.waits))
    return Row(f"{what}, without waits", f"{own:.1f} s", f"with {waits or 'no waits'}: {total:.1f} s", goal=at_most(own, limit, "s"))


def ask(clusters: DrClusters, **spec: Any) -> datetime.datetime:
    """Change the spec on west; returns when."""
    kube = clusters.site(WEST).kube
    asked = datetime.datetime.now(datetime.UTC)
    kube.patch(kube.get(RAMEN, "DRPlacementControl", WORKLOAD.name, WORKLOAD.namespace), {"spec": spec}, checked=False)
    return asked


def until_protected(clusters: DrClusters, phase: str) -> None:
    clusters.until(lambda: clusters.is_protected(WEST, phase), f"the application is {phase} and protected")


@contextlib.contextmanager
def controller(clusters: DrClusters) -> Iterator[None]:
    """The event source of west, without a rules engine."""
    command = [sys.executable, "-m", PROGRAM, "control"]
    # It reports watches of the cluster that is killed.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        if process.stdin:
            with process.stdin as pipe:
                json.dump(controller_arguments(clusters), pipe)
        yield
    finally:
        process.terminate()
        process.wait()


def cycle(clusters: DrClusters, size: int) -> Iterator[Row]:
    """A leader that reconciles so many settled applications, compared with its requests alone, and with a tenth of them."""
    with timed(f"{size} protected applications created"):
        workloads = copy_application(clusters, size)
    few = size // FEWER
    with timed(f"Cycles of a leader over {few} applications"):
        part = lead(clusters, workloads[:few])
    with timed(f"Cycles of a leader over {size} applications"):
        whole = lead(clusters, workloads)
    requests, stored, seconds = whole["requests"], whole["s3"], whole["seconds"]
    with timed(f"{requests} bare reads of the API servers, and {stored} of the bucket") as bare:
        read_bare(clusters, size, requests, stored)
    yield Row(
        f"a cycle of the leader over {size} settled applications",
        f"{seconds:.1f} s, {whole['cpu']:.1f} s CPU",
        f"as many bare reads of API servers and bucket: {bare[0]:.1f} s",
        f"{seconds / bare[0]:.1f} x",
        at_most(seconds / bare[0], 2, "x"),
    )
    one, reference = 1000 * seconds / size, 1000 * part["seconds"] / few
    yield Row(
        "its time for an application",
        f"{one:.1f} ms",
        f"of {few}: {reference:.1f} ms",
        f"{one / reference:.1f} x",
        at_most(one / reference, 1.5, "x"),
    )
    yield Row(
        "its requests for an application",
        f"{requests / size:.1f} to API servers, {stored / size:.1f} to the bucket",
        goal=at_most((requests + stored) / size, 13, "in all"),
    )
    yield from take_over(clusters, workloads, seconds)


def take_over(clusters: DrClusters, workloads: list[WorkloadRef], cycle_seconds: float) -> Iterator[Row]:
    """A controller that starts, acquires all leases, and reconciles each application for the first time."""
    release_leases(clusters, workloads)
    with timed(f"A new leader of {len(workloads)} applications"):
        found = run_program("take_over", {"size": len(workloads), "arguments": controller_arguments(clusters)})
    seconds = found["seconds"]
    yield Row(
        f"a controller starts, until it has reconciled {len(workloads)} as their leader",
        f"{seconds:.1f} s",
        f"a cycle: {cycle_seconds:.1f} s",
        f"{seconds / cycle_seconds:.1f} x",
        at_most(seconds / cycle_seconds, 10, "x"),
    )
    yield Row("its memory", f"{found['memory']} MB", f"before it starts: {found['empty']} MB", goal=at_most(found["memory"], 200, "MB"))


def lead(clusters: DrClusters, workloads: list[WorkloadRef]) -> dict[str, Any]:
    """The figures of a cycle."""
    given = {
        "kubeconfig": str(clusters.engine_kubeconfig(WEST)),
        "store": clusters.store_options(),
        "workloads": [str(workload) for workload in workloads],
        "epoch": EPOCH,
        "clusters": [str(clusters.site(name).kubeconfig) for name in CLUSTERS],
    }
    return run_program("lead", given)


def run_program(name: str, given: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", PROGRAM, name], input=json.dumps(given), stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def controller_arguments(clusters: DrClusters) -> dict[str, Any]:
    return clusters.store_options() | {"cluster": WEST, "kubernetes": {"kubeconfig": str(clusters.engine_kubeconfig(WEST))}}


def read_bare(clusters: DrClusters, size: int, requests: int, stored: int) -> None:
    """Read the VolumeReplicationGroups and states of all applications again and again, so many times in all."""
    store = connect(clusters.store_options(), READERS)

    def read(reader: int) -> None:
        client = BareClient(clusters.site(CLUSTERS[reader % len(CLUSTERS)]).kubeconfig)
        for number in range(reader, requests, READERS):
            workload = workload_of(number % size)
            client.send("GET", f"/apis/{RAMEN}/namespaces/{workload.namespace}/volumereplicationgroups/{workload.name}")
        for number in range(reader, stored, READERS):
            store.get(workload_of(number % size).key("state"))

    with ThreadPoolExecutor(READERS) as threads:
        list(threads.map(read, range(READERS)))


def main() -> int:
    build(s3=True, hypershift=False)
    with tempfile.TemporaryDirectory() as folder:
        table(list(disaster_recovery(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else THOUSAND)))
    return 0


if __name__ == "__main__":
    run_command(main)
