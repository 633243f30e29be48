"""Agents of hubs in threads of this process, each with its own event loop, and links to their clusters that a test can cut."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Self
from urllib.parse import urlsplit

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.agent_settings import AgentSettings
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.agent_source import AgentSource
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.fleet_agent import FleetAgent
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_report import CONFIG_MAP, KEY, LEASE, HubReport
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates

from .engines import COLLECTIONS
from .fleet_agents import AGENT, AgentSite
from .kubeconfigs import kubeconfig
from .links import Link, Links


class RunningAgent:
    """The agent of one hub, as its leader runs it, with the shipped permissions on both clusters."""

    def __init__(self, site: AgentSite, links: Links | None = None, *, elected: bool = False, **settings: Any) -> None:
        """With `elected` it is the whole event source, which has to win the election first."""
        self.site = site
        self._elected = elected
        self.events: list[Object] = []
        self.to_home: Link | None = links.add(lambda: _address(site.home)) if links else None
        self.to_hub: Link | None = links.add(lambda: _address(site.hub)) if links else None
        on_hub = kubeconfig(site.hub)
        if self.to_hub:
            for each in on_hub["clusters"]:
                each["cluster"]["server"] = f"https://127.0.0.1:{self.to_hub.port}"
        arguments: Object = {
            "hub": site.name,
            "home": {"kubeconfig": site.kubeconfig(f"https://127.0.0.1:{self.to_home.port}" if self.to_home else "")},
            "kubeconfig": on_hub,
            "impersonate_user": AGENT,
            "impersonate_groups": ["system:serviceaccounts", "system:authenticated"],
            "heartbeat": 1,
            "report": 1,
            "health": {"port": 0},
        }
        self._settings = AgentSettings.from_arguments(arguments | settings)
        self._loop = asyncio.new_event_loop()
        self.errors: list[BaseException] = []

    async def _put(self, event: Object) -> None:
        self.events.append(event)

    async def put(self, event: Object) -> None:
        await self._put(event)

    async def _serve(self) -> None:
        if self._elected:
            await AgentSource(self, self._settings).run()
        await FleetAgent(self._settings, find_templates([COLLECTIONS]), "test", self._put, lambda _result: None).run()

    @contextlib.contextmanager
    def running(self) -> Iterator[Self]:
        task = self._loop.create_task(self._serve())

        def work() -> None:
            try:
                self._loop.run_until_complete(task)
            except asyncio.CancelledError:
                pass
            except BaseException as error:  # noqa: BLE001 - the test fails for it
                self.errors.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(task.cancel)
            thread.join()
            self._loop.close()
        assert self.errors == []

    # What is at home

    def lease(self) -> Object:
        return self.site.home.kube.find("coordination.k8s.io/v1", "Lease", LEASE, self.site.namespace) or {}

    def report(self) -> HubReport:
        found = self.site.home.kube.find("v1", "ConfigMap", CONFIG_MAP, self.site.namespace) or {}
        return HubReport.from_json((found.get("data") or {}).get(KEY, ""))

    def until_state(self, item: Object, state: str) -> None:
        until(lambda: self.site.status(item).get("state") == state, f"the assignment is {state}")

    def until_ordered(self, item: Object) -> None:
        until(lambda: self.site.order(item) is not None, "the order exists")

    def until_gone(self, item: Object) -> None:
        until(lambda: self.site.assignment(item) is None and self.site.order(item) is None, "assignment and order are gone")

    def types(self) -> list[str]:
        return [event["type"] for event in list(self.events)]


def _address(access: Access) -> tuple[str, int]:
    server = urlsplit(kubeconfig(access)["clusters"][0]["cluster"]["server"])
    return str(server.hostname), int(server.port or 443)
