"""The home cluster: requests as the service itself and as a caller, in threads, with the errors that clients get."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import urllib3

from ....plugins.module_utils.kube.client import Kube
from ....plugins.module_utils.kube.errors import (
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NamespaceTerminating,
    NotFound,
)
from ..problems import FieldError, Problem, not_found
from .identity import Caller

log = logging.getLogger(__name__)

THREADS = 32
CONNECT_SECONDS, READ_SECONDS, TRIES = 5.0, 15.0, 2
READY_SECONDS = 1.0  # for so long a ready API server is believed to be: none starts again in less
# How the API server introduces the message of an admission policy, and of a ResourceQuota.
POLICY = re.compile(r"denied request: (.*?)(?:; grant the verb to the user or service account)?$", re.DOTALL)
QUOTA = re.compile(r"(exceeded quota: .*?)(?:; grant the verb to the user or service account)?$", re.DOTALL)
REQUEST = re.compile(r"^(create|patch|replace|delete|get) \S+ \S+: ")

Result = TypeVar("Result")


class Home:
    """Connections to the home cluster. Watches have one of their own: they would use up the other's."""

    def __init__(self, kubeconfig: str = "") -> None:
        options = {"kubeconfig": kubeconfig} if kubeconfig else {}
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
        self.watching = Kube.connect(options)
        self._own = Kube.connect(options, timeout, TRIES)
        self._ready_until = 0.0
        self._threads = ThreadPoolExecutor(THREADS, "home")

    async def ask(self, work: Callable[[Kube], Result]) -> Result:
        """Call the work with the service's own account."""
        return await self._run(lambda: work(self._own))

    async def act(self, caller: Caller, work: Callable[[Kube], Result]) -> Result:
        """Call the work as the caller, so that the permissions, policies and audit log of the home cluster count for it."""
        return await self._run(lambda: work(self.as_caller(caller)))

    def as_caller(self, caller: Caller) -> Kube:
        if caller.is_service_account:
            # The API server knows the groups of an account, and refuses others where impersonation is constrained.
            return self._own.impersonate(caller.user)
        extra = [(key, value) for key, values in caller.extra.items() for value in values]
        return self._own.impersonate(caller.user, caller.groups, extra)

    async def _run(self, work: Callable[[], Result]) -> Result:
        """Call the work in a thread.

        An API server that has just started forbids what it allows a moment later, when it has read the roles. A denial is believed of a
        server that was ready before it. Otherwise the work is repeated when the server is ready; what was denied had no effect.
        """
        loop, was_ready = asyncio.get_running_loop(), time.monotonic() < self._ready_until
        try:
            return await loop.run_in_executor(self._threads, work)
        except Forbidden:
            if was_ready:
                raise
        await loop.run_in_executor(self._threads, self._require_ready)
        return await loop.run_in_executor(self._threads, work)

    def _require_ready(self) -> None:
        with contextlib.suppress(Forbidden):  # a site may hide it, which API servers that start do not
            self._own.readyz()
        self._ready_until = time.monotonic() + READY_SECONDS

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def problem_of(error: KubeError) -> Problem:
    """The error that a client gets for a refused write of its own object."""
    text = REQUEST.sub("", str(error)).strip()
    if isinstance(error, NotFound | NamespaceTerminating):
        return not_found()
    if isinstance(error, Forbidden):
        if found := POLICY.search(text) or QUOTA.search(text):
            return Problem("denied-by-policy", found[1].strip())
        if "impersonate" in text:
            log.error("the service may not act as callers: %s", error)
            return Problem("home-unavailable", headers={"Retry-After": "30"})
        return Problem("forbidden")
    if isinstance(error, Invalid):
        fields = error.fields or ["body"]
        return Problem("unprocessable", text, [FieldError(field, text) for field in dict.fromkeys(fields)])
    if isinstance(error, Conflict):
        return Problem("conflict", text)
    log.warning("the home cluster failed: %s", error)
    return Problem("home-unavailable", headers={"Retry-After": "5"})


def problem_of_own(error: KubeError) -> Problem:
    """The error that a client gets for a failed request of the service itself: a missing permission is not the client's."""
    if isinstance(error, Forbidden):
        log.error("the service lacks a permission: %s", error)
        return Problem("home-unavailable", headers={"Retry-After": "30"})
    return problem_of(error)
