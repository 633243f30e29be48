# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Signals that end ansible-rulebook, heard by an event source's process again after the rule engine's Java machine has taken them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType


@dataclass(frozen=True)
class Deferred:
    """A handler that is called by the event loop, when nothing else is under way."""

    loop: asyncio.AbstractEventLoop
    handler: Callable[[int, FrameType | None], object]

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.loop.call_soon_threadsafe(self.handler, number, frame)


def hear_signals() -> None:
    """Give the signals back to ansible-rulebook, which ends in order: its sources give back what they hold, and its runs are ended.

    The Java machine has taken them, and would end the process on the spot. And ansible-rulebook ends by an exception, which it would
    swallow where it catches all of them: while it hands an event to its rules.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        handler = signal.getsignal(number)
        signal.signal(number, Deferred(loop, handler) if callable(handler) and not isinstance(handler, Deferred) else handler)
