"""Two clusters of a sandbox with disaster recovery between them, for `make demo-dr`: the engine of each, their bucket, their workload."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import boto3

from ...plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ...plugins.module_utils.coordination.health import ClusterHealth
from ...plugins.module_utils.coordination.state import History
from ...plugins.module_utils.s3.store import ObjectStore, connect
from ..sandbox.access import Access, until
from ..sandbox.processes import write_json
from ..sandbox.replication.application import Application
from ..sandbox.replication.faults import FAULT
from ..sandbox.replication.recovery import prepare
from ..sandbox.sandbox import Sandbox
from ..sandbox.screen import Stage, UserError, stage
from .dr_timeline import Entry, Mark
from .rules_engine import PROGRAMS, RulesEngine, end_in_order, engine_arguments, engine_environment

EAST, WEST = CLUSTERS = ("east", "west")
WORKLOAD = WorkloadRef("shop", "database")
POLICY, BUCKET = "east-west", "coordination"
RULEBOOK = "openfleet.clusters.dr_placement"
WAIT_SECONDS = 300
DETAILS = ": Since "  # of what a workload waits for; they would fill the screen
Result = TypeVar("Result")


class DrClusters:
    """The clusters. `marks` has what happened to them, for the timeline."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.engines = {name: RulesEngine(sandbox.state / f"engine-{name}") for name in CLUSTERS}
        self.marks: list[Mark] = []
        self._sandbox = sandbox
        self._application = Application(WORKLOAD.name, WORKLOAD.namespace)
        self._kubeconfigs: dict[str, Any] = {}

    def start(self) -> None:
        """Start the clusters that do not run, the store, and the replication."""
        self._sandbox.up(clusters=CLUSTERS, replication=True, hub=False, attached=True)

    def prepare(self) -> None:
        s3 = self._sandbox.s3()
        keys = {"aws_access_key_id": s3.access_key, "aws_secret_access_key": s3.secret_key}
        boto3.client("s3", endpoint_url=s3.endpoint, region_name=s3.region, **keys).create_bucket(Bucket=BUCKET)
        self._kubeconfigs = prepare({name: self.site(name) for name in CLUSTERS}, POLICY)

    def kill(self, name: str) -> None:
        """End everything of a cluster as the loss of its site does: its engine too, which releases nothing."""
        for process in self._sandbox.status():
            if process.owner == name:
                os.kill(process.pid, signal.SIGKILL)
        self.engines[name].kill()
        self.mark(f"{name} is killed with -9")

    def end(self) -> None:
        self._sandbox.down()

    def site(self, name: str) -> Access:
        return Access(self._sandbox.kubeconfig(name))

    def mark(self, what: str) -> None:
        self.marks.append(Mark(datetime.datetime.now(datetime.UTC), what))

    # The engines

    def start_engine(self, name: str) -> None:
        """Start the rulebook for a cluster, and wait until it reports the health of that cluster in the bucket."""
        engine, s3, known = self.engines[name], self._sandbox.s3(), self._reporter(name)
        engine.folder.mkdir(mode=0o700, exist_ok=True)
        variables = {
            "dr_bucket": BUCKET,
            "dr_store": {"endpoint_url": s3.endpoint, "region": s3.region},
            "dr_this_cluster": name,
            "hub_kubeconfig": str(self.engine_kubeconfig(name)),
        }
        engine.launch(engine_arguments(engine.folder, RULEBOOK, variables), self._environment(engine.folder))
        self.until(lambda: self._reporter(name) != known, f"the engine of {name} reports its cluster")

    def engine_kubeconfig(self, name: str) -> Path:
        """How the engine of a cluster connects to it: with the permissions of the shipped roles."""
        file = self._sandbox.state / f"{name}.kubeconfig"
        write_json(file, self._kubeconfigs[name])
        return file

    def until(self, condition: Callable[[], Result], what: str) -> Result:
        """Wait for it, as long as the engines run."""

        def poll() -> Result:
            for name, engine in self.engines.items():
                if engine.was_started and not engine.is_running:
                    raise UserError(f"The rules engine of {name} has ended by itself; the end of its log:\n{engine.log_tail()}")
            return condition()

        return until(poll, what, WAIT_SECONDS)

    def _reporter(self, name: str) -> str:
        return ClusterHealth(self._store(), name).observe().reporter

    # The bucket

    def history(self) -> list[Entry]:
        return History(DocumentStore(self._store(), WORKLOAD.identity()), WORKLOAD).entries()

    def store_options(self) -> dict[str, str]:
        s3 = self._sandbox.s3()
        keys = {"access_key": s3.access_key, "secret_key": s3.secret_key}
        return {"bucket": BUCKET, "endpoint_url": s3.endpoint, "region": s3.region, **keys}

    def _store(self) -> ObjectStore:
        return connect(self.store_options())

    def _environment(self, folder: Path, **more: str) -> dict[str, str]:
        s3 = self._sandbox.s3()
        keys = {"AWS_ACCESS_KEY_ID": s3.access_key, "AWS_SECRET_ACCESS_KEY": s3.secret_key}
        return engine_environment(folder, AWS_ENDPOINT_URL_S3=s3.endpoint, AWS_REGION=s3.region, **keys, **more)

    # The workload

    def create_application(self) -> None:
        """On each cluster, with no replicas where it does not run."""
        for name, replicas in ((EAST, 1), (WEST, 0)):
            kube = self.site(name).kube
            kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WORKLOAD.namespace}}, force=True)
            for item in self._application.objects(replicas):
                kube.apply(item, force=True)

    def run_playbook(self, shown: Stage, name: str, cluster: str, variables: dict[str, Any]) -> None:
        """Run a playbook of this collection on a cluster, and show what it reports of the workload."""
        command = [str(PROGRAMS / "ansible-playbook"), f"openfleet.clusters.{name}", "-e", json.dumps(variables)]
        environment = self._environment(self.engines[cluster].folder, KUBECONFIG=str(self._sandbox.kubeconfig(cluster)))
        said = last = ""
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            for line in process.stdout or ():
                said += line
                if line.startswith(f"{WORKLOAD}: ") and (short := line.split(DETAILS)[0].rstrip()) != last:
                    shown.say(f"    {short}")
                    last = short
        if process.returncode:
            raise UserError(f"The playbook {name} has failed:\n{said}")

    def write(self, cluster: str, *texts: str) -> None:
        for text in texts:
            self._application.write(self.site(cluster).kube, cluster, text)

    def read(self, cluster: str) -> list[str]:
        return self._application.read(self.site(cluster).kube)

    def runs(self, cluster: str) -> bool:
        return self._application.runs(self.site(cluster).kube)

    def set_fault(self, cluster: str, fault: str) -> None:
        """Let the replication from a cluster behave otherwise; an empty fault ends that."""
        kube = self.site(cluster).kube
        namespace = kube.get("v1", "Namespace", WORKLOAD.namespace)
        kube.patch(namespace, {"metadata": {"annotations": {FAULT: fault or None}}}, checked=False)

    def phase(self, cluster: str) -> str:
        """The phase that a cluster's DRPlacementControl shows."""
        return str(self._status(cluster).get("phase", ""))

    def is_protected(self, cluster: str, phase: str) -> bool:
        """Whether a cluster's DRPlacementControl shows that a request has reached its last phase, and that its peer is ready."""
        status = self._status(cluster)
        ready = any(item["type"] == "PeerReady" and item["status"] == "True" for item in status.get("conditions", ()))
        return ready and (status["phase"], status["progression"]) == (phase, "Completed")

    def _status(self, cluster: str) -> dict[str, Any]:
        drpc = self.site(cluster).get("drplacementcontrol", WORKLOAD.name, "-n", WORKLOAD.namespace) or {}
        found: dict[str, Any] = drpc.get("status", {})
        return found


@contextlib.contextmanager
def running_clusters(sandbox: Sandbox) -> Iterator[DrClusters]:
    """The clusters with all that disaster recovery needs, and an engine for each. All of it ends afterwards."""
    end_in_order()
    clusters = DrClusters(sandbox)
    try:
        with stage("Clusters east and west, an S3 server, replication"):
            clusters.start()
        with stage("Permissions, registry of peers and DRPolicy on both"):
            clusters.prepare()
        for name in CLUSTERS:
            with stage(f"Rulebook {RULEBOOK} for {name}"):
                clusters.start_engine(name)
        yield clusters
    finally:
        try:
            if any(engine.was_started for engine in clusters.engines.values()):
                with stage("Rulebooks ended"):
                    for engine in clusters.engines.values():
                        engine.stop()
        finally:
            with stage("Clusters ended: no process, no port, no file is left"):
                clusters.end()
