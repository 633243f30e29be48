"""`make demo` and `make serve` as a newcomer runs them: orders become clusters, and nothing is left behind, also when they are killed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import urllib3
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port, working_in
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names

DEMO = [sys.executable, "-m", "ansible_collections.openfleet.clusters.extensions.dev.demo"]
SERVE = [sys.executable, "-m", "ansible_collections.openfleet.clusters.extensions.dev.serve"]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENFLEET_SANDBOX", str(tmp_path / "state"))
    return tmp_path / "state"


def engines_in(state: Path) -> list[int]:
    found = []
    for pid in working_in(state):
        with contextlib.suppress(OSError):  # it has ended since
            if b"bin/ansible-rulebook" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def started(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """What the process has said, up to the line with these words."""
    assert process.stdout
    seen = ""
    for line in process.stdout:
        seen += line
        if words in line:
            return seen
    raise AssertionError(f"It never said {words!r}:\n{seen}")


def test_the_demo_shows_a_running_cluster_and_removes_it(state: Path) -> None:
    result = subprocess.run(DEMO, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count(" Ready ") >= 5
    stages = [
        "Hub with its CRDs",
        "cluster_fulfillment follows it",
        "2 nodes created",
        "controller - INFO - provision of orders/demo",
        "Accepted",
        "NodesReady: 2 of 2",
        "Phase: Ready at https",
        "Order changed",
        "3 of 3 nodes ready",
        "delete-hosted-cluster without a token: 401",
        "delete-hosted-cluster with the token: 202",
        "controller - INFO - delete of orders/demo",
        "order deleted",
        "Rulebook ended",
        "Hub ended",
        "What was built: a hub",
        "Try next",
        "  make serve\n",
    ]
    positions = [result.stdout.index(line) for line in stages]
    assert positions == sorted(positions)
    assert result.stdout.endswith("The tutorial explains each step: docs/tutorial.md\n")
    assert "certificate-authority-data" not in result.stdout
    assert not state.exists() and not working_in(state)


def test_the_demo_shows_a_cluster_by_cluster_api_and_removes_it(state: Path) -> None:
    result = subprocess.run([*DEMO, "capi"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(re.findall(r" True +v1\.36\.3", result.stdout)) == 3 + 4
    stages = [
        "NodesReady: 2 of 2",
        "Phase: Ready at https",
        "3 of 3 nodes ready",
        "order deleted",
        "Hub ended",
        f"{Names().working_namespace('orders', 'demo')}/demo-kubeconfig",
    ]
    positions = [result.stdout.index(line) for line in stages]
    assert positions == sorted(positions)
    assert not state.exists() and not working_in(state)


def test_a_demo_whose_engine_dies_says_so_and_leaves_a_running_sandbox_as_it_was(state: Path) -> None:
    sandbox = Sandbox(state)
    sandbox.up(attached=True)
    try:
        before = sandbox.status()
        demo = started(DEMO)
        seen = read_until(demo, "Phase: Ready")
        assert "Hub is running already" in seen
        os.kill(engines_in(state)[0], signal.SIGKILL)
        rest, _none = demo.communicate()
        assert demo.returncode == 1
        assert "The rules engine has ended by itself; the end of its log:" in rest, rest
        assert rest.index("started again") < rest.index("order deleted"), rest
        assert sandbox.status() == before
        assert Access(sandbox.kubeconfig()).get("clusterorders", "-n", "orders")["items"] == []
        assert not (state / "engine").exists() and not engines_in(state)
    finally:
        sandbox.down()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_demo_interrupted_in_a_run_leaves_no_process(state: Path, how: signal.Signals) -> None:
    demo = started(DEMO)
    read_until(demo, "provision of orders/demo")
    demo.send_signal(how)
    output, _none = demo.communicate()
    assert demo.returncode != 0
    assert "Traceback" not in output
    until(lambda: not working_in(state), "every process has ended")
    assert how == signal.SIGKILL or not state.exists()


def test_serve_reconciles_orders_until_it_is_interrupted(state: Path) -> None:
    port = free_port()
    serving = started([*SERVE, f"--port={port}"])
    shown = read_until(serving, "The log of the rulebook")
    assert f"KUBECONFIG={Sandbox(state).kubeconfig()}" in shown and f"http://127.0.0.1:{port}" in shown
    hub, token = Access(Sandbox(state).kubeconfig()), state / "engine" / "token"
    assert str(token) in shown
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    secret = token.read_text()
    page = re.search(r"The page of this hub: (\S+)", shown)
    assert page is not None
    assert b"<title>openfleet</title>" in urllib3.request("GET", page[1], retries=False).data
    assert hub.kubectl("create", "token", "tenant", "-n", "orders").stdout
    taken = subprocess.run([*SERVE, f"--port={port}"], capture_output=True, text=True, check=False)
    assert taken.returncode == 1 and taken.stderr.startswith(f"✘ Port {port} is in use") and not taken.stdout
    second = subprocess.run([*SERVE, f"--port={free_port()}"], capture_output=True, text=True, check=False)
    assert second.returncode == 1 and "works on this sandbox already" in second.stderr
    hub.kubectl("apply", "-f", "docs/examples/cluster_order.yaml")
    hub.wait("clusterorder/demo", "-n", "orders", "--for=jsonpath={.status.phase}=Ready")
    serving.send_signal(signal.SIGINT)
    rest, _none = serving.communicate()
    assert serving.returncode == 0, rest
    assert "provision of orders/demo" in rest and "PLAY RECAP" in rest
    assert secret not in shown + rest
    assert not state.exists() and not working_in(state)
