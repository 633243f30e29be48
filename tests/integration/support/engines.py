"""The rules engine as a site runs it: a real `ansible-rulebook` process with the event source in it, and playbooks below it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import urllib3
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port

from .orders import Orders

TOKEN = "only-for-tests"  # noqa: S105 - made up
RULEBOOK = "openfleet.clusters.cluster_fulfillment"
COLLECTIONS = Path(sys.prefix) / "collections"
START_SECONDS = 300
ANSWER_SECONDS = 120  # what a busy machine may need
MARK = "OPENFLEET_TEST_ENGINE"


class Engine:
    """One rules engine on a hub. `folder` is its home, and has a folder `collections` for what a site adds."""

    def __init__(
        self,
        hub: Access,
        folder: Path,
        rulebook: str = RULEBOOK,
        options: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        hooks: Mapping[str, list[str]] | None = None,
        source: Mapping[str, Any] | None = None,
        **variables: Any,
    ) -> None:
        self.port = free_port()
        self.health_port = self.port
        self.log = folder / "engine.log"
        self.starts = 0
        self._folder = folder
        self._mark = f"{MARK}={os.urandom(8).hex()}"
        self.environment = self._clean_environment(hub) | dict(environment or {})
        settings = {"max_in_flight": 2} | dict(source or {})
        settings["webhook"] = {"port": self.port} | settings.get("webhook", {})
        (folder / "vars.yml").write_text(json.dumps({"event_source": settings, "webhook_token": TOKEN} | variables), encoding="utf-8")
        inventory = {"all": {"hosts": {"localhost": {"ansible_connection": "local"}}, "vars": {"cluster_hooks": dict(hooks or {})}}}
        (folder / "inventory.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
        self._command = [str(Path(sys.executable).parent / "ansible-rulebook"), "-r", rulebook, "-i", str(folder / "inventory.yml")]
        self._command += ["--vars", str(folder / "vars.yml"), "-v", *options]
        self.process: subprocess.Popen[bytes] | None = None
        self._senders = urllib3.PoolManager(maxsize=32, retries=False)

    def _clean_environment(self, hub: Access) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE", "EDA_"))}
        return inherited | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",  # it asks ansible-galaxy where collections are
            "HOME": str(self._folder),
            "TMPDIR": str(self._folder),
            "KUBECONFIG": str(hub.kubeconfig),
            "ANSIBLE_COLLECTIONS_PATH": os.pathsep.join([str(self._folder / "collections"), str(COLLECTIONS)]),
            "ANSIBLE_NOCOLOR": "1",
        }

    def add_options(self, *options: str) -> None:
        self._command += options

    # Its life

    def start(self, wait: bool = True) -> Engine:
        name, _equals, value = self._mark.partition("=")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self._command, env=self.environment | {name: value}, cwd=self._folder, stdout=log, stderr=log, start_new_session=True
            )
        self.starts += 1
        if wait:
            until(self.is_ready, f"the engine follows the hub; its log is {self.log}", START_SECONDS)
        return self

    def is_ready(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            raise AssertionError(self.text())
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            answer = urllib3.request("GET", f"http://127.0.0.1:{self.health_port}/healthz", retries=False, timeout=5)
            return answer.status == 200 and self.metric("openfleet_orders_leader") == 1
        return False

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """Kill the engine alone, as a full machine would. Its runs continue."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def wait(self) -> int | None:
        """Its exit code, once it has ended."""
        return self.process.wait(START_SECONDS) if self.process else None

    def end(self, how: signal.Signals) -> int | None:
        """Ask it to end, and return its exit code."""
        if self.process:
            self.process.send_signal(how)
        return self.wait()

    def stop(self) -> None:
        """The engine, and whatever is left of its runs."""
        self.kill()
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def processes(self, command: str = "") -> list[int]:
        """All processes of its runs, or those with that word in their command line."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self._mark.encode() in (folder / "environ").read_bytes().split(b"\0") and (
                    command.encode() in (folder / "cmdline").read_bytes()
                ):
                    found.append(int(folder.name))
        return found

    def playbooks(self) -> list[int]:
        """The ansible-playbook processes that run now, their forks among them."""
        return self.processes("bin/ansible-playbook")

    # What it says

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def said(self, pattern: str) -> list[str]:
        return re.findall(pattern, self.text(), re.MULTILINE)

    def actions(self, order: str) -> list[str]:
        """The actions that were asked for of one order, in their order."""
        lines = re.findall(r"controller - INFO - (\w+) of (.*)$", self.text(), re.MULTILINE)
        return [action for action, orders in lines if order in orders.split(", ")]

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's values that have these labels."""
        text = urllib3.request("GET", f"http://127.0.0.1:{self.health_port}/metrics", timeout=ANSWER_SECONDS).data.decode()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        lines = [line for line in text.splitlines() if re.match(rf"{name}(\{{|\s)", line)]
        return sum(float(line.rpartition(" ")[2]) for line in lines if all(entry in line for entry in wanted))

    # What a controller sends

    def post(self, endpoint: str, order: Any, token: str = TOKEN, **settings: Any) -> int:
        body = order if isinstance(order, bytes) else json.dumps(order).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        url = f"http://127.0.0.1:{self.port}/{endpoint}"
        return self._senders.request("POST", url, body=body, headers=headers, **{"timeout": ANSWER_SECONDS} | settings).status

    def cut_off(self, endpoint: str, order: Any, share: float, after: float = 0.0) -> None:
        """The same from a sender whose connection breaks, so many seconds after this share of the body was sent."""
        body = json.dumps(order).encode()
        head = f"POST /{endpoint} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.port)) as sender:
            sender.sendall(head.encode() + body[: int(len(body) * share)])
            time.sleep(after)


class AtWork(SimpleNamespace):
    """An engine that reconciles the orders of one namespace, and what else a test has."""

    hub: Access
    orders: Orders
    engine: Engine

    def until_phase(self, phase: str, name: str) -> None:
        until(lambda: self.orders.status(name).get("phase") == phase, f"{name} is {phase}; the log is {self.engine.log}", 600)


@contextlib.contextmanager
def running(engine: Engine) -> Iterator[Engine]:
    """The engine for as long as the body takes."""
    try:
        yield engine.start()
    finally:
        engine.stop()
