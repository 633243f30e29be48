"""Measures S3 coordination: operations, polling, takeover, and a thousand leases in one process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.events import Event
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import TTL, Lease
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.manager import LeaseManager
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.settings import Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import BotoBucket, ObjectStore, StoredObject, connect

from ...sandbox.sandbox import Sandbox
from .s3_stores import Options, stores
from .timing import Row, at_most, timed

MANY = 1000
MANY_SECONDS = 60.0
WARM_SECONDS = 120.0
ROUNDS = 200


def s3_coordination(sandbox: Sandbox) -> Iterator[Row]:
    with stores(sandbox) as found:
        for name, described in found.items():
            yield from operations(name, described)
        own = found["versitygw"]
        yield from polling(own)
        yield from takeover(own)
        yield from thousand_leases(own)


def operations(name: str, described: Options) -> Iterator[Row]:
    """Acquire and release a lease, compared with the same bare requests: two writes and a read in each round."""
    store = connect(described)
    lease = Lease(store, WorkloadRef("bench", f"operations-{name.replace('_', '-')}"), "bench", "bench-1")
    with timed(f"{ROUNDS} times acquire and release a lease on {name}") as taken:
        for _round in range(ROUNDS):
            lease.try_acquire()
            lease.release()
    known = store.create(f"floor-{name}", b"0")
    with timed(f"{2 * ROUNDS} bare conditional writes and {ROUNDS} reads on {name}") as bare:
        for number in range(ROUNDS):
            store.get(f"floor-{name}", known)
            for half in range(2):
                known = store.replace(f"floor-{name}", f"{number}.{half}".encode(), known)
    floor = f"the same bare requests: {ROUNDS / bare[0]:.0f} /s"
    yield Row(f"lease acquired and released on {name}", f"{ROUNDS / taken[0]:.0f} /s", floor, f"{taken[0] / bare[0]:.1f} x")


def polling(described: Options) -> Iterator[Row]:
    """A poll of an unchanged object, compared with one that sends the content."""
    store = connect(described)
    known = store.create("polled", json.dumps({"state": "x" * 4000}).encode())
    costs = []
    for title, last in (("Polls of an unchanged object", known), ("Polls that send the content", None)):
        cpu = time.process_time()
        with timed(f"1000 {title.lower()}"):
            for _poll in range(1000):
                store.get("polled", last)
        costs.append(time.process_time() - cpu)
    sent = f"with 4 kB sent: {costs[1]:.2f} s"
    yield Row("CPU of 1000 polls of an unchanged object", f"{costs[0]:.2f} s", sent, f"{costs[0] / costs[1]:.1f} x")


def takeover(described: Options) -> Iterator[Row]:
    """Time from the end of a leader until the next one acts, with the default ttl: killed, and terminated."""
    for title, end, limit in (("killed", "kill", TTL + 6), ("terminated", "terminate", 6)):
        name = f"takeover-{end}"
        with contender(described, "east", name) as east:
            wait_for(east, "leader_acquired")
            with contender(described, "west", name) as west:
                wait_for(west, "state_changed")
                with timed(f"Leader {title}, until the next one acts") as taken:
                    getattr(east, end)()
                    wait_for(west, "leader_acquired")
        yield Row(f"leader {title}, until the next one acts, ttl {TTL:g} s", f"{taken[0]:.1f} s", goal=at_most(taken[0], limit, "s"))


def thousand_leases(described: Options) -> Iterator[Row]:
    """One process holds them for a minute."""
    with timed(f"{MANY} leases in one process for {MANY_SECONDS:.0f} s"):
        done = subprocess.run(
            [sys.executable, "-m", __name__, "many"],
            input=json.dumps(described),
            capture_output=True,
            text=True,
            check=True,
            env=environment(),
        )
    totals = json.loads(done.stdout)
    yield Row(
        f"{MANY} leases held by one process",
        f"{totals['put']:.0f} PUT/s, {totals['get']:.0f} GET/s",
        f"{totals['held']} held, {totals['lost']} lost, {totals['warm']:.0f} s to acquire them",
    )
    yield Row(
        "its CPU and memory, 16 connections",
        f"{totals['cpu']:.0%} of a core, {totals['memory']} MB",
        f"without leases: {totals['empty']} MB",
    )


@contextlib.contextmanager
def contender(described: Options, holder: str, name: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", __name__, "contend"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
    try:
        if process.stdin:
            with process.stdin as pipe:
                json.dump({"store": described, "holder": holder, "name": name}, pipe)
        yield process
    finally:
        process.kill()
        process.wait()


def environment() -> dict[str, str]:
    return dict(os.environ) | {"PYTHONPATH": str(Path(__file__).absolute().parents[6])}


def wait_for(process: subprocess.Popen[str], kind: str) -> None:
    for line in process.stdout or ():
        if json.loads(line)["type"] == kind:
            return


# The processes


async def contend(store: Options, holder: str, name: str) -> None:
    async def emit(event: Event) -> None:
        print(json.dumps(event), flush=True)

    task = asyncio.ensure_future(LeaseManager(connect(store), Settings([WorkloadRef("bench", name)], holder)).run(emit))
    asyncio.get_running_loop().add_signal_handler(15, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


class Counted(BotoBucket):
    """A bucket that counts its requests."""

    requests: ClassVar[Counter[str]] = Counter()

    def read(self, key: str, known: StoredObject | None = None) -> StoredObject | None:
        self.requests["get"] += 1
        return super().read(key, known)

    def write(self, key: str, body: bytes, match: str | None) -> str:
        self.requests["put"] += 1
        return super().write(key, body, match)


async def many(described: Options) -> dict[str, Any]:
    settings = Settings([WorkloadRef("bench", f"many-{number}") for number in range(MANY)], "bench")
    manager = LeaseManager(ObjectStore(Counted(described, settings.connections)), settings)
    empty, started, totals = memory(), time.monotonic(), Counter[str]()

    async def count(event: Event) -> None:
        totals[event["type"]] += 1

    task = asyncio.ensure_future(manager.run(count))
    while sum(lease.acting() for lease in manager.leases) < MANY and time.monotonic() - started < WARM_SECONDS:  # noqa: ASYNC110
        await asyncio.sleep(0.5)
    warm = time.monotonic() - started
    before, cpu = Counted.requests.copy(), time.process_time()
    await asyncio.sleep(MANY_SECONDS)
    rate = {name: (Counted.requests[name] - before[name]) / MANY_SECONDS for name in ("put", "get")}
    answer = rate | {
        "cpu": (time.process_time() - cpu) / MANY_SECONDS,
        "memory": memory(),
        "empty": empty,
        "lost": totals["leader_lost"],
        "held": sum(lease.acting() for lease in manager.leases),
        "warm": warm,
    }
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return answer


def memory() -> int:
    """The most that this process has used so far, in megabytes. getrusage has that of the process that started it, if it was larger."""
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) // 1024 if found else 0


if __name__ == "__main__":
    if sys.argv[1] == "many":
        print(json.dumps(asyncio.run(many(json.load(sys.stdin)))))
    else:
        asyncio.run(contend(**json.load(sys.stdin)))
