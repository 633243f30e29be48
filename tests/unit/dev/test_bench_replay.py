"""The replay of recorded requests in the benchmark: order of requests, how many at a time, values of earlier responses."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from email.message import Message

import pytest
from ansible_collections.openfleet.clusters.extensions.dev.bench.floor import Response
from ansible_collections.openfleet.clusters.extensions.dev.bench.recorder import Request, values_in
from ansible_collections.openfleet.clusters.extensions.dev.bench.replay import CONNECTIONS, Replay, dependencies

PATH = "/apis/example.com/v1/namespaces/orders/things"
DEADLINE_SECONDS = 60


def thing(name: str, version: str) -> str:
    metadata = {"namespace": "orders", "name": name, "uid": f"uid-of-{name}", "resourceVersion": version}
    return json.dumps({"metadata": metadata})


def request(name: str, version: str, body: str = "", repeats: tuple[str, ...] = (), status: int = 200) -> Request:
    return Request("PUT", f"{PATH}/{name}", "application/json", body, status, values_in(thing(name, version)), repeats)


@dataclass
class Server:
    """Answers each request with the next version of the object; holds requests back until `together` have arrived."""

    together: int = 1
    received: list[tuple[str, str]] = field(default_factory=list)
    most: int = 0
    _active: int = 0
    _arrived: threading.Condition = field(default_factory=threading.Condition)

    def exchange(self, _method: str, path: str, body: str | None, _content_type: str) -> Response:
        name = path.rpartition("/")[2]
        with self._arrived:
            self.received.append((name, body or ""))
            version = f"new-{len(self.received)}"
            self._active += 1
            self.most = max(self.most, self._active)
            self._arrived.notify_all()
            assert self._arrived.wait_for(lambda: self.most >= self.together, DEADLINE_SECONDS)
            self._active -= 1
        return Response(200, Message(), thing(name, version))


def three_each(orders: int) -> list[Request]:
    """A read and two writes of each order; a write repeats the version of the response before it."""
    found = []
    for number in range(orders):
        versions = [f"version-{number}-{step}" for step in range(3)]
        found.append(request(f"old-{number}", versions[0]))
        found += [
            request(f"old-{number}", versions[step], json.dumps({"step": step, "version": versions[step - 1]}), (versions[step - 1],))
            for step in (1, 2)
        ]
    return found


def test_requests_of_different_orders_are_sent_at_the_same_time() -> None:
    server = Server(together=CONNECTIONS)
    Replay(three_each(2 * CONNECTIONS), "old-", "new-").concurrent(lambda: server)
    assert server.most == CONNECTIONS
    assert len(server.received) == 6 * CONNECTIONS


def test_requests_of_one_order_are_sent_in_their_order_with_the_versions_of_the_replay() -> None:
    server = Server()
    Replay(three_each(20), "old-", "fresh-").concurrent(lambda: server)
    versions = {number + 1: name for number, (name, _body) in enumerate(server.received)}
    for order in range(20):
        bodies = [json.loads(body) if body else {} for name, body in server.received if name == f"fresh-{order}"]
        assert [body.get("step", 0) for body in bodies] == [0, 1, 2]
        for body in bodies[1:]:
            assert versions[int(body["version"].removeprefix("new-"))] == f"fresh-{order}"


def test_serial_replay_sends_one_request_at_a_time() -> None:
    server = Server()
    Replay(three_each(5), "old-", "fresh-").serial(server)
    assert server.most == 1
    assert [name for name, _body in server.received] == [f"fresh-{order}" for order in range(5) for _step in range(3)]


def test_request_waits_for_the_response_whose_value_it_repeats_also_of_another_order() -> None:
    listed = request("all", "version-of-all")
    requests = [request("old-1", "a"), listed, request("old-2", "b", '"version-of-all"', ("version-of-all",)), request("old-1", "c")]
    assert dependencies(requests, "old-") == [set(), set(), {1}, {0}]


@pytest.mark.parametrize("concurrent", [False, True])
def test_response_with_another_status_than_recorded_is_an_error(concurrent: bool) -> None:
    server, replay = Server(), Replay([request("old-1", "a", status=409)], "old-", "fresh-")
    with pytest.raises(RuntimeError, match="the response was 409"):
        replay.concurrent(lambda: server) if concurrent else replay.serial(server)
