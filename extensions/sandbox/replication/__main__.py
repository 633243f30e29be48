"""Run the stand-in: `python -m ...replication --cluster <name>=<kubeconfig> ... --folder <state>`, until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path

from .operator import Operator
from .site import connect

log = logging.getLogger("replication-standin")


async def run(arguments: argparse.Namespace) -> None:
    log.info("This is a stand-in for Ramen's cluster operator and for storage: the data of a volume are the lines of a ConfigMap.")
    clusters = {name: connect(Path(kubeconfig)) for name, kubeconfig in arguments.cluster}
    working = asyncio.create_task(Operator(clusters, arguments.folder, arguments.foreign_workloads).run())
    loop = asyncio.get_running_loop()
    for stop in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(stop, working.cancel)
    try:
        await working
    except asyncio.CancelledError:
        log.info("ended")


def main() -> int:
    parser = argparse.ArgumentParser(description="A stand-in for replication between clusters.")
    parser.add_argument("--cluster", action="append", required=True, type=lambda text: text.split("=", 1), metavar="NAME=KUBECONFIG")
    parser.add_argument("--foreign-workloads", action="append", default=[], metavar="NAME", help="another stand-in has their status")
    parser.add_argument("--folder", type=Path, required=True, help="for the file that says that it is ready")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(run(parser.parse_args()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
