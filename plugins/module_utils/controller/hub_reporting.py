# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The heartbeat and the report of a hub, for as long as its agent leads: when they are written, also while home is unreachable."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from ..common.types import Object
from ..fleet.hub_checks import observe_hub, report_of
from ..fleet.hub_report import HubReport
from ..fleet.hub_reporter import HubReporter, without_api
from ..infrastructure.agent_hosts import API_VERSION as AGENTS
from ..infrastructure.agent_hosts import KIND as AGENT
from ..kube.client import Kube
from ..kube.errors import KubeError, Unauthorized
from ..templates.catalogue import Template
from .agent_connections import connect_home
from .agent_settings import AgentSettings
from .informer import Informer, in_thread
from .work_queue import sentence

log = logging.getLogger(__name__)

FIRST_BACKOFF, LAST_BACKOFF = 1.0, 15.0
UNREACHABLE_AFTER = 3  # heartbeats in a row
BURST_SECONDS = 1.0

Event = dict[str, Any]
Put = Callable[[Event], Awaitable[None]]


class CredentialsChanged(Exception):
    """The home cluster no longer accepts the credential, and its file has another one."""


class HubReporting:
    """The tasks of one agent. `watching` is the connection for watches on the hub."""

    def __init__(
        self, settings: AgentSettings, home: Kube, hub: Kube, watching: Kube, templates: Mapping[str, Template], version: str, put: Put
    ) -> None:
        self._settings = settings
        self._home = home
        self._hub = hub
        self._templates = templates
        self._version = version
        self._put = put
        self._reporter = HubReporter(home, settings.hub, f"{socket.gethostname()}-{os.getpid()}")
        self._changed = asyncio.Event()  # the hub may have another report
        self._hosts = _Hosts(watching, self._changed.set)
        self._report = HubReport(agent_version=version)
        self.failures = 0  # heartbeats in a row
        self.is_ready: bool | None = None  # None until the hub was observed

    async def beat(self) -> None:
        """Renew the Lease until cancelled; CredentialsChanged when new connections to the home cluster are needed."""
        while True:
            try:
                await in_thread(self._reporter.beat)
            except KubeError as error:
                self.failures += 1
                self._check_credentials(error)
                wait = min(FIRST_BACKOFF * 2 ** min(self.failures, 16), LAST_BACKOFF) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
                if self.failures == UNREACHABLE_AFTER:
                    log.warning("the home cluster: %s", sentence(error))
                    await self._put({"type": "home_unreachable", "hub": self._settings.hub, "message": sentence(error)})
            else:
                if self.failures >= UNREACHABLE_AFTER:
                    log.info("the home cluster answers again")
                    await self._put({"type": "home_reachable", "hub": self._settings.hub})
                self.failures, wait = 0, self._settings.heartbeat
            await asyncio.sleep(wait)

    def _check_credentials(self, error: KubeError) -> None:
        if isinstance(error, Unauthorized):
            try:
                current = connect_home(self._settings).target
            except KubeError:
                return  # the file is being written
            if (current.token, current.certificate) != (self._home.target.token, self._home.target.certificate):
                raise CredentialsChanged

    async def report(self) -> None:
        """Publish the report when something may have changed, and once an interval, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                report, namespace = await in_thread(self._observe)
                self._hosts.follow(namespace, tasks)
                try:
                    await in_thread(partial(self._reporter.publish, report))
                except KubeError as error:
                    log.debug("the report: %s", sentence(error))
                if report.is_ready != self.is_ready:
                    self.is_ready = report.is_ready
                    await self._put({"type": "hub_checked", "hub": self._settings.hub, "ready": self.is_ready, "message": report.missing})
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._settings.report):
                        await self._changed.wait()
                        await asyncio.sleep(BURST_SECONDS)

    def _observe(self) -> tuple[HubReport, str]:
        """The report, and the namespace of the hosts; the last report while the API server of the hub does not answer."""
        try:
            facts = observe_hub(self._hub, self._settings.names, self._templates, self._hosts.listed())
        except KubeError as error:
            return without_api(self._report, error), ""
        self._report = report_of(facts, self._version)
        return self._report, facts.settings.agent_namespace


class _Hosts:
    """The Agents of the site's inventory. `changed` is called for each change."""

    def __init__(self, watching: Kube, changed: Callable[[], None]) -> None:
        self._watching = watching
        self._changed = changed
        self._namespace = ""
        self._informer: Informer | None = None
        self._task: asyncio.Task[None] | None = None

    def follow(self, namespace: str, tasks: asyncio.TaskGroup) -> None:
        """Follow the Agents of another namespace, once the settings of the site name one."""
        if namespace in ("", self._namespace):
            return
        if self._task:
            self._task.cancel()
        self._namespace = namespace
        self._informer = Informer(self._watching, AGENTS, AGENT, self._host_changed, namespace=namespace, transform=_trimmed)
        self._task = tasks.create_task(self._informer.follow())

    def listed(self) -> list[Object] | None:
        """None until they are listed."""
        informer = self._informer
        return informer.all() if informer and informer.listed.is_set() and not informer.refusal else None

    def _host_changed(self, _before: Object | None, _after: Object | None) -> None:
        self._changed()


def _trimmed(agent: Object) -> Object:
    """What hosts are counted by. Their inventory is large."""
    metadata = {name: value for name, value in agent["metadata"].items() if name != "annotations"}
    spec = {name: value for name, value in (agent.get("spec") or {}).items() if name == "clusterDeploymentName"}
    return {"metadata": metadata, "spec": spec, "status": {"conditions": (agent.get("status") or {}).get("conditions") or []}}
