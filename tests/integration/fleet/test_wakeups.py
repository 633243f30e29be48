"""Quota and capacity that become free while a batch is reconciled: a cluster of that batch, which waits for them, is not forgotten."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import fleet_controller
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.fleet_source import serve
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, CLUSTER
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.observe import ObservedFleet
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.reconcile import Outcome, Reconciler

from ..support.fleet import Fleet, fleet_of

DECIDED, EASED = threading.Event(), threading.Event()


class SlowReconciler(Reconciler):
    """Returns the first decision that a cluster waits only after the test lets it: as if more clusters of the batch followed."""

    def reconcile(self, fleet: ObservedFleet) -> list[Outcome]:
        outcomes = super().reconcile(fleet)
        if any(each.result in ("refused", "waiting") for each in outcomes) and not DECIDED.is_set():
            DECIDED.set()
            EASED.wait(500)
        return outcomes


class Discard:
    async def put(self, event: Mapping[str, Any]) -> None:
        pass


@pytest.fixture
def fleet(hub: Access, namespace: str) -> Iterator[Fleet]:
    with fleet_of(hub, namespace) as made:
        yield made


@pytest.mark.parametrize("limited", ["quota", "hub"])
def test_cluster_is_tried_again_if_what_it_waits_for_became_free_during_its_batch(
    fleet: Fleet, limited: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.add_hub("east", clusters=1 if limited == "hub" else 10)
    fleet.set_quota(hard={"clusters": 1 if limited == "quota" else 10})
    for priority, name in ((1, "first"), (0, "second")):
        fleet.add_cluster(name, priority=priority)
    fleet.reconcile()  # as an engine before did
    monkeypatch.setattr(fleet_controller, "Reconciler", SlowReconciler)
    for event in (DECIDED, EASED):
        event.clear()

    def act() -> None:
        try:
            assert DECIDED.wait(200), "the second cluster is not reconciled"
            fleet.home.delete(fleet.cluster("first"))
            until(lambda: fleet.home.find(API_VERSION, CLUSTER, "first", fleet.namespace) is None, "the first cluster is deleted", 200)
        finally:
            EASED.set()
        until(lambda: fleet.cluster("second")["status"].get("hub"), "the second cluster is bound", 200)

    async def scenario() -> None:
        source = asyncio.create_task(serve(Discard(), fleet.source_arguments() | {"health": {"port": free_port()}}))
        try:
            await asyncio.to_thread(act)
        finally:
            source.cancel()
            await asyncio.gather(source, return_exceptions=True)

    asyncio.run(scenario())
