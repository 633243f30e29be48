"""Run the stand-in: `python -m ...hypershift --kubeconfig <hub> --folder <state>`, until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path

from .hub import connect
from .operator import Operator

log = logging.getLogger("hypershift-standin")


async def run(arguments: argparse.Namespace) -> None:
    log.info("This is a stand-in for HyperShift: control planes are processes of this machine, nodes are objects without machines.")
    working = asyncio.create_task(Operator(connect(arguments.kubeconfig), arguments.folder, arguments.status_only).run())
    loop = asyncio.get_running_loop()
    for stop in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(stop, working.cancel)
    try:
        await working
    except asyncio.CancelledError:
        log.info("ended")


def main() -> int:
    parser = argparse.ArgumentParser(description="A stand-in for the HyperShift operator.")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of the hub")
    parser.add_argument("--folder", type=Path, required=True, help="for the data and logs of hosted control planes")
    parser.add_argument("--status-only", action="store_true", help="start no processes, write only status")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(run(parser.parse_args()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
