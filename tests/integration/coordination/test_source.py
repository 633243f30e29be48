"""Leases that a long-lived process holds: the keeper in this one, and the source in a real ansible-rulebook that is killed and ended."""

from __future__ import annotations

import asyncio
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination import probe as coordination_probe
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import Documents, Place
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.health import ClusterHealth
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease, read_lock
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.manager import Event, LeaseManager, Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.probe import probe_of
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import Decision, StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore, connect

from ..support.s3_proxy import Fault, Proxy

Options = dict[str, Any]
PLACE = Place("shop", "database")
TTL = 30.0  # a third of it, less what a renewal takes, is what a stall of the machine may last
POLL = 0.3


class Kept:
    """A keeper that runs, and the events it has told so far."""

    def __init__(self, store: ObjectStore, **settings: Any) -> None:
        self.events: list[Event] = []
        self.keeper = LeaseManager(store, Settings(**{"places": [PLACE], "holder": "east", "ttl": TTL, "poll": POLL} | settings))
        self.task = asyncio.create_task(self.keeper.run(self.put))

    async def put(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["type"] == kind]

    async def until(self, condition: Callable[[], Any], what: str) -> Any:
        for _look in range(1200):
            if self.task.done():
                self.task.result()
            if found := condition():
                return found
            await asyncio.sleep(0.05)
        raise AssertionError(f"{what} did not happen; told was {self.events}")

    async def end(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await story()

    asyncio.run(whole())


def documents(store: ObjectStore, place: Place = PLACE) -> Documents:
    return Documents(store, place.identity())


def test_who_leads_is_told_with_the_state_that_was_sealed(bucket: Options) -> None:
    store = connect(bucket)

    async def story() -> None:
        kept = Kept(store)
        won = (await kept.until(lambda: kept.of("leader_acquired"), "leading"))[0]
        assert won["epoch"] == 1
        assert (won["namespace"], won["name"]) == ("shop", "database")
        assert won["state"] == {"intent": {}, "decision": {}, "step": ""}
        assert StateStore(documents(store), PLACE).read().epoch == 1
        await kept.end()
        # Given back: emptied, with the epoch kept.
        lock = read_lock(documents(store), PLACE)
        assert (lock.holder, lock.epoch) == ("", 1)

    run(story)


def test_changes_of_state_and_decision_are_told(bucket: Options) -> None:
    store = connect(bucket)

    async def story() -> None:
        leader, watcher = Kept(store), Kept(store, holder="west")
        both = leader, watcher
        await leader.until(lambda: any(kept.of("leader_acquired") for kept in both), "leading")
        epoch = read_lock(documents(store), PLACE).epoch
        state = StateStore(documents(store), PLACE).write(epoch, {"step": "Moving", "decision": {"cluster": "west"}})
        Decision(documents(store), PLACE).publish(state)
        for kept in both:
            decided = (await kept.until(lambda kept=kept: kept.of("decision_changed"), "a decision"))[-1]
            assert decided["decision"] == {"cluster": "west"}
            assert decided["previous"] == {}
            changed = kept.of("state_changed")[-1]
            assert (changed["revision"], changed["epoch"], changed["state"]["step"]) == (state.revision, epoch, "Moving")
        assert len(watcher.of("decision_changed")) == 1
        assert sum(len(kept.of("leader_acquired")) for kept in both) == 1
        await leader.end()
        await watcher.end()

    run(story)


def test_a_leader_whose_store_hangs_is_told_to_stop_while_it_hangs(faulty: tuple[Proxy, Options], bucket: Options) -> None:
    proxy, options = faulty

    async def story() -> None:
        kept = Kept(connect(options), ttl=6.0)
        await kept.until(lambda: kept.of("leader_acquired"), "leading")
        proxy.faults = [Fault(times=10_000, hold=30.0, forwarded=False)]
        lost = (await kept.until(lambda: kept.of("leader_lost"), "losing"))[0]
        assert lost["epoch"] == 1
        assert "in time" in lost["reason"] or "could not be renewed" in lost["reason"]
        assert not kept.keeper.leases[0].acting()
        # Nobody else could have taken over yet: the leader has stopped before.
        other = Lease(connect(bucket), PLACE, "west", "west-1", 6.0)
        assert not other.attempt()
        proxy.faults = []
        again = await kept.until(lambda: kept.of("leader_acquired")[1:], "leading again")
        assert again[0]["epoch"] == 2
        await kept.end()

    run(story)


def test_events_that_nobody_takes_delay_no_renewal(faulty: tuple[Proxy, Options], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lease, "renew_every", 1.0)
    proxy, options = faulty
    store = connect(options)

    async def story() -> None:
        async def never(_event: Event) -> None:
            await asyncio.Event().wait()

        keeper = LeaseManager(store, Settings([PLACE], "east", TTL, POLL))
        task = asyncio.create_task(keeper.run(never))
        async with asyncio.timeout(120):
            while proxy.count("PUT", "/lock") < 6:  # noqa: ASYNC110 - a lease has no event of its own
                await asyncio.sleep(0.1)
        assert keeper.leases[0].acting()
        assert keeper.leases[0].epoch == 1
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    run(story)


def test_many_leases_are_held_over_few_connections(faulty: tuple[Proxy, Options], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lease, "renew_every", 4.0)
    proxy, options = faulty
    places = [Place("shop", f"place-{number}") for number in range(60)]
    store = connect(options, connections=4)

    async def story() -> None:
        kept = Kept(store, places=places, ttl=36.0, poll=2.0, connections=4)
        await kept.until(lambda: len(kept.of("leader_acquired")) == len(places), "leading everywhere")
        renewed = proxy.count("PUT", "/lock")
        await kept.until(lambda: proxy.count("PUT", "/lock") >= renewed + 2 * len(places), "two renewals each")
        assert kept.of("leader_lost") == []
        assert all(lease.acting() for lease in kept.keeper.leases)
        assert {event["epoch"] for event in kept.of("leader_acquired")} == {1}
        # What has not changed is polled without content.
        polled = [status for method, path, status in proxy.passed[-200:] if method == "GET" and path.endswith("/state")]
        assert set(polled) == {304}
        assert proxy.busiest <= 4
        await kept.end()

    run(story)
    assert [str(place) for place in places if read_lock(documents(store, place), place).held] == []


def test_health_of_clusters_is_told_and_silence_is_not_called_down(bucket: Options, hub: Access) -> None:
    store = connect(bucket)

    async def story() -> None:
        probe = probe_of({"kubeconfig": str(hub.kubeconfig)})
        east = Kept(store, cluster="east", probe=probe, health_interval=3.0)
        west = Kept(store, holder="west", cluster="west", health_interval=3.0)
        first = await west.until(lambda: west.of("cluster_health_changed")[1:], "two clusters")
        assert {event["cluster"] for event in west.of("cluster_health_changed")} == {"east", "west"}
        assert {event["health"] for event in west.of("cluster_health_changed")} == {"healthy"}
        assert first
        await east.end()
        silent = (await west.until(lambda: west.of("cluster_health_changed")[2:], "silence"))[0]
        assert (silent["cluster"], silent["health"], silent["previous"]) == ("east", "unknown", "healthy")
        assert "no report" in silent["reason"]
        ClusterHealth(store, "east").report("unreachable", "no answer", 60)
        told = (await west.until(lambda: west.of("cluster_health_changed")[3:], "a new report"))[0]
        assert (told["health"], told["reason"]) == ("unreachable", "no answer")
        await west.end()

    run(story)


def test_a_status_that_cannot_be_read_hides_no_other_cluster(bucket: Options) -> None:
    store = connect(bucket)
    # All of them come before the one that is well.
    for key in ("clusters/status", "clusters/A_b/status", "clusters/a/status", "clusters/b/c/status"):
        store.create(key, b"not ours")
    ClusterHealth(store, "west").report("healthy")

    async def story() -> None:
        kept = Kept(store)
        await kept.until(lambda: kept.of("cluster_health_changed"), "health")
        # One that is put right is told of, as if nothing had been.
        store.delete("clusters/a/status")
        ClusterHealth(store, "a").report("unreachable", "no answer")
        await kept.until(lambda: len(kept.of("cluster_health_changed")) > 1, "health of the other")
        assert [(event["cluster"], event["health"]) for event in kept.of("cluster_health_changed")] == [
            ("west", "healthy"),
            ("a", "unreachable"),
        ]
        await kept.end()

    run(story)


def test_refused_credentials_are_not_called_unreachable(hub: Access) -> None:
    access = yaml.safe_load(hub.kubeconfig.read_text())
    server, authority = (access["clusters"][0]["cluster"][name] for name in ("server", "certificate-authority-data"))
    cluster = {"name": "c", "cluster": {"server": server, "certificate-authority-data": authority}}
    content = {"clusters": [cluster], "users": [{"name": "u", "user": {"token": "wrong"}}], "current-context": "x"}
    content["contexts"] = [{"name": "x", "context": {"cluster": "c", "user": "u"}}]
    assert probe_of({"kubeconfig": str(hub.kubeconfig)})() == ("healthy", "")
    assert probe_of({"kubeconfig": content})()[0] == "unauthorized"
    cluster["cluster"]["server"] = "https://127.0.0.1:9"
    assert probe_of({"kubeconfig": content})()[0] == "unreachable"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_api_server_that_never_answers_is_asked_once_and_not_for_long(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert coordination_probe.SECONDS <= 5
    monkeypatch.setattr(coordination_probe, "SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        host = f"{scheme}://127.0.0.1:{mute.getsockname()[1]}"
        found: list[tuple[str, str]] = []
        probe = threading.Thread(target=lambda: found.append(probe_of({"host": host, "api_key": "x"})()), daemon=True)
        probe.start()
        connections = [mute.accept()[0]]
        probe.join(60)
        mute.settimeout(1)
        with suppress(TimeoutError):
            connections.append(mute.accept()[0])
        for connection in connections:
            connection.close()
    assert len(connections) == 1
    assert [state for state, _reason in found] == ["unreachable"]


# The event source in a real ansible-rulebook


@contextmanager
def rulebook(folder: Path, name: str, options: Options) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A process that contends for the place, and the file that it writes its events to."""
    source = options | {"holder": name, "places": ["shop/database"], "ttl": TTL, "poll_interval": POLL}
    rule = {
        "name": "Tell",
        "condition": "event.type is defined",
        "action": {"debug": {"msg": "TOLD {{ event.type }} {{ event.epoch | default(0) }}"}},
    }
    book = [{"name": name, "hosts": "all", "sources": [{"openfleet.clusters.s3_coordination": source}], "rules": [rule]}]
    (folder / f"{name}.yml").write_text(yaml.safe_dump(book))
    output = folder / f"{name}.log"
    collections = {"ANSIBLE_COLLECTIONS_PATH": str(Path(sys.prefix) / "collections")}
    with output.open("wb") as log:
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / "ansible-rulebook"), "-r", str(folder / f"{name}.yml")],
            cwd=folder,
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"} | collections,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process, output
    finally:
        process.kill()
        process.wait()


def test_a_killed_leader_is_followed_and_one_that_ends_gives_back(bucket: Options, tmp_path: Path) -> None:
    store = connect(bucket)

    def leads(name: str, epoch: int) -> bool:
        lock = read_lock(documents(store), PLACE)
        return (lock.holder, lock.epoch) == (name, epoch)

    with rulebook(tmp_path, "east", bucket) as (east, told_east):
        until(lambda: "TOLD leader_acquired 1" in told_east.read_text(), "east leads")
        with rulebook(tmp_path, "west", bucket) as (west, told_west):
            until(lambda: "TOLD state_changed" in told_west.read_text(), "west watches")
            assert leads("east", 1)
            assert "leader_acquired" not in told_west.read_text()
            east.kill()
            until(lambda: "TOLD leader_acquired 2" in told_west.read_text(), "west leads")
            assert leads("west", 2)
            west.send_signal(signal.SIGTERM)
            assert west.wait(60) == 0, told_west.read_text()
    lock = read_lock(documents(store), PLACE)
    assert (lock.holder, lock.epoch) == ("", 2), told_west.read_text()
    # So the next needs not wait for anything to expire.
    assert Lease(store, PLACE, "next", "next-1", TTL).attempt()


def test_source_refuses_a_store_without_conditions(faulty: tuple[Proxy, Options], tmp_path: Path) -> None:
    proxy, options = faulty
    proxy.strips_conditions = True
    with rulebook(tmp_path, "east", options) as (process, told):
        assert process.wait(120) != 0
    assert "does not honour conditional writes" in told.read_text()
    assert [path for _method, path, _status in proxy.passed if "/drpc-" in path] == []


SOURCE = Path(sys.prefix) / "collections/ansible_collections/openfleet/clusters/extensions/eda/plugins/event_source/s3_coordination.py"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"bucket": ""}, "argument bucket is required"),
        ({"places": []}, "one place at least"),
        ({"places": ["database"]}, "'database' is no place"),
        ({"places": ["a/b", {"namespace": "a", "name": "b"}]}, "more than once: a/b"),
        ({"places": ["A/b"]}, "is no name"),
        ({"place": ["a/b"]}, r"argument place is not known to this event source \(did you mean places"),
        ({"ttl": "long", "connections": "2.5"}, "argument ttl must be a number, .*; argument connections must be an integer"),
        ({"places": "a/b"}, "argument places must be a list"),
        ({"encryption_mode": "rot13"}, 'encryption_mode must be one of "AES256", "aws:kms"'),
        ({"secret_key": {"hunter2": 1}}, "argument secret_key must be a string, not an object"),
        ({"kubernetes": {"kubconfig": "a"}, "cluster": "c"}, r"argument kubernetes.kubconfig is not known"),
        ({"poll_interval": 0}, "more than 0"),
        ({"connections": 1}, "one each at least"),
        ({"kubernetes": {}}, "argument kubernetes needs cluster, too"),
    ],
)
def test_bad_arguments_of_the_source_get_one_clear_message(changes: Options, expected: str) -> None:
    module = runpy.run_path(str(SOURCE))
    with pytest.raises(Exception, match=expected) as raised:
        module["settings_of"](module["checked"]({"bucket": "agreements", "places": ["a/b"]} | changes))
    assert type(raised.value).__name__ == "BadOptions"


def test_unset_variables_of_a_rulebook_leave_the_defaults_of_the_source() -> None:
    module = runpy.run_path(str(SOURCE))
    unset = {"holder": "", "cluster": "", "ttl": "", "endpoint_url": "", "validate_certs": ""}
    wanted = {"bucket": "agreements", "places": ["a/b"]}
    assert module["checked"](wanted | unset) == module["checked"](wanted)
    typed = module["checked"](wanted | {"ttl": "12.5", "path_style": "yes", "aws_region": "north"})
    assert (typed["ttl"], typed["path_style"], typed["region"]) == (12.5, True, "north")
