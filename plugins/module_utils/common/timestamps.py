# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Timestamps as the Kubernetes API writes them."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime


def format_time(moment: datetime) -> str:
    # Within a day of the ends of the calendar there is no UTC time; a tenant may name such a one.
    with contextlib.suppress(OverflowError):
        moment = moment.astimezone(UTC)
    # Not by strftime, which writes years before 1000 with fewer than four digits.
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def parse_time(text: str | None) -> datetime | None:
    """Parse a timestamp of the API; None for anything else."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
