# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a change of an order's status means for its Events: started runs, phases, failures, conditions. Pure functions.

No message has a number of attempts or a time, so that a failure that comes back is the same Event with a higher count.
"""

from __future__ import annotations

from ..common.text import as_reason
from ..common.types import Object
from ..kube.event_recorder import NORMAL, WARNING, Event
from ..providers.model import TRUE
from .model import DEGRADED, FAILED
from .outcome import Outcome

PHASE_SHOWS = "Deleting"  # the condition that says the same as the phase


def events_of(before: Object, after: Object, outcome: Outcome | None = None) -> list[Event]:
    """The Events of the change from one status to the next; `outcome` is what the run reported that made the change."""
    return [*_started(before, outcome), *_phase(before, after), *_failure(before, after), *_conditions(before, after)]


def _started(before: Object, outcome: Outcome | None) -> list[Event]:
    # One with parts is that of an observer, or of a run that has ended.
    if outcome is None or outcome.finished or outcome.failure or outcome.infrastructure is not None:
        return []
    if failure := before.get("failure"):
        return [Event("Retry", f"A run repeats {outcome.step} after the failure {as_reason(failure['reason'])}")]
    return [Event("RunStarted", f"A run started {outcome.step}")]


def _phase(before: Object, after: Object) -> list[Event]:
    was, phase = before.get("phase"), after["phase"]
    if was == phase:
        return []
    return [Event(phase, f"The phase changed from {was} to {phase}" if was else f"The phase is {phase}", _type(after))]


def _failure(before: Object, after: Object) -> list[Event]:
    failure = after.get("failure")
    if not failure or failure == before.get("failure"):
        return []
    task = f"{failure['task']}: " if failure.get("task") else ""
    return [Event(as_reason(failure["reason"]), f"{task}{failure['message']}", WARNING)]


def _conditions(before: Object, after: Object) -> list[Event]:
    earlier = {item["type"]: item["status"] for item in before.get("conditions", [])}
    reported = (after.get("failure") or {}).get("reason")
    events = []
    for item in after["conditions"]:
        was, is_true = earlier.get(item["type"]) == TRUE, item["status"] == TRUE
        if was == is_true or item["type"] == PHASE_SHOWS:
            continue
        if is_true:
            events.append(Event(item["type"], item.get("message") or item["reason"]))
        elif item["reason"] != reported:
            events.append(Event(item["reason"], item.get("message") or f"{item['type']} is {item['status']}", _type(after)))
    return events


def _type(status: Object) -> str:
    return WARNING if status["phase"] in (FAILED, DEGRADED) else NORMAL
