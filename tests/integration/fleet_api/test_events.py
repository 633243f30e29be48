"""Event streams of the REST API: present state, changes, resuming after the last event, slow clients, several replicas."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, CLUSTER

from ..support.fleet import TEMPLATE
from ..support.fleet_api import API, Client, Event, Facade, Site, Stream, Tenant

LARGE = {"note": "x" * 200000}


def create(client: Client, name: str, **spec: Any) -> dict[str, Any]:
    answer = client.post("/clusters", {"name": name, "spec": {"template": TEMPLATE, **spec}})
    assert answer.status == 202, answer.body
    created: dict[str, Any] = answer.json()
    return created


def names_at(client: Client) -> set[str]:
    return {each["name"] for each in client.get("/clusters").json()["items"]}


@contextlib.contextmanager
def stream_of(client: Client, path: str = "/events", last: str = "") -> Iterator[Stream]:
    stream = Stream(client, path, last)
    try:
        yield stream
    finally:
        stream.close()


@contextlib.contextmanager
def resumed_after(client: Client, last: str) -> Iterator[tuple[Event, Stream]]:
    """A stream that goes on after an event, with its first event.

    A service that was restarted asks the API server for what it missed. If the answer takes too long, the stream begins with a reset: then
    this client reconnects.
    """
    for _attempt in range(10):
        with stream_of(client, last=last) as stream:
            first = stream.next()
            if first.name != "reset":
                yield first, stream
                return
    raise AssertionError("each stream began with a reset")


def test_stream_has_the_present_state_and_then_changes(tenant: Tenant) -> None:
    first = create(tenant.client, "first")
    with stream_of(tenant.client) as stream:
        added = stream.next()
        assert (added.name, added.data, added.id) == ("added", first, first["resourceVersion"])
        assert stream.next().name == "synced"
        second = create(tenant.client, "second")
        assert stream.until("added").data == second
        tenant.client("PATCH", f"/clusters/{second['id']}", {"spec": {"priority": 3}})
        assert stream.until("modified").data["spec"]["priority"] == 3
        tenant.client("DELETE", f"/clusters/{first['id']}")
        assert stream.until("deleted").data == {"id": first["id"], "name": "first", "tenant": tenant.name}


def test_client_that_comes_back_gets_what_it_missed_from_any_replica_and_after_a_restart(site: Site, tenant: Tenant) -> None:
    replicas = [site.start() for _number in range(2)]
    clients = [tenant.at(each) for each in replicas]
    kept, gone = create(tenant.client, "kept"), create(tenant.client, "gone")
    until(lambda: names_at(clients[0]) == {"kept", "gone"}, "the replica has both clusters")
    with stream_of(clients[0]) as stream:
        last = stream.until("synced").id
    tenant.client("DELETE", f"/clusters/{gone['id']}")
    tenant.client("PATCH", f"/clusters/{kept['id']}", {"spec": {"priority": 3}})
    new = create(tenant.client, "new")
    expected = [("deleted", gone["id"]), ("modified", kept["id"]), ("modified", new["id"])]
    replicas[0].kill()
    replicas[0].start()  # it lists after the deletion, and asks the API server for it
    until(lambda: names_at(clients[1]) == {"kept", "new"}, "the other replica has the changes")
    for client in clients:
        with resumed_after(client, last) as (first, resumed):
            events = [first, *(resumed.next() for _each in expected[1:])]
            assert [(event.name, event.data["id"]) for event in events] == expected
            latest = create(tenant.client, f"latest-{clients.index(client)}")
            assert resumed.until("added", id=latest["id"]).data == latest  # not that of the first client, which may come late here
    with stream_of(clients[0], last=new["resourceVersion"]) as resumed:  # what it had is not repeated
        assert resumed.next().data["name"] == "latest-0"


def test_client_lists_and_watches_from_there(tenant: Tenant) -> None:
    create(tenant.client, "before")
    version = tenant.client.get("/clusters").json()["resourceVersion"]
    created = create(tenant.client, "after")
    with stream_of(tenant.client, last=version) as stream:
        assert stream.next().data == created


def test_stream_of_a_filter_shows_what_begins_and_ceases_to_match(tenant: Tenant) -> None:
    cluster = create(tenant.client, "demo", priority=1)
    with stream_of(tenant.client, "/events?filter=priority%20%3E%202") as stream:
        assert stream.next().name == "synced"
        for priority, expected in ((3, "added"), (4, "modified"), (1, "deleted")):
            tenant.client("PATCH", f"/clusters/{cluster['id']}", {"spec": {"priority": priority}})
            assert stream.next().name == expected


def test_id_that_is_too_old_or_of_the_future_is_a_reset_and_the_stream_goes_on(tenant: Tenant) -> None:
    for last in ("1", str(2**62)):
        with stream_of(tenant.client, last=last) as stream:
            assert stream.next().name == "reset"
            created = create(tenant.client, f"after-{last[0]}")
            assert stream.next().data == created


@pytest.mark.parametrize("last", ["x", "0", "-1", "1.5", "9" * 30])
def test_id_that_is_none_of_an_event_is_refused(tenant: Tenant, last: str) -> None:
    answer = tenant.client.get("/events", Last_Event_ID=last)
    assert (answer.status, answer.code) == (400, "invalid-request")
    assert answer.json()["errors"][0]["field"] == "Last-Event-ID"


@pytest.mark.parametrize("expression", ["nodes", "name%20%3D%3D", "unknown%20%3D%3D%201", "priority%20%3E%20%22a%22"])
def test_stream_with_a_bad_filter_is_refused(tenant: Tenant, expression: str) -> None:
    answer = tenant.client.get(f"/events?filter={expression}")
    assert (answer.status, answer.code) == (400, "invalid-filter")


@pytest.fixture(scope="module")
def brisk(site: Site) -> Facade:
    """A replica with short times."""
    watch = {"heartbeat_seconds": 0.2, "queued_events": 5, "send_seconds": 2, "stream_seconds": 600}
    limits = {"requests_per_second": 10000, "burst": 100000, "streams_per_user": 2}
    return site.start(watch=watch, limits=limits)


def test_slow_client_is_disconnected_and_a_quick_one_is_not(site: Site, tenant: Tenant, brisk: Facade) -> None:
    create(tenant.client, "demo", templateParameters=LARGE)
    request = f"GET {API}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {tenant.client.token}\r\n\r\n"
    with stream_of(tenant.at(brisk)) as quick, socket.create_connection(("127.0.0.1", brisk.port), timeout=60) as slow:
        quick.until("synced")
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(request.encode())
        assert slow.recv(100).startswith(b"HTTP/1.1 200"), "its stream is open, and it reads no more of it"
        stored = site.home.kube.get(API_VERSION, CLUSTER, "demo", tenant.name)
        sent = 0
        deadline = time.monotonic() + 120
        while sent == 0 or (streams_of(brisk) > 1 and time.monotonic() < deadline):
            for _change in range(5):
                sent += 1
                site.home.kube.patch(stored, {"spec": {"priority": sent % 100}}, checked=False)
                assert quick.until("modified").data["spec"]["priority"] == sent % 100
        assert streams_of(brisk) == 1
        with contextlib.suppress(ConnectionError):
            while slow.recv(65536):
                pass


def streams_of(facade: Facade) -> int:
    line = next(line for line in facade.metrics().splitlines() if line.startswith("openfleet_api_streams "))
    return int(float(line.split()[1]))


def test_stream_has_heartbeats_and_a_user_has_a_limited_number_of_streams(tenant: Tenant, brisk: Facade) -> None:
    client = tenant.at(brisk)
    with stream_of(client) as stream, stream_of(client):
        assert client.get("/events").code == "rate-limited"
        stream.until("synced")
        numbers = itertools.count()

        def has_heartbeats() -> bool:
            """The stream is read only up to the next event."""
            create(tenant.client, f"demo-{next(numbers)}")
            stream.until("added")
            return stream.comments >= 2

        until(has_heartbeats, "heartbeats come between two events", 60)


def test_stream_ends_when_the_caller_loses_the_permission(site: Site, tenant: Tenant, brisk: Facade) -> None:
    with stream_of(tenant.at(brisk)) as stream:
        stream.until("synced")
        binding = site.bind(tenant.name, "openfleet-fleet-tenant", name="user")
        site.home.kube.delete(binding)
        with pytest.raises(EOFError):
            stream.next()


def test_streams_end_when_the_service_does(site: Site, tenant: Tenant) -> None:
    facade = site.start()
    with stream_of(Client(facade.address, tenant.client.token)) as stream:
        stream.until("synced")
        assert facade.stop() == 0
        with pytest.raises(EOFError):
            stream.next()
