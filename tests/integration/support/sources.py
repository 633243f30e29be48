"""The event source in a thread of this process, alone or with an engine that runs the steps in this process as well.

The rules engine is not here: `engines` starts a real one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import urllib3
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.controller import Controller
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.metrics import Metrics, State
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.settings import Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.source import serve
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.selection import OrderName

from .in_process import ENTRIES, InProcessRun
from .orders import Orders

MAX_IN_FLIGHT = 100


class _CountingLoop(asyncio.SelectorEventLoop):
    """Counts what other threads pass to it: every change that a watch brings, among others."""

    passed = 0

    def call_soon_threadsafe(self, *arguments: Any, **options: Any) -> asyncio.Handle:
        self.passed += 1
        return super().call_soon_threadsafe(*arguments, **options)


class Source:
    """A controller in a thread of its own. What it asks for is in `events`, and is not run."""

    def __init__(self, orders: Orders, **settings: Any) -> None:
        self.events: list[Object] = []
        self.orders = orders
        self.is_busy = threading.Event()
        self._options = {"kubeconfig": str(orders.hub.kubeconfig), "api_group": orders.group}
        self._settings = Settings.from_arguments(self._options | {"start_timeout": 600, "max_in_flight": MAX_IN_FLIGHT} | settings)
        self.loop = _CountingLoop()

    async def _put(self, event: Object) -> None:
        while self.is_busy.is_set():  # noqa: ASYNC110 - it is set in another thread
            await asyncio.sleep(0.01)
        # An earlier test may have left orders on the hub, and one event is for orders of several namespaces.
        if own := [each for each in event["orders"] if each["namespace"] == self.orders.namespace]:
            self.events.append(event | {"order": own[0], "orders": own})

    async def _serve(self) -> None:
        metrics = self.metrics = Metrics(State)
        self.controller = Controller(self._settings, Kube.connect(self._options), Kube.connect(self._options), self._put, metrics)
        await self.controller.run()

    def problems(self) -> list[str]:
        return self.controller.problems() if hasattr(self, "controller") else ["it has not begun"]

    @contextlib.contextmanager
    def running(self, wait: bool = True) -> Iterator[Self]:
        task = self.loop.create_task(self._serve())

        def work() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                self.loop.run_until_complete(task)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            if wait:
                until(lambda: not self.problems(), "the hub is followed")
            yield self
        finally:
            self.loop.call_soon_threadsafe(task.cancel)
            thread.join()

    @contextlib.contextmanager
    def blocked(self, changes: int) -> Iterator[None]:
        """Keep its event loop from everything until the body is over, and so many changes have come from the hub."""
        over, before = threading.Event(), self.loop.passed + 1
        self.loop.call_soon_threadsafe(over.wait)
        try:
            yield
            until(lambda: self.loop.passed >= before + changes, "the watch has brought all changes")
        finally:
            over.set()

    def enqueue(self, namespace: str, name: str) -> None:
        self.loop.call_soon_threadsafe(self.controller.enqueue, OrderName(namespace, name))

    def state(self) -> State:
        """As its own event loop sees it, which changes what is counted."""

        async def read() -> State:
            return self.controller.state()

        return asyncio.run_coroutine_threadsafe(read(), self.loop).result(300)

    def writes(self) -> int:
        return int(self.metrics.registry.get_sample_value("openfleet_orders_status_writes_total") or 0)

    def actions(self, name: str) -> list[str]:
        """The actions that were asked for of one order."""
        return [event["action"] for event in self._events_of(name) if event["action"] in ENTRIES]

    def transitions(self, name: str) -> list[tuple[str, str]]:
        """The transitions of one order that were reported, with their reasons."""
        return [(event["action"], event["reason"]) for event in self._events_of(name) if event["action"] not in ENTRIES]

    def _events_of(self, name: str) -> list[Object]:
        return [event for event in list(self.events) if name in [order["name"] for order in event["orders"]]]

    def until_asked(self, action: str, name: str = "demo", times: int = 1) -> None:
        until(lambda: self.actions(name).count(action) >= times, f"{action} of {name} is asked for")


class Gate:
    """Holds the run of one order between its preparation and its template."""

    def __init__(self) -> None:
        self.is_reached = threading.Event()
        self.resume = threading.Event()

    def until_reached(self) -> None:
        assert self.is_reached.wait(300), "no run has come to the gate"


class InProcessEngine(Source):
    """A controller and what a rulebook does for it: each action that it asks for is run, in a thread of this process.

    The template of an order whose name is in `failing` fails, and the run of one that has a gate stops there. `lost` are runs that end
    at their gate as if they had been killed.
    """

    def __init__(self, orders: Orders, **settings: Any) -> None:
        super().__init__(orders, **{"start_timeout": 60, "max_in_flight": 2} | settings)
        self.failing: set[str] = set()
        self.lost: set[str] = set()
        self.errors: list[BaseException] = []
        self.runs: list[InProcessRun] = []
        self._gates: dict[str, Gate] = {}
        self._controller_setting = str(settings.get("controller", "self"))
        self._threads = ThreadPoolExecutor(self._settings.max_in_flight, thread_name_prefix="run")

    def until_phase(self, phase: str, name: str = "demo") -> None:
        until(lambda: self.orders.status(name).get("phase") == phase, f"{name} is {phase}")

    def gate(self, name: str) -> Gate:
        return self._gates.setdefault(name, Gate())

    async def _put(self, event: Object) -> None:
        await super()._put(event)
        if event["action"] in ENTRIES:
            self._threads.submit(self._attempt, event)

    @contextlib.contextmanager
    def running(self, wait: bool = True) -> Iterator[Self]:
        try:
            with super().running(wait):
                yield self
        finally:
            for gate in self._gates.values():
                gate.resume.set()
            self._threads.shutdown()
        assert self.errors == []

    def _attempt(self, event: Object) -> None:
        try:
            self._run(event)
        except BaseException as error:  # noqa: BLE001 - the test fails for it in the end
            self.errors.append(error)

    def _run(self, event: Object) -> None:
        variables = {"ansible_eda": {"event": event}}
        run = InProcessRun(event["action"], self._options, [], self.orders.folder, variables=variables, controller=self._controller_setting)
        self.runs.append(run)
        run.prepare()
        found = [order["cluster_order"]["metadata"] for order in run.orders]
        names = [each["name"] for each in found if each["namespace"] == self.orders.namespace]
        for gate in [self._gates[name] for name in names if name in self._gates]:
            gate.is_reached.set()
            gate.resume.wait()
        if self.lost.intersection(names):
            self.lost.difference_update(names)
            return
        for name in self.failing.intersection(names):
            run.fail(name, "Fail for as long as the site is broken", "The site is broken")
        run.run_templates().finish()


class WebhookEngine(InProcessEngine):
    """The same with the whole event source: its webhook server, and the election that it wins."""

    def __init__(self, orders: Orders, **settings: Any) -> None:
        self._url = f"http://127.0.0.1:{(port := free_port())}"
        webhook = {"port": port, "rate_limit": 10000}
        self._arguments = {"start_timeout": 60, "max_in_flight": 2, "webhook": webhook} | settings
        self._senders = urllib3.PoolManager(maxsize=32, retries=False)
        super().__init__(orders, **self._arguments)

    async def put(self, event: Object) -> None:
        await self._put(event)

    async def _serve(self) -> None:
        await serve(self, self._options | self._arguments)

    def problems(self) -> list[str]:
        try:
            if self.metric("openfleet_orders_leader") != 1:
                return ["it is not the leader"]
            health = self._get("healthz")
            return [] if health.status == 200 else [health.data.decode()]
        except urllib3.exceptions.HTTPError as error:
            return [str(error)]

    def _get(self, path: str) -> urllib3.BaseHTTPResponse:
        return self._senders.request("GET", f"{self._url}/{path}", timeout=60)

    def metric(self, name: str) -> float:
        """The value of a metric, with its labels in the name; 0 while it has none."""
        lines = self._get("metrics").data.decode().splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} ")), 0.0)

    def post(self, endpoint: str, item: Object) -> int:
        body, headers = json.dumps(item).encode(), {"Content-Type": "application/json"}
        return self._senders.request("POST", f"{self._url}/{endpoint}", body=body, headers=headers, timeout=300).status
