"""A copy of a kind stays true to a server that fails in every way: it resumes, lists again, waits longer, and forgets what is gone."""

from __future__ import annotations

import asyncio
import json
import queue
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import informer
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.informer import Informer
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import ObjectList, WatchEvent
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Forbidden, Gone, Unreachable

TIMEOUT_SECONDS = 20


def item(name: str, version: int, uid: str = "") -> dict[str, Any]:
    return {"metadata": {"namespace": "n", "name": name, "uid": uid or name, "resourceVersion": str(version), "managedFields": ["long"]}}


class Server:
    """What a watch and a list answer, one after the other. A watch goes on until its events end with an error or with None."""

    def __init__(self, *lists: Any) -> None:
        self.lists = list(lists)
        self.events: queue.Queue[Any] = queue.Queue()
        self.listed = 0
        self.since: list[str] = []

    def list_all(self, *_what: Any, **_selectors: str) -> ObjectList:
        self.listed += 1
        answer = self.lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        listed = ObjectList(answer)
        listed.resource_version = str(max([int(entry["metadata"]["resourceVersion"]) for entry in answer], default=1))
        return listed

    def watch(self, *_what: Any, since: str, **_options: Any) -> Iterator[WatchEvent]:
        self.since.append(since)
        return self._events()

    def _events(self) -> Iterator[WatchEvent]:
        while event := self.events.get():
            if isinstance(event, Exception):
                raise event
            yield event

    def see(self, kind: str, entry: dict[str, Any]) -> None:
        self.events.put(WatchEvent(kind, entry))


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not condition():  # noqa: ASYNC110 - what is waited for comes from another thread
            await asyncio.sleep(0.005)


def play(server: Server, scenario: Callable[[Informer, list[Any]], Any]) -> None:
    async def main() -> None:
        changes: list[Any] = []

        def changed(before: Any, after: Any) -> None:
            changes.append(tuple(entry and entry["metadata"]["resourceVersion"] for entry in (before, after)))

        informer = Informer(server, "v1", "Thing", changed)  # type: ignore[arg-type]
        task = asyncio.create_task(informer.follow())
        try:
            await scenario(informer, changes)
        finally:
            task.cancel()
            server.events.put(None)

    asyncio.run(main())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer, "FIRST_RETRY_SECONDS", 0.001)
    monkeypatch.setattr(informer, "LAST_RETRY_SECONDS", 0.01)


def test_it_lists_and_then_follows_from_there() -> None:
    server = Server([item("a", 3), item("b", 5)])

    async def scenario(informer: Informer, changes: list[Any]) -> None:
        await until(lambda: server.since)
        await until(lambda: informer.broken_for() == 0)
        assert server.since == ["5"] and informer.listed.is_set()
        server.see("ADDED", item("c", 6))
        server.see("MODIFIED", item("a", 7))
        server.see("DELETED", item("b", 8))
        server.see("BOOKMARK", {"metadata": {"resourceVersion": "20"}})
        await until(lambda: len(changes) == 5)
        assert changes == [(None, "3"), (None, "5"), (None, "6"), ("3", "7"), ("5", None)]
        assert sorted(entry["metadata"]["name"] for entry in informer.below("n")) == ["a", "c"]
        assert "managedFields" not in informer.below("n")[0]["metadata"]
        assert informer.get(Key("n", "b")) is None

    play(server, scenario)


def test_a_broken_watch_is_resumed_where_it_stood_and_not_listed_again() -> None:
    server = Server([item("a", 3)])

    async def scenario(informer: Informer, changes: list[Any]) -> None:
        await until(lambda: server.since)
        server.see("BOOKMARK", {"metadata": {"resourceVersion": "9"}})
        server.events.put(Unreachable("down"))
        await until(lambda: len(server.since) == 2)
        server.events.put(None)  # the server ends it, as it does from time to time
        await until(lambda: len(server.since) == 3)
        assert server.since == ["3", "9", "9"] and server.listed == 1 and informer.restarts == 2
        assert changes == [(None, "3")]

    play(server, scenario)


def test_what_is_too_old_to_resume_is_listed_again_and_what_went_meanwhile_is_reported() -> None:
    server = Server([item("a", 3), item("b", 4)], [item("a", 3), item("c", 9)])

    async def scenario(informer: Informer, changes: list[Any]) -> None:
        await until(lambda: server.since)
        server.events.put(Gone("too old"))
        await until(lambda: len(server.since) == 2)
        assert server.since == ["4", "9"]
        assert changes == [(None, "3"), (None, "4"), ("4", None), (None, "9")]
        assert sorted(entry["metadata"]["name"] for entry in informer.all()) == ["a", "c"]

    play(server, scenario)


@pytest.mark.parametrize("fault", [Unreachable("down"), Forbidden("no"), ValueError("no JSON"), KeyError("metadata")])
def test_no_fault_of_the_server_ends_it(fault: Exception) -> None:
    server = Server(fault, fault, fault, [item("a", 3)])

    async def scenario(informer: Informer, _changes: list[Any]) -> None:
        assert informer.broken_for() > 0 and not informer.listed.is_set()
        await until(lambda: server.since)
        await until(lambda: informer.broken_for() == 0)

    play(server, scenario)


def test_an_object_that_cannot_be_handled_does_not_hide_the_others() -> None:
    server = Server([item("a", 3), item("b", 4)])

    async def main() -> None:
        observed = []

        def changed(_before: Any, after: Any) -> None:
            if after["metadata"]["name"] == "a":
                raise KeyError("spec")
            observed.append(after["metadata"]["name"])

        task = asyncio.create_task(Informer(server, "v1", "Thing", changed).follow())  # type: ignore[arg-type]
        await until(lambda: observed == ["b"])
        task.cancel()
        server.events.put(None)

    asyncio.run(main())


def test_a_write_of_our_own_is_not_undone_by_what_was_before_it() -> None:
    server = Server([item("a", 3)])

    async def scenario(informer: Informer, changes: list[Any]) -> None:
        await until(lambda: server.since)
        informer.remember(item("a", 8))
        informer.remember(item("a", 9, uid="another"))
        informer.remember(item("gone", 9))
        for version in (7, 8):
            server.see("MODIFIED", item("a", version))
        server.see("MODIFIED", item("a", 10))
        await until(lambda: len(changes) == 2)
        assert changes == [(None, "3"), ("8", "10")]
        server.see("ADDED", item("a", 11, uid="another"))
        await until(lambda: len(changes) == 4)
        assert changes[2:] == [("10", None), (None, "11")], "what was there before is gone"

    play(server, scenario)


def test_equal_strings_of_two_objects_are_stored_once() -> None:
    def loaded(name: str) -> Any:
        """As from two answers of a server, which share no string."""
        return json.loads(json.dumps(item(name, 3) | {"status": {"phase": "NotInterned yet", "long": "x" * 500}}))

    async def scenario(informer: Informer, changes: list[Any]) -> None:
        await until(lambda: len(changes) == 2)
        one, other = informer.below("n")
        assert one["status"]["phase"] is other["status"]["phase"]
        assert next(iter(one["status"])) is next(iter(other["status"]))
        assert one["status"]["long"] == other["status"]["long"] == "x" * 500

    play(Server([loaded("a"), loaded("b")]), scenario)
