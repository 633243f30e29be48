"""Run every measurement, print the tables, and fail where a goal is missed."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ...sandbox.build import build
from ...sandbox.sandbox import Sandbox
from ...sandbox.screen import heading, run_command
from .dr_rows import disaster_recovery
from .event_rows import (
    busy_webhooks,
    coalesced,
    fifty_by_rulebook,
    status_lag,
    status_lag_beside,
    ten_thousand_orders,
    thousand_orders,
)
from .host_rows import host_claims
from .order_rows import contention, fifty_orders, one_order, usual_way
from .platform_rows import unchanged_platform
from .s3_rows import s3_coordination
from .sandbox_rows import control_planes, many_status_only
from .timing import report, table


def main() -> int:
    heading("openfleet.clusters: measuring")
    build(s3=True)
    with tempfile.TemporaryDirectory() as folder:
        sandbox, load = Sandbox(Path(folder) / "sandbox"), Sandbox(Path(folder) / "load")
        try:
            rows = [*control_planes(sandbox), *many_status_only(sandbox)]
            sandbox.down()
            recovery = list(disaster_recovery(Path(folder)))
            load.up(status_only=True, attached=True)
            usual_time = usual_way(load)
            rows += [
                *one_order(load, usual_time),
                *fifty_orders(load, usual_time),
                *contention(load),
                *host_claims(load),
                *s3_coordination(load),
                *unchanged_platform(load),
            ]
            table(rows)
            table(recovery)
            events = [*busy_webhooks(load), *fifty_by_rulebook(load), *thousand_orders(load), *status_lag(load), *coalesced(load)]
            events += status_lag_beside(load)
            events += ten_thousand_orders(load)  # last: the load of so many objects would be in the figures of the others
            table(events)
        finally:
            sandbox.down()
            load.down()
    return report(rows + recovery + events)


if __name__ == "__main__":
    run_command(main)
