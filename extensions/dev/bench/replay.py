"""Recorded requests sent again for other orders from one bare process: one after the other, or as many at a time as a client may.

An object has another uid and another version the second time. Where a request repeats a value of an earlier response, the replay
sends the value of that response's replay.
"""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from graphlib import TopologicalSorter
from typing import Protocol

from .floor import Response
from .recorder import Request, values_in

CONNECTIONS = 16  # as many as the collection's own client has


class Client(Protocol):
    def exchange(self, method: str, path: str, body: str | None, content_type: str) -> Response: ...


class Replay:
    """The requests of a run, with the name prefix `new` instead of `old` in all names."""

    def __init__(self, requests: Sequence[Request], old: str, new: str) -> None:
        self._requests = requests
        self._old, self._new = old, new
        self._values: dict[str, str] = {}

    def serial(self, client: Client) -> None:
        """Send them one after the other."""
        for number in range(len(self._requests)):
            self._send(client, number)

    def concurrent(self, connect: Callable[[], Client], connections: int = CONNECTIONS) -> None:
        """Send up to `connections` at a time, each as soon as the requests are answered that it depends on."""
        order = TopologicalSorter(dict(enumerate(dependencies(self._requests, self._old))))
        order.prepare()
        clients, answered = threading.local(), queue.SimpleQueue[Future[int]]()

        def start() -> None:
            clients.client = connect()

        def send(number: int) -> int:
            self._send(clients.client, number)
            return number

        with ThreadPoolExecutor(connections, initializer=start) as threads:
            while order.is_active():
                for number in order.get_ready():
                    threads.submit(send, number).add_done_callback(answered.put)
                order.done(answered.get().result())

    def _send(self, client: Client, number: int) -> None:
        request = self._requests[number]
        body = request.body.replace(self._old, self._new)
        for value in request.repeats:
            body = body.replace(f'"{value}"', f'"{self._values[value]}"')
        response = client.exchange(request.method, request.path.replace(self._old, self._new), body or None, request.content_type)
        if response.status != request.status:
            raise RuntimeError(f"{request.method} {request.path}: the response was {request.status}, and in the replay: {response.text}")
        values: Mapping[str, str] = values_in(response.text)
        for name, value in request.values.items():
            if found := values.get(name.replace(self._old, self._new)):
                self._values[value] = found


def dependencies(requests: Sequence[Request], prefix: str) -> list[set[int]]:
    """For each request the earlier ones that must be answered first.

    These are the last one of the same order, and those whose values it repeats. Requests that name no order count as one order.
    """
    last_of_order: dict[str, int] = {}
    last_with_value: dict[str, int] = {}
    found = []
    for number, request in enumerate(requests):
        order = _order(request, prefix)
        before = {last_with_value[value] for value in request.repeats}
        if order in last_of_order:
            before.add(last_of_order[order])
        found.append(before)
        last_of_order[order] = number
        last_with_value |= dict.fromkeys(request.values.values(), number)
    return found


def _order(request: Request, prefix: str) -> str:
    name = re.compile(rf"{re.escape(prefix)}\d+")
    match = name.search(request.path) or name.search(request.body)
    return match[0] if match else ""
