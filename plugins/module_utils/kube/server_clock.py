# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The time of a server, as the Date headers of its responses show it. It reads no time of day of this machine.

A Date has full seconds, and is older by the way of the response, or by the time for which this process was stopped meanwhile. So the
server's time is known between two bounds. Between two responses our own clock continues, time asleep included.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

from ..common.clock import boottime

RESOLUTION = datetime.timedelta(seconds=1)  # of a Date


@dataclass(frozen=True)
class _Reading:
    date: datetime.datetime | None
    sent: float
    arrived: float


class ServerClock:
    """What the last response showed. `clock` is our own."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or boottime
        self._last: _Reading | None = None

    def now(self) -> float:
        """Our own clock, for the time at which a request is sent."""
        return self._clock()

    @property
    def has_reading(self) -> bool:
        """Whether the server has responded yet."""
        return self._last is not None

    def note(self, date: datetime.datetime | None, sent: float) -> None:
        """Note the date of a response to a request that was sent at `sent`. One without a date replaces none with a date."""
        if date or self._last is None:
            self._last = _Reading(date, sent, self._clock())

    def earliest(self) -> datetime.datetime | None:
        """A time that the server's clock has reached; None where the server sends no date."""
        last = self._last
        return last.date + datetime.timedelta(seconds=self._clock() - last.arrived) if last and last.date else None

    def latest(self) -> datetime.datetime | None:
        """A time that the server's clock has not passed yet; None where the server sends no date."""
        last = self._last
        return last.date + RESOLUTION + datetime.timedelta(seconds=self._clock() - last.sent) if last and last.date else None
