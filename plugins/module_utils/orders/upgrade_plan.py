# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which orders move to a release next: in waves, the first one smaller, and none after a failure. Pure: it reads and writes nothing.

The orders themselves are the only state. An order that has the release is upgraded, upgrading or failed by its status, so a plan that is
computed again after a crash or a day later continues where the last one stopped.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from ..common.timestamps import parse_time
from ..common.types import Object
from ..kube.errors import Invalid
from .model import CLUSTER_FAILED, DEGRADED, FAILED, READY, ClusterOrder

State = Literal["upgraded", "upgrading", "failed", "pending", "skipped"]
STATES: tuple[State, ...] = ("upgraded", "upgrading", "failed", "pending", "skipped")
SHOWN_ORDERS = 10  # in one line of the report
UNHEALTHY = ("ClusterDegraded", CLUSTER_FAILED)  # reasons of ClusterAvailable


@dataclass(frozen=True)
class Release:
    """The value of a template's parameter that orders move to."""

    parameter: str
    value: str


@dataclass(frozen=True)
class Member:
    """An order of the selection, and where it stands."""

    order: ClusterOrder
    state: State
    message: str = ""

    @property
    def name(self) -> str:
        return f"{self.order.namespace}/{self.order.name}"

    def __str__(self) -> str:
        return f"{self.name}: {self.message}" if self.message else self.name


@dataclass(frozen=True)
class Plan:
    """The orders of the selection, and the waves in which the pending ones move. `first` is the number of the first of these waves."""

    release: Release
    members: tuple[Member, ...]
    waves: tuple[tuple[Member, ...], ...]
    first: int

    def of(self, *states: State) -> list[Member]:
        return [member for member in self.members if member.state in states]

    @property
    def is_stopped(self) -> bool:
        return bool(self.of("failed"))

    @property
    def is_complete(self) -> bool:
        return not self.of("pending", "upgrading", "failed")

    @property
    def next_wave(self) -> tuple[Member, ...]:
        """The orders that move now: none after a failure, and none before the last wave is upgraded."""
        return () if self.of("failed", "upgrading") or not self.waves else self.waves[0]

    def summary(self) -> str:
        counts = {state: len(self.of(state)) for state in STATES}
        return ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "no orders"

    def report(self) -> list[str]:
        """The plan in lines for a person."""
        lines = [f"{self.release.parameter} {self.release.value}: {self.summary()}"]
        lines += [f"{member.state}: {member}" for member in self.of("failed", "upgrading", "skipped")]
        last = self.first + len(self.waves) - 1
        for number, wave in enumerate(self.waves, self.first):
            lines.append(f"wave {number} of {last}, {len(wave)} order{'' if len(wave) == 1 else 's'}: {_listed(wave)}")
        return lines


def plan(members: Sequence[Member], release: Release, canary: int, max_unavailable: str) -> Plan:
    """The waves of the pending orders, by namespace and name. The first `canary` orders are a wave of their own."""
    ordered = tuple(sorted(members, key=lambda member: (member.order.namespace, member.order.name)))
    moved = [member for member in ordered if member.state in ("upgraded", "upgrading", "failed")]
    pending = [member for member in ordered if member.state == "pending"]
    size = wave_size(max_unavailable, len(moved) + len(pending))
    canary = min(canary, size)
    waves: list[tuple[Member, ...]] = []
    if left := max(0, canary - len(moved)):
        waves.append(tuple(pending[:left]))
    waves += [tuple(pending[start : start + size]) for start in range(left, len(pending), size)]
    done = math.ceil(max(0, len(moved) - canary) / size) + (1 if canary and len(moved) >= canary else 0)
    return Plan(release, ordered, tuple(wave for wave in waves if wave), done + 1)


def wave_size(max_unavailable: str, orders: int) -> int:
    """How many orders may be unavailable at once: a number, or a percentage of the orders, rounded down, of at least one."""
    found = re.fullmatch(r"([0-9]+)(%?)", max_unavailable.strip())
    number = int(found[1]) if found else 0
    if found is None or number < 1 or (found[2] and number > 100):
        raise Invalid(f"max_unavailable is {max_unavailable!r}: use a number of orders, or a percentage such as 10%.", ["max_unavailable"])
    return max(1, orders * number // 100) if found[2] else number


def member(order: ClusterOrder, release: Release, phases: Collection[str], now: datetime, degraded_after: timedelta) -> Member:
    """Where an order stands. `phases` are those of orders that may move; one that has the release already counts in any phase."""
    parameters = parameters_of(order)
    if order.is_deleting:
        return Member(order, "skipped", "it is being deleted")
    if parameters is None:
        return Member(order, "skipped", "its templateParameters are not a JSON object")
    progress = _progress(order, now, degraded_after) if parameters.get(release.parameter) == release.value else None
    # One that no run applies the release to would hold up the orders of others indefinitely.
    if order.management_state != "managed" and (progress is None or progress[0] != "upgraded"):
        return Member(order, "skipped", f"its management-state is {order.management_state}")
    if progress:
        return Member(order, *progress)
    if order.phase not in phases:
        return Member(order, "skipped", f"its phase is {order.phase or 'not set yet'}, not {' or '.join(sorted(phases))}")
    return Member(order, "pending")


def parameters_of(order: ClusterOrder) -> dict[str, Any] | None:
    """The parameters of an order; None where the text is not a JSON object."""
    try:
        parsed = json.loads(order.template_parameters or "{}")
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _progress(order: ClusterOrder, now: datetime, degraded_after: timedelta) -> tuple[State, str]:
    """Of an order that has the release. Its status counts only for the current spec."""
    if order.status.get("observedGeneration", order.generation) != order.generation or not order.phase:
        return "upgrading", "no run has prepared the change yet"
    available = order.condition("ClusterAvailable") or {}
    if order.phase in (FAILED, DEGRADED):
        return "failed", f"{order.phase}, {_why(order, available)}"
    if order.phase == READY and order.is_applied:
        return "upgraded", ""
    since = parse_time(available.get("lastTransitionTime"))
    # A control plane may report Degraded while its replicas are replaced.
    if available.get("reason") in UNHEALTHY and since is not None and since + degraded_after <= now:
        return "failed", f"{order.phase}, {_why(order, available)}"
    return "upgrading", f"{order.phase}, {_why(order, available)}"


def _why(order: ClusterOrder, available: Object) -> str:
    if order.failure:
        return f"{order.failure.reason}: {order.failure.message}"
    if available.get("status") != "True" and available.get("reason"):
        return f"{available['reason']}: {available.get('message', '')}"
    unmet = [item for item in order.status.get("conditions", []) if item["status"] != "True" and item["type"] != "Deleting"]
    return f"{unmet[0]['type']} is {unmet[0]['reason']}" if unmet else "its release is being rolled out"


def _listed(members: Sequence[Member]) -> str:
    names = ", ".join(member.name for member in members[:SHOWN_ORDERS])
    return f"{names} and {len(members) - SHOWN_ORDERS} more" if len(members) > SHOWN_ORDERS else names
