"""`make demo` as a newcomer runs it: it shows a cluster with two Ready nodes and leaves nothing behind, also when it is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox

DEMO = [sys.executable, "-m", "ansible_collections.openfleet.clusters.extensions.dev.demo"]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENFLEET_SANDBOX", str(tmp_path / "state"))
    return tmp_path / "state"


def processes_in(state: Path) -> list[str]:
    links = [link for link in Path("/proc").glob("[0-9]*/cwd") if os.access(link, os.R_OK)]
    return [link.parent.name for link in links if str(link.resolve()).startswith(str(state))]


def test_the_demo_shows_a_running_cluster_and_removes_it(state: Path) -> None:
    result = subprocess.run(DEMO, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count(" Ready ") >= 5
    stages = [
        "Hub with its CRDs",
        "2 nodes created",
        "Accepted",
        "NodesReady: 2 of 2",
        "Phase: Ready at https",
        "3 of 3 ready",
        "deleted",
        "Hub ended",
    ]
    places = [result.stdout.index(line) for line in stages]
    assert places == sorted(places)
    assert "What was built" in result.stdout and "Try next" in result.stdout
    assert "certificate-authority-data" not in result.stdout
    assert not state.exists() and not processes_in(state)


def test_the_demo_shows_a_cluster_by_cluster_api_and_removes_it(state: Path) -> None:
    result = subprocess.run([*DEMO, "capi"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(re.findall(r" True +v1\.36\.3", result.stdout)) == 3 + 4
    stages = ["NodesReady: 2 of 2", "Phase: Ready at https", "3 of 3 ready", "deleted", "Hub ended", "orders-demo/demo-kubeconfig"]
    places = [result.stdout.index(line) for line in stages]
    assert places == sorted(places)
    assert not state.exists() and not processes_in(state)


def test_the_demo_leaves_a_running_sandbox_as_it_was(state: Path) -> None:
    sandbox = Sandbox(state)
    sandbox.up(attached=True)
    try:
        before = sandbox.status()
        result = subprocess.run(DEMO, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "Hub is running already" in result.stdout
        assert sandbox.status() == before
        assert Access(sandbox.kubeconfig()).get("clusterorders", "-n", "orders")["items"] == []
    finally:
        sandbox.down()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_demo_leaves_no_process(state: Path, how: signal.Signals) -> None:
    demo = subprocess.Popen(DEMO, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    assert demo.stdout
    for line in demo.stdout:
        if "2 nodes created" in line:
            break
    demo.send_signal(how)
    output, _none = demo.communicate()
    assert demo.returncode != 0
    assert "Traceback" not in output
    until(lambda: not processes_in(state), "every process has ended")
