"""Subscriptions of event streams, the views of clients, and small parts: rate limit, entity tags, catalogue of errors."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.fleet_api.handlers.answers import is_unmodified, required_version
from ansible_collections.openfleet.clusters.extensions.fleet_api.handlers.events import View, parse_version
from ansible_collections.openfleet.clusters.extensions.fleet_api.logic.rate_limit import RateLimit
from ansible_collections.openfleet.clusters.extensions.fleet_api.logic.stream_limit import StreamLimit
from ansible_collections.openfleet.clusters.extensions.fleet_api.problems import KINDS, Problem
from ansible_collections.openfleet.clusters.extensions.fleet_api.stores.changes import Change, Lagging, Missed, Subscription
from ansible_collections.openfleet.clusters.extensions.fleet_api.stores.expiring import Expiring
from ansible_collections.openfleet.clusters.extensions.fleet_api.stores.identity import Caller, caller_of


def item(state: str = "Ready", tenant: str = "a", version: int = 5) -> dict[str, Any]:
    metadata = {"uid": "u", "name": "n", "namespace": tenant, "resourceVersion": str(version), "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "spec": {"template": "t"}, "status": {"state": state}}


def is_ready(found: dict[str, Any]) -> bool:
    return bool(found["status"]["state"] == "Ready")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change("ADDED", 5, item()), "added"),
        (Change("ADDED", 5, item("Failed")), None),
        (Change("MODIFIED", 5, item(), item()), "modified"),
        (Change("MODIFIED", 5, item(), item("Failed")), "added"),
        (Change("MODIFIED", 5, item("Failed"), item()), "deleted"),
        (Change("MODIFIED", 5, item("Failed"), item("Failed")), None),
        (Change("MODIFIED", 5, item()), "modified"),
        (Change("MODIFIED", 5, item("Failed")), "deleted"),
        (Change("DELETED", 5, item(), item()), "deleted"),
        (Change("DELETED", 5, item("Failed"), item("Failed")), None),
        (Change("DELETED", 5, {"metadata": item()["metadata"]}), "deleted"),
        (Change("ADDED", 5, item(tenant="b")), None),
        (Change("MODIFIED", 5, item(tenant="b")), None),
        (Change("DELETED", 5, {"metadata": item(tenant="b")["metadata"]}), None),
    ],
)
def test_client_gets_the_changes_of_its_tenants_and_filter(change: Change, expected: str | None) -> None:
    event = View(("a",), is_ready).event(change)
    assert (event and event[0]) == expected


def test_operator_gets_the_changes_of_all_tenants() -> None:
    assert View(None, None).event(Change("DELETED", 5, item(tenant="b")))


def test_slow_client_is_cut_and_the_others_go_on() -> None:
    async def run() -> None:
        slow, quick = Subscription(lambda _change: True, 3), Subscription(lambda _change: True, 3)
        for version in range(4):
            for each in (slow, quick):
                each.offer(Change("ADDED", version, item()))
            assert (await quick.next(1)) is not None
        await asyncio.wait_for(slow.overflow(), 1)
        with pytest.raises(Lagging):
            await slow.next(1)

    asyncio.run(run())


def test_missed_changes_are_reported_once() -> None:
    async def run() -> None:
        subscription = Subscription(lambda _change: True, 3)
        subscription.offer(Change("ADDED", 1, item()))
        subscription.end(Missed)
        with pytest.raises(Missed):
            await subscription.next(1)
        subscription.resume()
        assert await subscription.next(0.01) is None

    asyncio.run(run())


@pytest.mark.parametrize("text", ["0", "-1", "a", "1.5", "٣", str(2**63), "9" * 64, " 5"])
def test_id_that_no_event_has_is_refused(text: str) -> None:
    with pytest.raises(Problem):
        parse_version(text)


def test_id_of_an_event_is_its_version() -> None:
    assert (parse_version(None), parse_version(""), parse_version("17")) == (None, None, 17)


def test_streams_of_a_user_are_counted() -> None:
    limit = StreamLimit(1)
    with limit.one_of("a"), limit.one_of("b"):
        with pytest.raises(Problem), limit.one_of("a"):
            pass
        assert limit.total == 2
    with limit.one_of("a"):
        assert limit.total == 1


def test_rate_is_limited_by_user_and_recovers() -> None:
    now = [0.0]
    limit = RateLimit(2, 3, lambda: now[0])
    assert [limit.take("a") for _request in range(4)] == [0, 0, 0, 1]
    assert limit.take("b") == 0
    now[0] = 1.0
    assert [limit.take("a") for _request in range(3)] == [0, 0, 1]


def test_cache_forgets_by_time_and_number() -> None:
    now = [0.0]
    cache: Expiring[int] = Expiring(5, 2, lambda: now[0])
    for number in range(3):
        cache.put(number, number)
    assert [cache.get(number) for number in range(3)] == [None, 1, 2]
    now[0] = 5.0
    assert cache.get(2) is None


@pytest.mark.parametrize(
    ("tags", "expected"),
    [(None, None), ("*", None), ('"5"', "5"), ('"4", "5"', "5"), ('W/"5"', Problem), ('"4"', Problem), ("5", Problem), ('"5', Problem)],
)
def test_write_is_for_the_version_of_its_tag(tags: str | None, expected: Any) -> None:
    if expected is Problem:
        with pytest.raises(Problem):
            required_version(tags, item())
    else:
        assert required_version(tags, item()) == expected


def test_read_is_unmodified_for_the_tag_that_the_client_has() -> None:
    assert [is_unmodified(tags, item()) for tags in (None, '"5"', 'W/"5"', "*", '"6"')] == [False, True, True, True, False]


@pytest.mark.parametrize(
    "user",
    [
        {},
        {"username": "é"},
        {"username": "a\r\nImpersonate-User: b"},
        {"username": " a"},
        {"username": "a" * 600},
        {"username": "a", "groups": ["b\n"]},
        {"username": "a", "groups": ["g"] * 300},
        {"username": "a", "extra": {"k": ["\0"]}},
    ],
)
def test_user_that_no_request_can_be_sent_as_is_refused(user: dict[str, Any]) -> None:
    assert caller_of(user) is None


def test_caller_is_the_subject_of_role_bindings() -> None:
    subjects = {*Caller("system:serviceaccount:ns:name", ("system:serviceaccounts",)).subjects()}
    assert {("ServiceAccount", "ns:name"), ("User", "system:serviceaccount:ns:name"), ("Group", "system:authenticated")} <= subjects
    assert Caller("a", ("b",)).key != Caller("a", ("b", "c")).key


def test_errors_say_what_to_do() -> None:
    for kind in KINDS.values():
        assert 400 <= kind.status < 600
        assert kind.action.endswith(".")
