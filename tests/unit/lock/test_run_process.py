"""The process of a run and the engine that started it: neither is ever taken for another process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import run_process
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.run_process import (
    EngineEnded,
    RunEnded,
    RunProcess,
    announce_engine,
    engine_identity,
)


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield started
    started.kill()
    started.wait()


def test_a_run_takes_no_lock_once_its_engine_has_ended(process: subprocess.Popen[bytes]) -> None:
    identity = engine_identity(process.pid)
    run = RunProcess(os.getpid(), identity)
    run.require()
    process.kill()
    process.wait()
    with pytest.raises(EngineEnded, match=f"The rules engine with the process id {process.pid}, which started this run, has ended"):
        run.require()
    with pytest.raises(EngineEnded):
        RunProcess(os.getpid(), identity)


def test_a_run_that_has_ended_is_reported_first(process: subprocess.Popen[bytes]) -> None:
    run = RunProcess(process.pid, engine_identity(os.getpid()))
    run.require()
    process.kill()
    process.wait()
    with pytest.raises(RunEnded, match=f"The playbook run with the process id {process.pid} has ended"):
        run.require()


def test_a_later_process_with_the_id_of_the_engine_is_not_the_engine() -> None:
    pid, _started, namespace = engine_identity(os.getpid()).split()
    with pytest.raises(EngineEnded):
        RunProcess(os.getpid(), f"{pid} 1 {namespace}")


@pytest.mark.parametrize("engine", ["", "x", "1 2", "x y z", f"{2**22 + 1} 1 pid:[1]"])
def test_a_run_without_an_engine_on_this_machine_depends_on_none(engine: str) -> None:
    """The last is an engine in another container, whose process ids are not those of this one."""
    run = RunProcess(os.getpid(), engine)
    run.require()
    assert run.handles == (run.handle,)


def test_an_engine_names_itself_to_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(run_process.ENGINE, "")
    announce_engine()
    command = [sys.executable, "-c", f"import os; print(os.environ['{run_process.ENGINE}'])"]
    seen = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert seen.strip() == engine_identity(os.getpid())
