# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The event source `fleet_agent` as a whole: of several agents of a hub the leader works, the others stand by.

The leader is elected on the hub: an unreachable home cluster changes nothing about it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..common.third_party import yaml
from ..kube.client import Kube
from ..templates.catalogue import find_templates
from .agent_connections import connect_home
from .agent_metrics import AgentMetrics, AgentState
from .agent_settings import AgentSettings
from .fleet_agent import FleetAgent
from .health_server import HealthServer
from .hub_reporting import CredentialsChanged
from .leader_election import LeaderElector
from .source import Engine, first_cause

log = logging.getLogger(__name__)

COLLECTION = Path(__file__).absolute().parents[3]


async def serve(engine: Engine, arguments: Mapping[str, Any]) -> None:
    """Run until cancelled. Raises for invalid settings, never for an error of the hub or of the home cluster."""
    settings = AgentSettings.from_arguments(arguments)
    connect_home(settings)  # a kubeconfig that cannot be read is a mistake of the settings
    try:
        await AgentSource(engine, settings).run()
    except BaseExceptionGroup as errors:
        raise first_cause(errors) from errors


class AgentSource:
    """Health and metrics always, the agent while it leads, with new connections after a change of its credential."""

    def __init__(self, engine: Engine, settings: AgentSettings) -> None:
        self._engine = engine
        self._settings = settings
        site = settings.names.site_namespace
        self._agent: FleetAgent | None = None
        self._metrics = AgentMetrics(self._state)
        self._health = HealthServer(settings.health_host, settings.health_port, self._metrics, self._problems)
        self._election = LeaderElector(Kube.connect(settings.connection), site, f"fleet-agent.{settings.hub}")

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._health.serve())
            tasks.create_task(self._election.lead(self._work))

    async def _work(self) -> None:
        version, templates = collection_version(), find_templates(self._settings.collections_paths)
        while True:
            try:
                self._agent = FleetAgent(self._settings, templates, version, self._engine.put, self._metrics.reconciled)
                await self._agent.run()
            except BaseExceptionGroup as errors:
                # Not by except*, which the parser of ansible-test sanity does not know.
                changed, others = errors.split(CredentialsChanged)
                if changed is None or others is not None:
                    raise
                log.info("the credential for the home cluster has changed")
            finally:
                self._agent = None

    def _problems(self) -> list[str]:
        if self._agent:
            return self._agent.problems()
        return [self._election.problem] if self._election.problem else []

    def _state(self) -> AgentState:
        return self._agent.state() if self._agent else AgentState()


def collection_version() -> str:
    """The version of this collection: that of a release, or of its sources."""
    for name, path in (("MANIFEST.json", ("collection_info", "version")), ("galaxy.yml", ("version",))):
        try:
            found: Any = yaml.safe_load((COLLECTION / name).read_text(encoding="utf-8"))
            for key in path:
                found = found[key]
            return str(found)
        except (OSError, yaml.YAMLError, KeyError, TypeError):
            continue
    return ""
