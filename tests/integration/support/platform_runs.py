"""Runs of Automation Platform as code in this process, and runs that are killed at one of their writes."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.sample import Content
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import Platform
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.rest_session import RestSession
from ansible_collections.openfleet.clusters.plugins.module_utils.platform import activations, apply, configuration, project_imports
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.client import Access, PlatformApi
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.ledger import Ledger

SECONDS = 120.0


class LedgerInMemory:
    """The ledger as text, as the Secret has it; a killed run leaves what it had written."""

    def __init__(self) -> None:
        self.text = ""

    def read(self) -> Ledger:
        return Ledger.from_text(self.text) if self.text else Ledger()

    def begin(self, ledger: Ledger) -> None:
        self.text = ledger.to_text()

    def update(self, change: Any) -> None:
        ledger = self.read()
        change(ledger)
        self.text = ledger.to_text()

    def delete(self) -> None:
        self.text = ""


class Runs:
    """Runs against one platform with one ledger."""

    def __init__(self, platform: Platform, url: str, ledger: Any = None) -> None:
        self.platform, self.url = platform, url
        self.ledger = ledger or LedgerInMemory()
        self.access: dict[str, Any] = {"token": platform.token()}

    def run(self, content: Content, *, check: bool = False) -> configuration.Plan:
        return configuration.configure(self.api(), self.ledger, content, check_mode=check)

    def remove(self) -> configuration.Plan:
        return configuration.remove(self.api(), self.ledger, check_mode=False)

    def api(self) -> PlatformApi:
        return PlatformApi(Access(self.url, **self.access), SECONDS)

    def measured(self, content: Content) -> tuple[int, int]:
        """How many requests and writes a run sends."""
        requests, writes = len(self.platform.requests), len(self.platform.writes())
        self.run(content)
        return len(self.platform.requests) - requests, len(self.platform.writes()) - writes


class Killed(BaseException):
    """The process is dead: nothing of it sends, reads or records anything any more."""


class Executioner:
    """Kills a run at its write number `last`: that one reaches the platform, and its answer is lost."""

    def __init__(self, last: int) -> None:
        self._last = last
        self._lock = threading.Lock()
        self.writes = 0

    def exchange(self, session: RestSession, method: str, *rest: Any, **options: Any) -> Any:
        with self._lock:
            if self.writes > self._last or (method not in ("GET", "OPTIONS") and self.writes == self._last):
                self.writes = self._last + 1
                raise Killed
            self.writes += method not in ("GET", "OPTIONS")
            is_last = method not in ("GET", "OPTIONS") and self.writes == self._last
        answer = EXCHANGE(session, method, *rest, **options)
        if is_last:
            with self._lock:
                self.writes = self._last + 1
            raise Killed
        return answer


EXCHANGE = RestSession.exchange


def killed_run(runs: Runs, content: Content, last: int) -> bool:
    """Run until write number `last`, and be killed there. False if the run ended before."""
    executioner = Executioner(last)

    def exchange(session: RestSession, *given: Any, **options: Any) -> Any:
        return executioner.exchange(session, *given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RestSession, "exchange", exchange)
        try:
            runs.run(content)
        except Killed:
            return True
    return False


def poll_quickly(patch: pytest.MonkeyPatch) -> None:
    """Do not wait for the real platform's speed."""
    for module in (activations, apply, project_imports):
        patch.setattr(module, "POLL_SECONDS", 0.01)
