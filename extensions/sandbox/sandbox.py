"""The sandbox for its users: up, down, status, kubeconfig, logs. Used by the command line, the demo and the tests.

It never starts Kubernetes itself: the supervisor does, in a process of its own. The two communicate by files in the state folder
and by signals. The holder of that folder's lock is the supervisor.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .build import build
from .gitops.access import Gitea, GitOpsAccess
from .processes import read_json, tail, works_in
from .screen import UserError
from .supervisor import HUB, PACKAGE, DesiredState

CLUSTER_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
# Each of these files describes processes.
DESCRIPTIONS = (
    "clusters/*/cluster.json",
    "hypershift/standin.json",
    "hypershift/*/cluster.json",
    "s3/s3.json",
    "capi/capi.json",
    "replication/standin.json",
    "gitops/gitops.json",
    "gitea/gitea.json",
    "workloads/*/standin.json",
    "workloads/*/flux.json",
    "hypershift/*/flux/flux.json",
)
UP_SECONDS = 600
DOWN_SECONDS = 30


@dataclass(frozen=True)
class ProcessStatus:
    """One process of the sandbox, and the cluster or service it belongs to."""

    owner: str
    name: str
    pid: int
    running: bool
    log: Path
    address: str


@dataclass(frozen=True)
class StoreAccess:
    """How to reach the sandbox's S3."""

    endpoint: str
    region: str
    access_key: str
    secret_key: str


