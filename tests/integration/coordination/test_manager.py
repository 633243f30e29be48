"""The lease manager on a real S3 server: leadership, events, renewals under faults, and cluster health."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination import probe as coordination_probe
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.decision import DecisionStore
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.events import Event
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.health import ClusterHealth
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease, read_lock
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.manager import LeaseManager
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.probe import api_server_probe
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.settings import Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3 import store as s3_store
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect

from ..support.s3_proxy import Fault, Proxy
from .running import POLL, TTL, WAIT_SECONDS, WORKLOAD, Running, documents, running

Options = dict[str, Any]


def test_new_leader_emits_the_sealed_state_and_releases_at_its_end(bucket: Options) -> None:
    store = connect(bucket)

    async def scenario() -> None:
        async with running(store) as run:
            acquired = await run.next("leader_acquired")
            assert acquired["epoch"] == 1
            assert (acquired["namespace"], acquired["name"]) == ("shop", "database")
            assert acquired["state"] == {"intent": {}, "decision": {}, "step": ""}
            assert StateStore(documents(store), WORKLOAD).read().epoch == 1

    asyncio.run(scenario())
    lock = read_lock(documents(store), WORKLOAD)
    assert (lock.holder, lock.epoch) == ("", 1)


def test_changes_of_state_and_decision_are_emitted_to_all(bucket: Options) -> None:
    store = connect(bucket)

    async def scenario() -> None:
        async with running(store) as east, running(store, holder="west") as west:
            both = east, west
            await east.until(lambda: any(run.of("leader_acquired") for run in both), "a leader")
            epoch = read_lock(documents(store), WORKLOAD).epoch
            state = StateStore(documents(store), WORKLOAD).write(epoch, {"step": "Moving", "decision": {"cluster": "west"}})
            DecisionStore(documents(store), WORKLOAD).publish(state)
            for run in both:
                decided = await run.next("decision_changed")
                assert decided["decision"] == {"cluster": "west"}
                assert decided["previous"] == {}
                changed = run.of("state_changed")[-1]
                assert (changed["revision"], changed["epoch"], changed["state"]["step"]) == (state.revision, epoch, "Moving")
                assert len(run.of("decision_changed")) == 1
            assert sum(len(run.of("leader_acquired")) for run in both) == 1

    asyncio.run(scenario())


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds requests back in the proxy until it is set, at the latest at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


def test_leader_stops_at_its_deadline_while_the_store_hangs(
    faulty: tuple[Proxy, Options], bucket: Options, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, options = faulty
    direct = connect(bucket)
    # The timeout of the client must not end the renewal that hangs.
    monkeypatch.setattr(s3_store, "READ_SECONDS", 10 * WAIT_SECONDS)

    async def lose_and_recover(run: Running) -> None:
        await run.next("leader_acquired")
        hangs = Fault(times=10_000, gate=gate, forwarded=False)
        proxy.faults = [hangs]
        await run.until(lambda: len(run.of("leader_lost")) == len(run.of("leader_acquired")), "the end of the term")
        acquired, lost = run.of("leader_acquired")[-1], run.of("leader_lost")[-1]
        assert lost["epoch"] == acquired["epoch"]
        assert lost["reason"]
        assert not run.manager.leases[0].acting()
        # No other contender can have the lease yet: the leader stops earlier.
        assert not Lease(direct, WORKLOAD, "west", "west-1", 4.5).try_acquire()
        hangs.times = 0
        gate.set()
        again = await run.next("leader_acquired", len(run.of("leader_acquired")) + 1)
        assert again["epoch"] > acquired["epoch"]

    async def scenario() -> None:
        async with running(connect(options), ttl=4.5) as run:
            try:
                await lose_and_recover(run)
            finally:
                gate.set()  # or the manager could not end

    asyncio.run(scenario())


def test_slow_consumer_of_events_delays_no_renewal(faulty: tuple[Proxy, Options], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lease, "renew_interval", 0.2)
    proxy, options = faulty

    async def scenario() -> None:
        async def never_returns(_event: Event) -> None:
            await asyncio.Event().wait()

        manager = LeaseManager(connect(options), Settings([WORKLOAD], "east", TTL, POLL))
        task = asyncio.create_task(manager.run(never_returns))
        async with asyncio.timeout(WAIT_SECONDS):
            while proxy.count("PUT", "/lock") < 6:  # noqa: ASYNC110 - a lease has no event of its own
                await asyncio.sleep(0.02)
        assert manager.leases[0].acting()
        assert manager.leases[0].epoch == 1
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(scenario())


def test_leases_follow_the_workloads_that_exist(bucket: Options) -> None:
    store, other = connect(bucket), WorkloadRef("shop", "search")

    async def scenario() -> None:
        async with running(store, workloads=[]) as run:
            run.manager.follow([WORKLOAD])
            await run.next("leader_acquired")
            run.manager.follow([WORKLOAD, other])
            assert (await run.next("leader_acquired", 2))["name"] == "search"
            run.manager.follow([other])
            lost = await run.next("leader_lost")
            assert (lost["name"], lost["epoch"]) == ("database", 1)
            await run.until(lambda: not read_lock(documents(store), WORKLOAD).holder, "the release of the lease")
            # Twice before the first release can be over: no two contenders of one process for one lease.
            for _each in range(2):
                run.manager.follow([])
                run.manager.follow([WORKLOAD, other])
            again = await run.next("leader_acquired", 3)
            assert len(run.manager.leases) == 2
            await run.until(lambda: {event["name"] for event in run.of("leader_acquired")[2:]} == {"database", "search"}, "both")
            assert again["epoch"] == 2

    asyncio.run(scenario())
    assert [read_lock(documents(store), WORKLOAD).holder, read_lock(documents(store, other), other).holder] == ["", ""]


@pytest.mark.soak
def test_many_leases_share_few_connections(faulty: tuple[Proxy, Options], soak: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lease, "renew_interval", 1.0)
    proxy, options = faulty
    workloads = [WorkloadRef("shop", f"workload-{number}") for number in range(24 * soak)]
    store = connect(options, connections=4)

    async def scenario() -> None:
        async with running(store, workloads=workloads, poll=0.5, connections=4) as run:
            await run.until(lambda: len(run.of("leader_acquired")) == len(workloads), "a leader for each workload")
            acquired = proxy.count("PUT", "/lock")
            await run.until(lambda: proxy.count("PUT", "/lock") >= acquired + 2 * len(workloads), "two renewals each")
            assert run.of("leader_lost") == []
            assert all(lease.acting() for lease in run.manager.leases)
            assert {event["epoch"] for event in run.of("leader_acquired")} == {1}
            # Unchanged states are polled without content.
            polls = [status for method, path, status in proxy.requests[acquired:] if method == "GET" and path.endswith("/state")]
            assert set(polls[-len(workloads) :]) == {304}
            assert proxy.max_concurrent <= 4

    asyncio.run(scenario())
    store = connect(options)
    assert [str(workload) for workload in workloads if read_lock(documents(store, workload), workload).held] == []


def test_health_changes_are_emitted_and_missing_reports_are_unknown(bucket: Options, hub: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordination_probe, "TIMEOUT_SECONDS", 60)  # what a busy machine may need
    store = connect(bucket)

    async def scenario() -> None:
        async with running(store, holder="west", cluster="west") as west:
            async with running(store, cluster="east", probe=api_server_probe({"kubeconfig": str(hub.kubeconfig)})):
                await west.next("cluster_health_changed", 2)
            assert {event["cluster"] for event in west.of("cluster_health_changed")} == {"east", "west"}
            assert {event["health"] for event in west.of("cluster_health_changed")} == {"healthy"}
            # Its next report is due at once, and never comes.
            ClusterHealth(store, "east").report("healthy", interval=0.01)
            unknown = await west.next("cluster_health_changed", 3)
            assert (unknown["cluster"], unknown["health"], unknown["previous"]) == ("east", "unknown", "healthy")
            assert "no report" in unknown["reason"]
            ClusterHealth(store, "east").report("unreachable", "no answer", 60)
            reported = await west.next("cluster_health_changed", 4)
            assert (reported["health"], reported["reason"]) == ("unreachable", "no answer")

    asyncio.run(scenario())


def test_malformed_status_hides_no_other_cluster(bucket: Options) -> None:
    store = connect(bucket)
    # All of them sort before the valid one.
    for key in ("clusters/status", "clusters/A_b/status", "clusters/a/status", "clusters/b/c/status"):
        store.create(key, b"not ours")
    ClusterHealth(store, "west").report("healthy")

    async def scenario() -> None:
        async with running(store) as run:
            await run.next("cluster_health_changed")
            # A repaired status is emitted like a new one.
            store.delete("clusters/a/status")
            ClusterHealth(store, "a").report("unreachable", "no answer")
            await run.next("cluster_health_changed", 2)
            assert [(event["cluster"], event["health"]) for event in run.of("cluster_health_changed")] == [
                ("west", "healthy"),
                ("a", "unreachable"),
            ]

    asyncio.run(scenario())
