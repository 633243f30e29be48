"""A process with the event source dr_placements, as a rules engine runs it, and a journal of what it decides and does.

Its settings are the first line of standard input. It ends when that is closed, so it never outlives the process that started it.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.extensions.eda.plugins.event_source.dr_placements import main as run_source
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import dr_controller
from ansible_collections.openfleet.clusters.tests.integration.support.dr_journal import Journal, JournalReconciler

log = logging.getLogger(__name__)


def _end_with_the_parent() -> None:
    sys.stdin.read()
    os._exit(0)


async def _run(arguments: dict[str, Any]) -> None:
    events: asyncio.Queue[Any] = asyncio.Queue()
    source = asyncio.create_task(run_source(events, arguments))
    while not source.done():
        event = asyncio.create_task(events.get())
        await asyncio.wait({event, source}, return_when=asyncio.FIRST_COMPLETED)
        if event.done():
            log.info("%s", json.dumps(event.result()))
    await source


def main() -> None:
    settings = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    dr_controller.Reconciler = functools.partial(JournalReconciler, Journal(Path(settings["journal"])))  # type: ignore[assignment,misc]
    asyncio.run(_run(settings["arguments"]))


if __name__ == "__main__":
    main()
