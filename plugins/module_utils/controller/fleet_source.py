# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The event source of a fleet as a whole: health and metrics always, the controller while this source leads."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ..kube.client import Kube
from .fleet_controller import FleetController
from .fleet_metrics import FleetMetrics, FleetState
from .fleet_settings import FleetSettings
from .health_server import HealthServer
from .leader_election import LeaderElector
from .source import Engine, first_cause

LEASE = "fleet"


async def serve(engine: Engine, arguments: Mapping[str, Any]) -> None:
    """Run until cancelled. Raises for invalid settings and for an address in use, never for an error of the home cluster."""
    source = FleetSource(engine, FleetSettings.from_arguments(arguments))
    try:
        await source.run()
    except BaseExceptionGroup as errors:
        raise first_cause(errors) from errors


class FleetSource:
    """One for a process. A new leader lists everything, so no change is lost."""

    def __init__(self, engine: Engine, settings: FleetSettings) -> None:
        self._engine = engine
        self._settings = settings
        self._watching = Kube.connect(settings.connection)
        self._home = Kube.connect(settings.connection)
        self._controller: FleetController | None = None
        self._metrics = FleetMetrics(self._state)
        self.health = HealthServer(settings.health_host, settings.health_port, self._metrics, self._problems)
        self._election = LeaderElector(Kube.connect(settings.connection), settings.site_namespace, LEASE)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.health.serve())
            tasks.create_task(self._election.lead(self._control))

    async def _control(self) -> None:
        self._controller = FleetController(self._settings, self._watching, self._home, self._engine.put, self._metrics)
        try:
            await self._controller.run()
        finally:
            self._controller = None

    def _problems(self) -> list[str]:
        if self._controller:
            return self._controller.problems()
        return [self._election.problem] if self._election.problem else []

    def _state(self) -> FleetState:
        return self._controller.state() if self._controller else FleetState()
