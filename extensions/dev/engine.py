"""A rules engine on the hub of a sandbox, for `make demo` and `make serve`. Its files and its log are in a folder of the sandbox.

Its runs do not outlive it: `stop` ends them too, and the kernel ends the engine with the process that started it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import urllib3

from ..sandbox.access import until
from ..sandbox.launcher import die_with_me
from ..sandbox.processes import tail, working_in, write_json, write_private
from ..sandbox.sandbox import Sandbox
from ..sandbox.screen import UserError, stage

ROOT = Path(__file__).resolve().parents[2]
STATE = Path(os.environ.get("OPENFLEET_SANDBOX", ROOT / ".sandbox"))
RULEBOOK = "openfleet.clusters.cluster_fulfillment"
PROGRAMS = Path(sys.executable).parent
START_SECONDS = 120
GRACE_SECONDS = 15


def engine_arguments(folder: Path, source: dict[str, Any]) -> list[str]:
    """The arguments of an engine that runs the rulebook with these settings of its source. A file in the folder has secrets."""
    write_json(folder / "inventory.yml", {"all": {"hosts": {"localhost": {"ansible_connection": "local"}}}})
    write_json(folder / "variables.yml", {"event_source": source})
    return ["-r", RULEBOOK, "-i", str(folder / "inventory.yml"), "--vars", str(folder / "variables.yml")]


def engine_environment(folder: Path, kubeconfig: Path) -> dict[str, str]:
    return os.environ | {
        "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",  # it finds collections by ansible-galaxy
        "TMPDIR": str(folder),
        "K8S_AUTH_KUBECONFIG": str(kubeconfig),
        "ANSIBLE_NOCOLOR": "1",
    }


class Engine:
    """The one rules engine of a sandbox. Webhooks reach it at `url` with the token in `token_file`."""

    def __init__(self, sandbox: Sandbox, port: int) -> None:
        self._sandbox = sandbox
        self.folder = sandbox.state / "engine"
        self.token_file = self.folder / "token"
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._log = self.folder / "engine.log"
        self._shown = 0
        self._lock: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    # Start and stop

    def start(self, kubeconfig: Path) -> None:
        """Start it, and do not wait until it is ready. An engine that was killed is started again."""
        self._lock_folder()
        token = secrets.token_urlsafe(32)
        write_private(self.token_file, token)
        arguments = engine_arguments(self.folder, {"webhook": {"port": self.port, "token": token}})
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                die_with_me([PROGRAMS / "ansible-rulebook", *arguments, "-v"]),
                env=engine_environment(self.folder, kubeconfig),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C is for the calling process, which stops the engine in order.
                start_new_session=True,
            )

    def _lock_folder(self) -> None:
        if self._lock is None:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            lock = os.open(self.folder, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
                raise UserError("A rules engine works on this sandbox already: end it first, with Ctrl-C where it was started.") from None
            self._lock = lock

    def stop(self) -> None:
        """End it, and the runs that remain of a killed one."""
        if self._process:
            self._process.terminate()
            try:
                self._process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        while left := working_in(self.folder):  # one of them may be starting another
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def was_started(self) -> bool:
        return self._process is not None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def check(self) -> None:
        """Raise a UserError if it has ended, with the end of its log, or if its hub has."""
        if self._sandbox.holder() is None:
            raise UserError("The sandbox has ended: it was stopped by `openfleet-sandbox down`, or killed.")
        if not self.is_running:
            raise UserError(f"The rules engine has ended by itself; the end of its log:\n{tail(self._log)}")

    def is_ready(self) -> bool:
        """Whether it follows the hub and is the leader."""
        self.check()
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            health, metrics = (urllib3.request("GET", f"{self.url}/{page}", retries=False, timeout=5) for page in ("healthz", "metrics"))
            return health.status == 200 and b"\nopenfleet_orders_leads 1" in metrics.data
        return False

    def until_ready(self) -> None:
        try:
            until(self.is_ready, "the rules engine leads and follows the hub", START_SECONDS)
        except UserError as problem:
            if self.is_running:
                raise UserError(f"{problem} The end of its log:\n{tail(self._log)}") from None
            raise

    # Its log and its webhooks

    def new_lines(self) -> list[str]:
        """The lines of its log since the last call."""
        with open(self._log, "rb") as log:
            log.seek(self._shown)
            new = log.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._shown += len(whole)
        return whole.decode(errors="replace").splitlines()

    def post(self, endpoint: str, order: dict[str, Any], token: str = "") -> int:
        """Send a webhook, and return the status of the response."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return urllib3.request("POST", f"{self.url}/{endpoint}", body=json.dumps(order), headers=headers, retries=False, timeout=10).status


@contextlib.contextmanager
def running_engine(sandbox: Sandbox, port: int, capi: bool = False) -> Iterator[Engine]:
    """A hub and an engine on it. A hub that runs already is used and stays; otherwise one is started and ends with the engine."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    ours = sandbox.holder() is None
    engine = Engine(sandbox, port)
    try:
        with stage("Hub with its CRDs" if ours else "Hub is running already"):
            # Side by side, because both take several seconds to start.
            sandbox.up(attached=ours, capi=capi, meanwhile=engine.start)
        with stage(f"Rulebook {RULEBOOK} follows it"):
            engine.until_ready()
        yield engine
    finally:
        try:
            if engine.was_started:
                with stage("Rulebook ended, with its runs"):
                    engine.stop()
        finally:
            if ours:
                with stage("Hub ended: no process, no port, no file is left"):
                    sandbox.down()
