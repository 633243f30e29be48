"""Clusters that nothing else wakes are reconciled again: two sweeps found them outdated, or a list shows a report for the first time."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import fleet_controller
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.fleet_controller import FleetController
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.fleet_metrics import FleetMetrics, FleetState
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.fleet_settings import FleetSettings
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.waiting import GROWTH
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import ASSIGNMENT, CLUSTER
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.observe import ObservedFleet
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.reconcile import Outcome
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.sweep import Swept
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import ObjectList, WatchEvent

PATIENCE_SECONDS = 120
NAMES = ("a", "b", "waits")


def cluster(name: str) -> Object:
    metadata = {"namespace": "team", "name": name, "uid": name, "resourceVersion": "1", "creationTimestamp": "2026-01-02T03:04:05Z"}
    return {"metadata": metadata, "spec": {"template": "small"}, "status": {"hub": "east"}}


def assignment(name: str, **status: Any) -> Object:
    metadata = {"namespace": "hub-east", "name": name, "uid": f"of-{name}", "resourceVersion": "2", "generation": 1}
    reference = {"namespace": "team", "name": name, "uid": name}
    return {"metadata": metadata, "spec": {"cluster": reference, "template": "small"}} | ({"status": status} if status else {})


class Home:
    """Lists three clusters of one hub, shows the events that a test makes, and notes which clusters are reconciled, in batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.swept: queue.Queue[Swept] = queue.Queue()
        self._events: dict[str, queue.Queue[WatchEvent | None]] = {}

    def server_time(self) -> None:
        return None

    def list_all(self, _api_version: str, kind: str, *_selectors: Any) -> ObjectList:
        listed = ObjectList(map(cluster, NAMES) if kind == CLUSTER else [])
        listed.resource_version = "1"
        return listed

    def watch(self, _api_version: str, kind: str, *_more: Any, **_options: Any) -> Iterator[WatchEvent]:
        while event := self.events(kind).get():
            yield event

    def events(self, kind: str) -> queue.Queue[WatchEvent | None]:
        return self._events.setdefault(kind, queue.Queue())

    def sweep(self, *_what: Any) -> Swept:
        return self.swept.get()

    def find_outdated(self, *names: str) -> None:
        self.swept.put(Swept({}, {}, (), outdated=frozenset(("team", name) for name in names)))

    def reconcile(self, fleet: ObservedFleet) -> list[Outcome]:
        self.batches.append(sorted(each.name for each in fleet.clusters))
        return [Outcome(each, "waiting" if each.name == "waits" else "bound") for each in fleet.clusters]

    async def reconciled(self, *batches: list[str]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.batches) < len(batches):  # noqa: ASYNC110 - they come from another thread
                await asyncio.sleep(0.005)
        assert self.batches == [*batches]

    def end(self) -> None:
        for events in self._events.values():
            events.put(None)
        self.find_outdated()


def play(monkeypatch: pytest.MonkeyPatch, scenario: Callable[[Home], Awaitable[None]]) -> None:
    home = Home()
    monkeypatch.setattr(fleet_controller, "sweep", home.sweep)
    monkeypatch.setattr(fleet_controller, "RecordingKube", lambda *_target: home)
    monkeypatch.setattr(fleet_controller, "Reconciler", lambda *_what: home)

    async def emit(_event: Object) -> None:
        pass

    async def main() -> None:
        settings = FleetSettings({"host": "http://home.example.com", "api_key": "made up"}, sweep=0)
        controller = FleetController(settings, home, home, emit, FleetMetrics(FleetState))  # type: ignore[arg-type]
        running = asyncio.create_task(controller.run())
        try:
            await home.reconciled([*NAMES])
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not controller.state().waiting[GROWTH]:  # noqa: ASYNC110 - noted after the batch
                    await asyncio.sleep(0.005)
            await scenario(home)
        finally:
            running.cancel()
            home.end()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())


def test_cluster_that_two_sweeps_in_a_row_find_outdated_is_reconciled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(home: Home) -> None:
        home.find_outdated("a", "waits")
        home.find_outdated("b", "waits")
        home.find_outdated("a", "b", "waits")
        await home.reconciled([*NAMES], ["b"])
        home.find_outdated("a")
        await home.reconciled([*NAMES], ["b"], ["a"])
        home.find_outdated("a")  # the cache may still have lacked what makes it outdated
        await home.reconciled([*NAMES], ["b"], ["a"], ["a"])

    play(monkeypatch, scenario)


def test_assignment_that_is_found_with_a_report_wakes_its_cluster_and_a_new_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(home: Home) -> None:
        home.events(ASSIGNMENT).put(WatchEvent("ADDED", assignment("b")))
        home.events(ASSIGNMENT).put(WatchEvent("ADDED", assignment("a", state="Ready")))
        await home.reconciled([*NAMES], ["a"])

    play(monkeypatch, scenario)
