# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Signals that end ansible-rulebook, heard by an event source's process again after the rule engine's Java machine has taken them."""

from __future__ import annotations

import signal


def hear_signals() -> None:
    """Give the signals back to ansible-rulebook, which ends in order: its sources give back what they hold, and its runs are ended.

    The Java machine has taken them, and would end the process on the spot.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.getsignal(number))
