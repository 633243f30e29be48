# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The event source as a whole: the owner of every task, which ends them all when one of them fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from ..common.types import Object
from ..kube.client import Kube
from ..orders.selection import OrderName
from .controller import Controller
from .gitops_notifications import GitOpsNotifications
from .leader_election import LeaderElector
from .metrics import Metrics, State
from .settings import Settings
from .webhook_server import WebhookServer


class Engine(Protocol):
    """The queue of ansible-rulebook. `put` waits while the engine is busy."""

    async def put(self, event: Object) -> None: ...


async def serve(engine: Engine, arguments: Mapping[str, Any]) -> None:
    """Run until cancelled. Raises for invalid settings and for an address in use, never for an error of the hub."""
    source = Source(engine, Settings.from_arguments(arguments))
    try:
        await source.run()
    except BaseExceptionGroup as errors:
        raise first_cause(errors) from errors


def first_cause(errors: BaseException) -> BaseException:
    """ansible-rulebook shows the text of an exception, and that of a group names no cause."""
    while isinstance(errors, BaseExceptionGroup):
        errors = errors.exceptions[0]
    return errors


class Source:
    """The webhook server always runs, the controller while this source leads. A new leader lists all orders, so no webhook is lost."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings
        self._watching = Kube.connect(settings.connection)
        self._kube = Kube.connect(settings.connection)
        self._controller: Controller | None = None
        self._metrics = Metrics(self._state)
        notifications = GitOpsNotifications(self._kube, settings.names.site_namespace, self._notified)
        self._webhooks = WebhookServer(settings.webhook, self._metrics, self._enqueue, self._problems, notifications)
        self._election = LeaderElector(self._kube, settings.names.site_namespace, f"cluster-orders.{settings.names.group}")

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._webhooks.serve())
            tasks.create_task(self._election.lead(self._control))

    async def _control(self) -> None:
        self._controller = Controller(self._settings, self._watching, self._kube, self._engine.put, self._metrics)
        try:
            await self._controller.run()
        finally:
            self._controller = None

    def _enqueue(self, order: OrderName) -> None:
        if self._controller:
            self._controller.enqueue(order)

    def _notified(self, uid: str) -> None:
        if self._controller:
            self._controller.notified(uid)

    def _problems(self) -> list[str]:
        if self._controller:
            return self._controller.problems()
        return [self._election.problem] if self._election.problem else []

    def _state(self) -> State:
        return self._controller.state() if self._controller else State()
