"""Processes that contend on a real S3 server through a proxy with random faults: no two of them ever act at once.

Their clocks run at different speeds. Leaders are stopped during their work until another process leads, or killed.
OPENFLEET_SOAK multiplies the rounds.
"""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import LockRecord, read_lock
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect

from ..support.s3_proxy import Fault, Proxy

Options = dict[str, Any]
Process = subprocess.Popen[str]
WORKLOAD = WorkloadRef("orders", "demo")
TTL = 3.0
# The speed of each contender's clock, which counts the ttl. The margin of a lease covers a fifth.
SPEEDS = {"slow": 0.85, "fast": 1.15, "fast 2": 1.15}
# The proxy holds back no request for longer, in seconds.
MAX_DELAY = 1.0


def random_faults(seed: int) -> Callable[[str], Fault | None]:
    """A fault for one of four requests."""
    source = random.Random(seed)  # noqa: S311 - repeatable

    def fault(method: str) -> Fault | None:
        if source.random() > 0.25:
            return None
        reads = {"forwarded": False} if method == "GET" else {}
        return source.choice(
            [
                Fault(),
                Fault(forwarded=False),
                Fault(status=500, **reads),
                Fault(status=503, forwarded=False),
                Fault(status=412 if method == "PUT" else 500),
                Fault(status=409 if method == "PUT" else 500, forwarded=False),
                Fault(hold=0.3),
                Fault(hold=0.2, after=source.uniform(0.2, MAX_DELAY)),
            ]
        )

    return fault


@contextmanager
def contenders(folder: Path, options: Options) -> Iterator[dict[str, Process]]:
    """All contenders. The output of each is in a file of its name in the folder."""
    processes: dict[str, Process] = {}
    try:
        for instance, speed in SPEEDS.items():
            with (folder / instance).open("w") as output:
                program = [sys.executable, str(Path(__file__).parents[1] / "support" / "s3_contender.py")]
                processes[instance] = process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=output, text=True)
            workload = [WORKLOAD.namespace, WORKLOAD.name]
            settings = {"options": options, "workload": workload, "instance": instance, "speed": speed, "ttl": TTL}
            assert process.stdin
            with process.stdin as pipe:
                json.dump(settings, pipe)
        yield processes
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def until_another_leads(documents: DocumentStore, lock: LockRecord) -> None:
    until(lambda: (found := read_lock(documents, WORKLOAD)).held and found.epoch > lock.epoch, "another process leads")


def leader_at_work(documents: DocumentStore, names: set[str]) -> LockRecord:
    """The lock of one of these processes once it has written the state."""

    def at_work() -> LockRecord | None:
        lock, state = read_lock(documents, WORKLOAD), StateStore(documents, WORKLOAD).read()
        return lock if lock.instance in names and state.step.startswith(f"{lock.epoch}-") else None

    return until(at_work, f"one of {names} leads")


def stop_a_leader(processes: dict[str, Process], documents: DocumentStore, names: set[str]) -> bool:
    """Stop the leader with SIGSTOP until another process leads. False if it released the lease at that moment."""
    lock = leader_at_work(documents, names)
    process = processes[lock.instance]
    process.send_signal(signal.SIGSTOP)
    try:
        stopped = read_lock(documents, WORKLOAD)
        if (stopped.instance, stopped.epoch) != (lock.instance, lock.epoch):
            return False
        until_another_leads(documents, lock)
    finally:
        process.send_signal(signal.SIGCONT)
    return True


def kill_a_leader(processes: dict[str, Process], documents: DocumentStore) -> None:
    """Kill the leader with SIGKILL. Another process leads when the lease has expired."""
    lock = leader_at_work(documents, set(processes))
    process = processes.pop(lock.instance)
    process.kill()
    process.wait()
    until_another_leads(documents, lock)


@pytest.mark.soak
def test_no_two_processes_act_at_once(faulty: tuple[Proxy, Options], bucket: Options, tmp_path: Path, soak: int) -> None:
    proxy, options = faulty
    proxy.random_fault = random_faults(1)
    # The test itself reads without the proxy.
    documents = DocumentStore(connect(bucket), WORKLOAD.identity())
    with contenders(tmp_path, options) as processes:
        for _round in range(soak):
            # A fast contender takes over from the slow one, and any from a fast one.
            for names in ({"slow"}, {"fast", "fast 2"}):
                until(lambda names=names: stop_a_leader(processes, documents, names), "a leader was stopped")  # type: ignore[misc]
        remaining = dict(processes)
        kill_a_leader(remaining, documents)
        for process in remaining.values():
            process.send_signal(signal.SIGTERM)
        # The signal itself ends a process that has not installed its handler yet.
        assert {process.wait(120) for process in remaining.values()} <= {0, -signal.SIGTERM}
    check_terms(tmp_path, 2 * soak)
    time.sleep(MAX_DELAY + 0.5)  # until the last delayed request has reached the store
    check_history(documents)


def check_terms(folder: Path, least: int) -> None:
    """No two printed terms overlap, and epochs grow. The killed leader could not print its last term."""
    terms = sorted(json.loads(line) for instance in SPEEDS for line in (folder / instance).read_text().splitlines())
    assert len(terms) >= least
    for (_start, end, epoch), (start, _end, later) in itertools.pairwise(terms):
        assert end <= start, f"epochs {epoch} and {later} acted at the same time"
        assert epoch < later


def check_history(documents: DocumentStore) -> None:
    """The history has every revision, epochs never decrease, and each epoch has one writer."""
    states = StateStore(documents, WORKLOAD)
    last, history = states.read(), states.history.entries()
    revisions = [entry["revision"] for entry in history]
    assert revisions == sorted(set(revisions))
    assert set(range(1, last.revision)) <= set(revisions), "a revision is missing in the history"
    epochs = [entry["epoch"] for entry in history]
    assert epochs == sorted(epochs)
    writers: dict[int, set[str]] = {}
    for entry in history:
        writers.setdefault(entry["epoch"], set()).add(entry["writer"])
    assert all(len(names) == 1 for names in writers.values())
    assert read_lock(documents, WORKLOAD).epoch >= last.epoch
