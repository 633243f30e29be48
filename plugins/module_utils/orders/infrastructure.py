# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The parts of a cluster's infrastructure as the roles of a template report them: hosts, network, DNS, storage. Pure functions.

A role reports a part that is not ready and does not wait for it: the step that reported it runs again, with backoff, until it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, get_args

from ..common.text import as_reason, shortened
from ..common.timestamps import format_time, parse_time
from ..common.types import Object
from ..kube.errors import Invalid
from ..providers.model import FALSE, TRUE, ConditionState
from .gitops import conditions_from
from .model import ClusterOrder
from .outcome import Action, Outcome, PartReport

NOT_READY = "InfrastructureNotReady"  # reason of ClusterAvailable where nothing but parts is missing
FIRST_CHECK, LAST_CHECK = timedelta(seconds=10), timedelta(minutes=5)
MESSAGE_LIMIT = 2048  # several parts share the message of one condition


@dataclass(frozen=True)
class Part:
    """The last report of a part. `attempts` counts those in a row that were not ready; the next one is due at `next_attempt`."""

    name: str
    step: Action
    report: PartReport
    attempts: int = 0
    next_attempt: datetime | None = None

    @classmethod
    def from_status(cls, item: Object) -> Part:
        return cls(
            str(item.get("part", "")),
            item["step"] if item.get("step") in get_args(Action) else "provision",
            PartReport(item.get("ready") is True, str(item.get("reason", "")), str(item.get("message", ""))),
            int(item.get("attempts", 0)),
            parse_time(item.get("nextAttempt")),
        )

    def to_status(self) -> Object:
        status: Object = {"part": self.name, "step": self.step, "ready": self.report.ready, "reason": as_reason(self.report.reason)}
        if self.report.message:
            status["message"] = shortened(self.report.message, MESSAGE_LIMIT)
        if not self.report.ready:
            status["attempts"] = self.attempts
            if self.next_attempt:
                status["nextAttempt"] = format_time(self.next_attempt)
        return status

    def after(self, before: Part | None, now: datetime) -> Part:
        """The part with its attempts counted and the next one dated: the wait doubles from 10 seconds up to 5 minutes."""
        if self.report.ready:
            return self
        attempts = before.attempts if before else 0
        return replace(self, attempts=attempts + 1, next_attempt=now + min(FIRST_CHECK * 2 ** min(attempts, 16), LAST_CHECK))


def reports_from(parts: Mapping[str, Any]) -> dict[str, PartReport]:
    """The parts that the roles of a template have set in the fact `cluster_infrastructure`."""
    reports = {}
    for name, part in parts.items():
        if not isinstance(part, Mapping) or not isinstance(part.get("ready"), bool) or not part.get("reason"):
            raise Invalid(f"cluster_infrastructure.{name} must have ready, which is true or false, and reason.", ["infrastructure"])
        conditions = conditions_from(str(name), part.get("conditions") or {})
        reports[str(name)] = PartReport(part["ready"], str(part["reason"]), str(part.get("message", "")), conditions)
    return reports


def parts_of(order: ClusterOrder) -> list[Part]:
    """The parts that count: once an order is being deleted, only those that its deletion reported."""
    parts = [Part.from_status(item) for item in order.status.get("infrastructure") or []]
    return [part for part in parts if (part.step == "delete") == order.is_deleting]


def updated_parts(order: ClusterOrder, report: Outcome | None, now: datetime) -> list[Part]:
    """The known parts with those of the report. What a complete step no longer reports is dropped."""
    known = {part.name: part for part in parts_of(order)}
    if report is None:
        return list(known.values())
    reported = {name: Part(name, report.step, part).after(known.get(name), now) for name, part in (report.infrastructure or {}).items()}
    kept = {name: part for name, part in known.items() if not (report.finished and part.step == report.step)}
    return [part for _name, part in sorted((kept | reported).items())]


def pending(parts: Iterable[Part]) -> list[Part]:
    return [part for part in parts if not part.report.ready]


def due_step(order: ClusterOrder, now: datetime) -> Action | None:
    """The step that has to run again because a part it reported was not ready."""
    due = [part.step for part in pending(parts_of(order)) if part.next_attempt is None or part.next_attempt <= now]
    return min(due, key=get_args(Action).index, default=None)


def infrastructure_ready(reported: ConditionState, parts: Iterable[Part]) -> ConditionState:
    """What the provider reports, unless a part is missing: then its own reason, and every missing part by name."""
    missing = pending(parts)
    if not missing:
        return reported
    reason = missing[0].report.reason if len(missing) == 1 else "PartsNotReady"
    return ConditionState(FALSE, reason, "; ".join(f"{part.name}: {part.report.message or part.report.reason}" for part in missing))


def cluster_with_parts(available: ConditionState, parts: Iterable[Part]) -> ConditionState:
    """A cluster is available to its tenant only with all parts of its infrastructure."""
    missing = [part.name for part in pending(parts)]
    if available.status != TRUE or not missing:
        return available
    return ConditionState(FALSE, NOT_READY, f"InfrastructureReady is False: {', '.join(missing)}")
