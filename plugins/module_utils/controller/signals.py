# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Restores the signal handlers of ansible-rulebook, which the Java VM of the rule engine replaces."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType


@dataclass(frozen=True)
class Deferred:
    """A handler that the event loop calls between callbacks."""

    loop: asyncio.AbstractEventLoop
    handler: Callable[[int, FrameType | None], object]

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.loop.call_soon_threadsafe(self.handler, number, frame)


def restore_signals() -> None:
    """Let ansible-rulebook handle SIGTERM and SIGINT, so that it ends in order: sources release their Leases, and runs are ended.

    The Java VM would end the process at once. And ansible-rulebook ends by an exception, which it would swallow where it catches all
    exceptions: while it hands an event to its rules.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        handler = signal.getsignal(number)
        signal.signal(number, Deferred(loop, handler) if callable(handler) and not isinstance(handler, Deferred) else handler)
