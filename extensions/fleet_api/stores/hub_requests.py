"""What the agent of a hub is asked for: short-lived kubeconfigs, and workloads. A Secret in the hub's namespace is question and answer.

It is deleted at once. A single hub is asked directly.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.fleet.kubeconfig_answers import answer
from ....plugins.module_utils.fleet.kubeconfig_request import KubeconfigAnswer, KubeconfigRequest
from ....plugins.module_utils.fleet.workloads_answers import answer_workloads
from ....plugins.module_utils.fleet.workloads_request import WorkloadsAnswer, request_for
from ....plugins.module_utils.kube.client import Kube
from ....plugins.module_utils.kube.errors import KubeError, NotFound
from ....plugins.module_utils.orders.model import Names
from ..problems import Problem
from .home import Home

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0
Answer = TypeVar("Answer", KubeconfigAnswer, WorkloadsAnswer)


class HubRequests(Protocol):
    """Where the hub of a cluster is asked. The answer has an error where the hub has none; a Problem if it does not answer in time."""

    async def kubeconfig(self, cluster: Object, user: str, seconds: int) -> KubeconfigAnswer: ...

    async def workloads(self, cluster: Object) -> WorkloadsAnswer: ...


class AgentRequests:
    """Asks the agent of the hub that the cluster is bound to."""

    def __init__(self, home: Home, seconds: float) -> None:
        self._home = home
        self._seconds = seconds

    async def kubeconfig(self, cluster: Object, user: str, seconds: int) -> KubeconfigAnswer:
        request = KubeconfigRequest(cluster["metadata"]["uid"], user, seconds).to_secret(_hub(cluster))
        return await _request(self._home, request, KubeconfigAnswer.from_secret, self._seconds)

    async def workloads(self, cluster: Object) -> WorkloadsAnswer:
        request = request_for(_hub(cluster), cluster["metadata"]["uid"])
        return await _request(self._home, request, WorkloadsAnswer.from_secret, self._seconds)


class SingleHubRequests:
    """Answers as the agent of a hub does: the service is connected to the hub itself."""

    def __init__(self, hub: Home, names: Names) -> None:
        self._hub = hub
        self._names = names

    async def kubeconfig(self, cluster: Object, user: str, seconds: int) -> KubeconfigAnswer:
        request = KubeconfigRequest(cluster["metadata"]["uid"], user, seconds).to_secret("")
        return await self._hub.ask(lambda kube: answer(kube, self._names, request, self._order(kube, cluster)))

    async def workloads(self, cluster: Object) -> WorkloadsAnswer:
        return await self._hub.ask(lambda kube: answer_workloads(kube, self._names, self._order(kube, cluster)))

    def _order(self, kube: Kube, cluster: Object) -> Object | None:
        return kube.find(self._names.api_version, "ClusterOrder", cluster["metadata"]["name"], cluster["metadata"]["namespace"])


def _hub(cluster: Object) -> str:
    return str(cluster["status"]["hub"])


async def _request(home: Home, request: Object, read: Callable[[Object], Answer | None], seconds: float) -> Answer:
    try:
        secret = await home.ask(lambda kube: kube.create(request))
    except KubeError as error:
        # The agent of a hub without a namespace never answers; the operator finds the reason in the log.
        log.warning("nothing can be requested in %s: %s", request["metadata"]["namespace"], error)
        raise Problem("home-unavailable", headers={"Retry-After": "30"}) from error
    try:
        return await _answer(home, secret, read, time.monotonic() + seconds)
    finally:
        # Also when the client has gone; the agent deletes what is left.
        await asyncio.shield(_discard(home, secret))


async def _answer(home: Home, secret: Object, read: Callable[[Object], Answer | None], deadline: float) -> Answer:
    metadata, pause = secret["metadata"], FIRST_PAUSE
    while time.monotonic() < deadline:
        await asyncio.sleep(pause)
        pause = min(LONGEST_PAUSE, pause * 1.5)
        try:
            found = await home.ask(lambda kube: kube.get("v1", "Secret", metadata["name"], metadata["namespace"]))
        except NotFound:
            break
        except KubeError as error:
            log.warning("an answer of a hub cannot be read: %s", error)
            continue
        if answered := read(found):
            return answered
    raise Problem("hub-timeout", headers={"Retry-After": "30"})


async def _discard(home: Home, secret: Object) -> None:
    try:
        await home.ask(lambda kube: kube.delete(secret, checked=True))
    except KubeError as error:
        log.warning("an answer of a hub is not deleted, the agent of the hub deletes it: %s", error)
