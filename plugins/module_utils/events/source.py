# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The event source as a whole: one owner of every task, which ends them all when one of them cannot go on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from ..kube import Kube, Object
from .controller import Controller
from .intake import Intake
from .settings import Settings


class Engine(Protocol):
    """The queue of ansible-rulebook. While the engine is busy, `put` waits."""

    async def put(self, event: Object) -> None: ...


async def serve(engine: Engine, arguments: Mapping[str, Any]) -> None:
    """Work for ever. Raises where that is not possible: with bad settings, with an address in use, and never for a fault of the hub."""
    settings = Settings.from_arguments(arguments)
    controller = Controller(settings, Kube.connect(settings.connection), Kube.connect(settings.connection), engine.put)
    intake = Intake(settings.webhook, controller.metrics, controller.note, controller.problems)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(intake.serve())
            tasks.create_task(controller.run())
    except BaseExceptionGroup as errors:
        # ansible-rulebook shows the text of what is raised, and a group's says nothing.
        raise errors.exceptions[0] from errors
