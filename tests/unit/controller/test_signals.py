"""A signal ends the process whatever it was doing just then."""

from __future__ import annotations

import asyncio
import signal
from types import FrameType

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.signals import restore_signals


def test_a_signal_is_not_swallowed_by_what_it_interrupts() -> None:
    """As ansible-rulebook, which ends by an exception, and catches every exception while it hands an event to its rules."""
    done: list[str] = []

    def end(number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    async def work() -> None:
        # Each of two sources of a rulebook does it.
        restore_signals()
        restore_signals()
        try:
            signal.raise_signal(signal.SIGTERM)
        except BaseException:  # noqa: BLE001 - that is the point
            done.append("swallowed")
        try:
            await asyncio.sleep(10)
        finally:
            done.append("released")

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            asyncio.run(work())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert done == ["released"]