class Sandbox:
    """The sandbox of one state folder."""

    def __init__(self, state: Path) -> None:
        self.state = state.absolute()
        self._supervisor: subprocess.Popen[bytes] | None = None

    def up(
        self,
        clusters: Sequence[str] = (),
        s3: bool = False,
        capi: bool = False,
        replication: bool = False,
        port: int = 0,
        status_only: bool = False,
        hypershift_crds: Path | None = None,
        hub: bool = True,
        attached: bool = False,
        meanwhile: Callable[[Path], None] | None = None,
        gitops: bool = False,
        gitea: bool = False,
        workloads: Sequence[str] = (),
    ) -> None:
        """Start the hub, the named further clusters and, if selected, S3 and Cluster API; what runs already is not changed.

        `replication` connects all further clusters, and includes S3. What only uses further clusters needs no hub. `gitops` is a git
        server, a chart repository and an OCI registry, `gitea` a forge. `workloads` names clusters whose Deployments run, as those of
        hosted clusters do.

        An attached sandbox ends with the calling process, however that ends. `meanwhile` is called with the hub's kubeconfig as soon
        as it exists, while the hub still starts: for what takes as long to start as the hub does.
        """
        if sys.platform != "linux":
            raise UserError("The sandbox needs Linux, whose kernel ends its processes with their parent: use a Linux machine or VM.")
        for name in clusters:
            if not CLUSTER_NAME.fullmatch(name) or name == HUB:
                raise UserError(
                    f"A further cluster cannot be named {name!r}: use lower-case letters, digits and dashes, at most 40, and not {HUB}."
                )
        # Built here, where the user gets the progress; the supervisor then finds everything in the caches.
        build(s3 or replication, capi, hypershift=hub and hypershift_crds is None, gitops=gitops, gitea=gitea)
        with self._exclusive():
            fresh = self.holder() is None
            crds = str(hypershift_crds.absolute()) if hypershift_crds else ""
            new = DesiredState(clusters=[HUB] if hub else [], port=port, status_only=status_only, hypershift_crds=crds)
            desired = new if fresh else DesiredState.read(self.state)
            if not fresh and (
                (port and port != desired.port) or (status_only and not desired.status_only) or (crds and crds != desired.hypershift_crds)
            ):
                raise UserError(
                    "The sandbox is running with another port, mode or CRDs, which are chosen when it starts: end it first with `down`."
                )
            desired.clusters += [name for name in (*new.clusters, *clusters) if name not in desired.clusters]
            desired.s3 = desired.s3 or s3 or replication
            desired.capi = desired.capi or capi
            desired.replication = desired.replication or replication
            desired.gitops = desired.gitops or gitops
            desired.gitea = desired.gitea or gitea
            if unknown := [name for name in workloads if name not in desired.clusters]:
                raise UserError(f"No cluster is named {', '.join(unknown)}, so its workloads cannot run: start it with --cluster.")
            desired.workloads += [name for name in workloads if name not in desired.workloads]
            if fresh:
                self._start(desired, attached, meanwhile)
            else:
                self._ask(desired, meanwhile)

    def down(self, clusters: Sequence[str] = ()) -> None:
        """End the named clusters, or everything: then no process, no port and no file is left."""
        with self._exclusive():
            if not clusters:
                self._end()
                return
            desired = DesiredState.read(self.state)
            if unknown := [name for name in clusters if name == HUB or name not in desired.clusters]:
                raise UserError(f"No further cluster is named {', '.join(unknown)}: `openfleet-sandbox status` shows those that are.")
            desired.clusters = [name for name in desired.clusters if name not in clusters]
            desired.workloads = [name for name in desired.workloads if name not in clusters]
            self._ask(desired)

    def holder(self) -> int | None:
        """The process id of the supervisor, from the kernel, which no stale file can contradict."""
        layout = "hhqqi"
        try:
            with open(self.state / "sandbox.lock", "rb+") as lock:
                query = struct.pack(layout, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                kind, _whence, _start, _length, pid = struct.unpack(layout, fcntl.fcntl(lock, fcntl.F_GETLK, query))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return None if kind == fcntl.F_UNLCK else int(pid)

    def status(self) -> list[ProcessStatus]:
        """Every process that was started and not stopped, hosted clusters' included."""
        found = []
        for pattern in DESCRIPTIONS:
            for file in sorted(self.state.glob(pattern)):
                owner = read_json(file)
                for process in owner.get("processes", []):
                    running = works_in(process["pid"], self.state)
                    found.append(
                        ProcessStatus(owner["name"], process["name"], process["pid"], running, Path(process["log"]), owner.get("url", ""))
                    )
        return found

    def check(self) -> None:
        """Raise a UserError that names what is not running, with the end of its log."""
        if self.holder() is None:
            raise UserError("The sandbox is not running: start it with `openfleet-sandbox up`.")
        if crashed := [process for process in self.status() if not process.running]:
            texts = [
                f"{process.name} of {process.owner} has ended; the end of its log {process.log}:\n{tail(process.log)}"
                for process in crashed
            ]
            raise UserError("\n".join([*texts, "Run `openfleet-sandbox up` to start it again."]))

    def kubeconfig(self, cluster: str = HUB) -> Path:
        path = self._kubeconfig(cluster)
        if self.holder() is None or not path.exists():
            raise UserError(f"No cluster {cluster} is running in the sandbox {self.state}: start it with `openfleet-sandbox up`.")
        return path

    def _kubeconfig(self, cluster: str) -> Path:
        return self.state / "clusters" / cluster / "kubeconfig"

    def s3(self) -> StoreAccess:
        access = read_json(self.state / "s3" / "s3.json")
        if self.holder() is None or not access:
            raise UserError(f"No S3 is running in the sandbox {self.state}: start it with `openfleet-sandbox up --s3`.")
        return StoreAccess(access["url"], access["region"], access["access_key"], access["secret_key"])

    def gitops(self) -> GitOpsAccess:
        folder = self.state / "gitops"
        description = read_json(folder / "gitops.json")
        if self.holder() is None or not description:
            raise UserError(f"No git server is running in the sandbox {self.state}: start it with `openfleet-sandbox up --gitops`.")
        return GitOpsAccess.of(folder, description)

    def gitea(self) -> Gitea:
        description = read_json(self.state / "gitea" / "gitea.json")
        if self.holder() is None or not description:
            raise UserError(f"No Gitea is running in the sandbox {self.state}: start it with `openfleet-sandbox up --gitea`.")
        return Gitea(description["url"], description["username"], description["token"])

    def logs(self) -> dict[str, Path]:
        """The log of every process, by `<owner>/<process>`."""
        logs = {f"{process.owner}/{process.name}": process.log for process in self.status()}
        return {"sandbox/supervisor": self.state / "supervisor.log"} | logs if self.state.exists() else logs

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """One `up` or `down` at a time. The lock is on the parent folder, so that it leaves no file."""
        self.state.parent.mkdir(parents=True, exist_ok=True)
        parent = os.open(self.state.parent, os.O_RDONLY)
        try:
            fcntl.flock(parent, fcntl.LOCK_EX)
            yield
        finally:
            os.close(parent)

    def _start(self, desired: DesiredState, attached: bool, meanwhile: Callable[[Path], None] | None) -> None:
        """Start the supervisor in a fresh folder; on failure nothing is left of either."""
        self._clear()
        self.state.mkdir(mode=0o700)
        (self.state / "sandbox.lock").touch()
        desired.request = secrets.token_hex(8)
        desired.write(self.state)
        try:
            with open(self.state / "supervisor.log", "ab") as log:
                self._supervisor = subprocess.Popen(
                    [sys.executable, "-m", f"{PACKAGE}.supervisor", "--state", str(self.state), *(["--attached"] if attached else [])],
                    stdin=subprocess.PIPE if attached else subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            self._until_answered(desired.request, meanwhile)
        except BaseException:
            self._end()
            raise

    def _ask(self, desired: DesiredState, meanwhile: Callable[[Path], None] | None = None) -> None:
        """Write the desired state, signal the supervisor, and wait until it has reconciled it."""
        holder = self.holder()
        if holder is None:
            raise UserError(f"The sandbox's supervisor has ended; the end of its log:\n{tail(self.state / 'supervisor.log')}")
        desired.request = secrets.token_hex(8)
        desired.write(self.state)
        os.kill(holder, signal.SIGHUP)
        self._until_answered(desired.request, meanwhile)

    def _until_answered(self, request: str, meanwhile: Callable[[Path], None] | None) -> None:
        def answer() -> dict[str, Any]:
            return read_json(self.state / "sandbox.json")

        def over() -> bool:
            ended = self._supervisor.poll() is not None if self._supervisor else self.holder() is None
            return ended or answer().get("answered") == request

        if meanwhile:
            kubeconfig = self._kubeconfig(HUB)
            _within(UP_SECONDS, lambda: kubeconfig.exists() or over())
            if kubeconfig.exists():
                meanwhile(kubeconfig)
        if not _within(UP_SECONDS, over):
            raise UserError(f"The sandbox is not ready after {UP_SECONDS} s; the end of its log:\n{tail(self.state / 'supervisor.log')}")
        if answer().get("answered") != request:
            raise UserError(f"The sandbox's supervisor has ended; the end of its log:\n{tail(self.state / 'supervisor.log')}")
        if error := answer().get("error"):
            raise UserError(str(error))

    def _end(self) -> None:
        pids = [process.pid for process in self.status()]
        # A supervisor of ours that is still starting does not hold the lock yet.
        owner = self._supervisor.pid if self._supervisor else self.holder()
        if owner is not None:
            _signal(owner, signal.SIGTERM)
            if not _within(DOWN_SECONDS, lambda: not self._alive(owner)):
                _signal(owner, signal.SIGKILL)
                _within(DOWN_SECONDS, lambda: not self._alive(owner))
        # After a killed supervisor the kernel ends the rest; this only waits until it has.
        if not _within(DOWN_SECONDS, lambda: not any(works_in(pid, self.state) for pid in pids)):
            raise UserError(f"Processes of the sandbox {self.state} do not end: {pids}; inspect them with ps.")
        self._supervisor = None
        self._clear()

    def _alive(self, owner: int) -> bool:
        return self._supervisor.poll() is None if self._supervisor else self.holder() == owner

    def _clear(self) -> None:
        """Remove the state folder, if it is one: a folder with other files in it is never changed."""
        if self.state.exists() and not self.state.is_dir():
            raise UserError(f"{self.state} is not a folder: choose another with --state.")
        if self.state.exists() and any(self.state.iterdir()) and not (self.state / "sandbox.lock").exists():
            raise UserError(f"{self.state} holds files that are not a sandbox's: choose another folder with --state.")
        shutil.rmtree(self.state, ignore_errors=True)


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _signal(pid: int, what: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, what)
