"""A rules engine on the hub of a sandbox, for `make demo` and `make serve`. Its files and its log are in a folder of the sandbox."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import urllib3

from ..sandbox.access import until
from ..sandbox.processes import write_private
from ..sandbox.sandbox import Sandbox
from ..sandbox.screen import UserError, stage
from .rules_engine import RulesEngine, end_in_order, engine_arguments, engine_environment

RULEBOOK = "openfleet.clusters.cluster_fulfillment"
START_SECONDS = 120


class Engine(RulesEngine):
    """The one rules engine of a sandbox. Webhooks reach it at `url` with the token in `token_file`."""

    def __init__(self, sandbox: Sandbox, port: int) -> None:
        super().__init__(sandbox.state / "engine")
        self._sandbox = sandbox
        self.token_file = self.folder / "token"
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._lock: int | None = None

    def start(self, kubeconfig: Path) -> None:
        """Start it, and do not wait until it is ready. An engine that was killed is started again."""
        self._lock_folder()
        token = secrets.token_urlsafe(32)
        write_private(self.token_file, token)
        variables = {"event_source": {"webhook": {"port": self.port, "token": token}}}
        environment = engine_environment(self.folder, K8S_AUTH_KUBECONFIG=str(kubeconfig))
        self.launch(engine_arguments(self.folder, RULEBOOK, variables), environment)

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
        super().stop()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def check(self) -> None:
        """Raise a UserError if it has ended, with the end of its log, or if its hub has."""
        if self._sandbox.holder() is None:
            raise UserError("The sandbox has ended: it was stopped by `openfleet-sandbox down`, or killed.")
        if not self.is_running:
            raise UserError(f"The rules engine has ended by itself; the end of its log:\n{self.log_tail()}")

    def is_ready(self) -> bool:
        """Whether it follows the hub and is the leader."""
        self.check()
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            health, metrics = (urllib3.request("GET", f"{self.url}/{page}", retries=False, timeout=5) for page in ("healthz", "metrics"))
            return health.status == 200 and b"\nopenfleet_orders_leader 1" in metrics.data
        return False

    def until_ready(self) -> None:
        try:
            until(self.is_ready, "the rules engine leads and follows the hub", START_SECONDS)
        except UserError as problem:
            if self.is_running:
                raise UserError(f"{problem} The end of its log:\n{self.log_tail()}") from None
            raise

    def post(self, endpoint: str, order: dict[str, Any], token: str = "") -> int:
        """Send a webhook, and return the status of the response."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return urllib3.request("POST", f"{self.url}/{endpoint}", body=json.dumps(order), headers=headers, retries=False, timeout=10).status


@contextlib.contextmanager
def running_engine(sandbox: Sandbox, port: int, capi: bool = False) -> Iterator[Engine]:
    """A hub and an engine on it. A hub that runs already is used and stays; otherwise one is started and ends with the engine."""
    end_in_order()
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
