"""Processes that contend on a real S3 server, through a proxy that does everything at once: never do two of them act.

Their clocks run at different speeds, and whoever leads is stopped in the midst of its work until another does.
"""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import Documents, Place
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lock, read_lock
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect

from ..support.s3_proxy import Fault, Proxy

Options = dict[str, Any]
Process = subprocess.Popen[str]
PLACE = Place("orders", "demo")
TTL = 3.0
# Of each contender's clock, in which the ttl is counted. A fifth is what the margin allows for.
SPEEDS = {"slow": 0.85, "slow too": 0.85, "fast": 1.15, "fast too": 1.15}
# The storm holds back no request for longer.
LATEST = 2.0


def storm(seed: int) -> Any:
    """Of four requests one goes wrong, each time in another way."""
    chance = random.Random(seed)  # noqa: S311 - the same storm each time

    def invent(method: str) -> Fault | None:
        if chance.random() > 0.25:
            return None
        reads = {"forwarded": False} if method == "GET" else {}
        return chance.choice(
            [
                Fault(),
                Fault(forwarded=False),
                Fault(status=500, **reads),
                Fault(status=503, forwarded=False),
                Fault(status=412 if method == "PUT" else 500),
                Fault(status=409 if method == "PUT" else 500, forwarded=False),
                Fault(hold=0.3),
                Fault(hold=0.2, after=chance.uniform(0.2, LATEST)),
            ]
        )

    return invent


@contextmanager
def contenders(folder: Path, options: Options) -> Iterator[dict[str, Process]]:
    """All of them at work; what they print is in a file of its name in the folder."""
    processes: dict[str, Process] = {}
    try:
        for instance, speed in SPEEDS.items():
            with (folder / instance).open("w") as told:
                program = [sys.executable, str(Path(__file__).parents[1] / "support" / "s3_contender.py")]
                processes[instance] = process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=told, text=True)
            settings = {"options": options, "place": [PLACE.namespace, PLACE.name], "instance": instance, "speed": speed, "ttl": TTL}
            assert process.stdin
            with process.stdin as pipe:
                json.dump(settings, pipe)
        yield processes
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def pause_one_of(processes: dict[str, Process], documents: Documents) -> str:
    """Stop one of these in the midst of its work until another leads. The answer is its name, or nothing if it has given back just then."""

    def at_work() -> Lock | None:
        lock, state = read_lock(documents, PLACE), StateStore(documents, PLACE).read()
        return lock if lock.instance in processes and state.step.startswith(f"{lock.epoch}-") else None

    lock = until(at_work, "one of them leads")
    process = processes[lock.instance]
    process.send_signal(signal.SIGSTOP)
    try:
        stopped = read_lock(documents, PLACE)
        if (stopped.instance, stopped.epoch) != (lock.instance, lock.epoch):
            return ""
        until(lambda: (found := read_lock(documents, PLACE)).held and found.epoch > lock.epoch, "another leads")
    finally:
        process.send_signal(signal.SIGCONT)
    return lock.instance


def test_nobody_acts_beside_another_in_a_storm(faulty: tuple[Proxy, Options], bucket: Options, tmp_path: Path) -> None:
    proxy, options = faulty
    proxy.invent = storm(1)
    # Looked at without the proxy.
    documents = Documents(connect(bucket), PLACE.identity())
    with contenders(tmp_path, options) as processes:
        # Three of four: so one that is slow, from whom one that is fast will take over, and one that is fast.
        unpaused = dict(processes)
        while len(unpaused) > 1:
            unpaused.pop(until(lambda: pause_one_of(unpaused, documents), "a leader was paused"))
        time.sleep(1.0)
        for process in processes.values():
            process.send_signal(signal.SIGTERM)
        # The signal itself ends one that is so slow that it has not begun yet.
        assert {process.wait(120) for process in processes.values()} <= {0, -signal.SIGTERM}
    terms = sorted(json.loads(line) for instance in SPEEDS for line in (tmp_path / instance).read_text().splitlines())
    assert len(terms) >= len(processes) - len(unpaused)
    for (_start, end, epoch), (start, _end, later) in itertools.pairwise(terms):
        assert end <= start, f"epochs {epoch} and {later} acted at the same time"
        assert epoch < later
    # What is stored tells the same story.
    time.sleep(LATEST + 0.5)
    states = StateStore(documents, PLACE)
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
    assert read_lock(documents, PLACE).epoch >= last.epoch
