# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The clock that deadlines of locks and leases count on. It is never compared with the clock of another machine."""

from __future__ import annotations

import datetime
import functools
import time
from pathlib import Path


def boottime(clock: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) -> float:
    """Seconds since boot, time asleep included: a holder must know for how long its machine slept."""
    return time.clock_gettime(clock)


@functools.cache
def boot_id() -> str:
    """The boot that `boottime` counts from. Empty on a system without boot ids."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def utc_now() -> str:
    """The time of day, for people to read. No decision depends on it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
