"""The timeline of a workload from the history of its state: each step, how long it took, and the gates that it waited for. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Entry = dict[str, Any]


@dataclass(frozen=True)
class Mark:
    """Something that happened outside of the history."""

    at: datetime.datetime
    what: str


@dataclass
class Step:
    """A stage of a request, or the begin of a leader's term. `waits` has the seconds that each gate was closed."""

    at: datetime.datetime
    request: str
    stage: str
    phase: str
    seconds: float = 0.0
    waits: dict[str, float] = field(default_factory=dict)

    @property
    def own_seconds(self) -> float:
        """Without the time in which a gate was closed."""
        return self.seconds - sum(self.waits.values())


def steps(history: Sequence[Entry]) -> list[Step]:
    """The stages of all requests, in order. The time in which no request was in progress is in none of them."""
    found: list[Step] = []
    for entry, following in pairwise(history):
        request = entry["intent"].get("request")
        if not request:
            continue
        name, stage = f"{request['kind']} to {request['target']}", request["stage"]
        if not found or (found[-1].request, found[-1].stage) != (name, stage):
            found.append(Step(_time(entry), name, stage, entry["intent"]["phase"]))
        step, seconds = found[-1], (_time(following) - _time(entry)).total_seconds()
        step.seconds += seconds
        gates = [gate for gate, _since in entry["intent"].get("waiting", ())]
        if gates:
            # Of several closed gates the first is the one that the stage waits for.
            step.waits[gates[0]] = step.waits.get(gates[0], 0.0) + seconds
    return found


def leaders(history: Sequence[Entry]) -> list[Mark]:
    """The first revision of each leader."""
    found: list[Mark] = []
    before: Entry = {"epoch": 0, "leader": ""}
    for entry in history:
        if entry["epoch"] != before["epoch"]:
            ended = f": the lease of {_holder(before)} has ended" if before["leader"] else ""
            found.append(Mark(_time(entry), f"{_holder(entry)} leads under epoch {entry['epoch']}{ended}"))
        before = entry
    return found


def _holder(entry: Entry) -> str:
    """A leader is named by its holder and a random part."""
    return str(entry["leader"].rpartition("-")[0])


def until_stage(found: Iterable[Step], request: str, stage: str) -> list[Step]:
    """The steps of a request before it enters a stage. Before Clean, the workload is started; what follows prepares the peers."""
    own = [step for step in found if step.request == request]
    return own[: [step.stage for step in own].index(stage)]


def table(history: Sequence[Entry], marks: Iterable[Mark]) -> list[str]:
    """The lines of the timeline, with times since the first of them."""
    found = steps(history)
    rows = [(step.at, f"{step.seconds:6.1f} s", f"{step.request}: {step.stage}", _gates(step)) for step in found]
    rows += [(mark.at, " " * 8, mark.what, "") for mark in (*marks, *leaders(history))]
    rows.sort(key=lambda row: row[0])
    width = max((len(row[2]) for row in rows), default=0)
    began = rows[0][0] if rows else None
    lines = [f"{'at':>8}  {'took':>8}  {'step':<{width}}  gate"]
    for at, took, what, gates in rows:
        since = (at - began).total_seconds() if began else 0.0
        lines.append(f"{since:6.1f} s  {took}  {what:<{width}}  {gates}".rstrip())
    return lines


def _gates(step: Step) -> str:
    return ", ".join(f"{gate} {seconds:.1f} s" for gate, seconds in step.waits.items()) or "-"


def _time(entry: Entry) -> datetime.datetime:
    return datetime.datetime.fromisoformat(entry["written_at"])
