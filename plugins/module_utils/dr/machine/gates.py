# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The registry of gates. A gate is a named condition that has to hold before a stage does its work or ends.

Each gate is a function in the file of its subject. It returns None when it is open, else a Wait that names the cause and the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Optional

from ..model import Wait
from .context import Context

Check = Callable[[Context], Optional[Wait]]  # noqa: UP045 - as the unions of read_results.py
GATES: dict[str, Check] = {}


def gate(name: str) -> Callable[[Check], Check]:
    """Register a gate by its name."""

    def register(check: Check) -> Check:
        GATES[name] = check
        return check

    return register


def closed(message: str, remedy: str, progression: str = "") -> Wait:
    return Wait("", message, remedy, progression)


def first_closed(context: Context, names: Iterable[str]) -> Wait | None:
    """The first closed gate: the order is Ramen's, and a later gate may rely on the ones before it."""
    for name in names:
        if found := GATES[name](context):
            return replace(found, gate=name)
    return None


def is_open(context: Context, name: str) -> bool:
    return first_closed(context, (name,)) is None
