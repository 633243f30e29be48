"""Run the measurements, print the tables, and fail where a goal is missed. With names as arguments: only these."""

from __future__ import annotations

import argparse
import functools
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ...sandbox.build import build
from ...sandbox.sandbox import Sandbox
from ...sandbox.screen import heading, run_command, warning
from .dr_rows import disaster_recovery
from .event_rows import (
    busy_webhooks,
    coalesced,
    fifty_by_rulebook,
    keep_orders,
    status_lag,
    status_lag_beside,
    ten_thousand_orders,
    thousand_orders,
)
from .fleet_rows import large_fleet
from .host_rows import host_claims
from .order_rows import contention, create_namespace, fifty_orders, one_order, usual_way
from .platform_rows import unchanged_platform
from .s3_rows import s3_coordination
from .sandbox_rows import control_planes, many_status_only
from .timing import Goal, Row, report, table

MEASUREMENT_SECONDS = 1800  # after which one has failed, and the next begins


class Bench:
    """What several measurements share. Each part is made when the first of them needs it."""

    def __init__(self, folder: Path, ends: ExitStack) -> None:
        self.folder = folder
        self._ends = ends

    @functools.cached_property
    def load(self) -> Sandbox:
        """A hub whose HostedClusters have no processes."""
        sandbox = Sandbox(self.folder / "load")
        self._ends.callback(sandbox.down)
        sandbox.up(status_only=True, attached=True)
        create_namespace(sandbox)
        return sandbox

    @functools.cached_property
    def usual_time(self) -> list[float]:
        return usual_way(self.load)

    @functools.cached_property
    def kept(self) -> Sandbox:
        """The same hub with a thousand orders that have clusters."""
        keep_orders(self.load)
        return self.load


def sandbox_costs(bench: Bench) -> Iterator[Row]:
    sandbox = Sandbox(bench.folder / "sandbox")
    try:
        yield from control_planes(sandbox)
        yield from many_status_only(sandbox)
    finally:
        sandbox.down()


# In this order: the load of later ones would be in the figures of earlier ones. A group is a table.
MEASUREMENTS: dict[str, dict[str, Callable[[Bench], Iterable[Row]]]] = {
    "The sandbox": {"sandbox": sandbox_costs},
    "Disaster recovery": {"recovery": lambda bench: disaster_recovery(bench.folder)},
    "Fleet": {"fleet": lambda bench: large_fleet(bench.folder)},
    "Orders": {
        "one_order": lambda bench: one_order(bench.load, bench.usual_time),
        "fifty_orders": lambda bench: fifty_orders(bench.load, bench.usual_time),
        "locks": lambda bench: contention(bench.load),
        "hosts": lambda bench: host_claims(bench.load),
        "s3": lambda bench: s3_coordination(bench.load),
        "platform": lambda bench: unchanged_platform(bench.load),
    },
    "Events": {
        "webhooks": lambda bench: busy_webhooks(bench.load),
        "rulebook": lambda bench: fifty_by_rulebook(bench.load),
        "thousand_orders": lambda bench: thousand_orders(bench.kept),
        "status_lag": lambda bench: status_lag(bench.kept),
        "burst": lambda bench: coalesced(bench.kept),
        "status_lag_beside": lambda bench: status_lag_beside(bench.kept),
        "ten_thousand_orders": lambda bench: ten_thousand_orders(bench.kept),
    },
}
NAMES = [name for group in MEASUREMENTS.values() for name in group]


def measure(name: str, work: Callable[[], Iterable[Row]], seconds: float = MEASUREMENT_SECONDS) -> list[Row]:
    """The rows of one measurement. One that fails, or does not end in time, is a missed goal, and the others go on."""
    rows: list[Row] = []
    try:
        with deadline(seconds):
            rows.extend(work())  # those before an error count too
    except Exception as error:  # noqa: BLE001 - of any kind: it is in the table
        warning(f"{name}: {error}")
        rows.append(Row(name, "failed", str(error).strip().partition("\n")[0][:100], goal=Goal("a measurement", reached=False)))
    return rows


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    def end(_signal: int, _frame: object) -> None:
        raise TimeoutError(f"not finished after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"a measurement: {', '.join(NAMES)}")
    chosen = parser.parse_args().names or NAMES
    if unknown := sorted(set(chosen) - set(NAMES)):
        parser.error(f"there is no {', '.join(unknown)}; choose from {', '.join(NAMES)}")
    heading("openfleet.clusters: measuring")
    build(s3=True)
    tables: dict[str, list[Row]] = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ends:
        bench, started = Bench(Path(folder), ends), time.monotonic()
        for title, group in MEASUREMENTS.items():
            for name in [name for name in group if name in chosen]:
                tables.setdefault(title, []).extend(measure(name, functools.partial(group[name], bench)))
    for rows in tables.values():
        table(rows)
    heading(f"Measured in {(time.monotonic() - started) / 60:.0f} minutes.")
    return report([row for rows in tables.values() for row in rows])


if __name__ == "__main__":
    run_command(main)
