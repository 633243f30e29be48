"""What a process of disaster recovery decides and does, in a file that survives its death; and the history of a run for the checker.

The bucket has each revision of a state, but not what it was decided on: that is in the journals.
"""

from __future__ import annotations

import contextlib
import pickle
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.clock import boottime
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import State as StateDocument
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.act import Acted
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.reconcile import Reconciler, Result, View, _Run
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import State
from ansible_collections.openfleet.clusters.tests.unit.dr.audit import (
    Entry,
    Performed,
    Recorded,
    Reports,
    audit,
    is_stuck,
    reports_of,
)


@dataclass(frozen=True)
class Did:
    """One round of actions: when it began and ended, by the clock that all processes share, and what it changed."""

    epoch: int
    began: float
    ended: float
    changed: tuple[str, ...]


@dataclass(frozen=True)
class Stuck:
    """A reconcile that ended without a reason, although a request is in progress."""

    state: State


Line = Recorded | Performed | Did | Stuck


class Journal:
    """Each line is in the file before anything of it is done."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        self._mutex = threading.Lock()

    def add(self, *lines: Line) -> None:
        with self._mutex:
            for line in lines:
                pickle.dump(line, self._file)
            self._file.flush()


def read_journal(path: Path) -> list[Line]:
    """All lines but one that its process was killed in."""
    lines: list[Line] = []
    with path.open("rb") as file, contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            lines.append(pickle.load(file))  # noqa: S301 - our own
    return lines


class JournalReconciler(Reconciler):
    """A Reconciler with a journal. It decides and does the same."""

    def __init__(self, journal: Journal, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._journal = journal

    def _run(self, workload: WorkloadRef, *, write: bool = True) -> _Run:
        run = super()._run(workload, write=write)
        journaled = _JournaledRun(run.kube, run.access, run.states, run.observer, run.workload, run.write)
        journaled.states = _JournaledStates(run.states, journaled, self._journal)
        return journaled

    def _act(self, run: _Run, view: View) -> Acted:
        stamp = view.state.epoch, view.state.revision
        self._journal.add(*(Performed(action, *stamp, _reports(view)) for action in view.step.actions))
        began = boottime()
        acted = super()._act(run, view)
        self._journal.add(Did(view.state.epoch, began, boottime(), tuple(acted.changed)))
        return acted

    def _conclude(self, result: Result, view: View) -> None:
        super()._conclude(result, view)
        if is_stuck(view.step):
            self._journal.add(Stuck(view.state))


@dataclass
class _JournaledRun(_Run):
    last: View | None = field(default=None, init=False)

    def view(self) -> View | None:
        self.last = super().view()
        return self.last


class _JournaledStates(StateStore):
    """The same store. `write` is called by the leader only."""

    def __init__(self, states: StateStore, run: _JournaledRun, journal: Journal) -> None:
        vars(self).update(vars(states))
        self._run = run
        self._journal = journal

    def write(self, epoch: int, changes: Mapping[str, Any], expected_revision: int | None = None) -> StateDocument:
        if view := self._run.last:
            self._journal.add(Recorded(replace(view.step.state, epoch=epoch, revision=(expected_revision or 0) + 1), _reports(view)))
        return super().write(epoch, changes, expected_revision)


def _reports(view: View) -> dict[str, Any]:
    return reports_of(view.intent, view.state, view.observations, view.policy)


def history(revisions: Iterable[Mapping[str, Any]], lines: Iterable[Line]) -> list[Entry]:
    """The revisions in the bucket, each with what it was decided on and followed by the actions that carry it."""
    known: dict[tuple[int, int], Reports] = {}
    performed: dict[tuple[int, int], list[Performed]] = {}
    for line in lines:
        if isinstance(line, Recorded):
            known[line.state.epoch, line.state.revision] = line.reports
        elif isinstance(line, Performed):
            performed.setdefault((line.epoch, line.revision), []).append(line)
    entries: list[Entry] = []
    for content in revisions:
        state = State.from_document(StateDocument(**{name: content[name] for name in ("epoch", "revision", "intent", "decision", "step")}))
        stamp = state.epoch, state.revision
        entries += [Recorded(state, known.get(stamp, {})), *performed.pop(stamp, [])]
    # What carries a revision that the bucket does not have.
    return entries + [each for rest in performed.values() for each in rest]


def violations(revisions: Iterable[Mapping[str, Any]], lines: Iterable[Line]) -> list[str]:
    """What the checker finds in a run, runs that do not say what they wait for, and leaders that acted after a later one."""
    lines = list(lines)
    found = [str(violation) for violation in audit(history(revisions, lines))]
    found += [f"{line.state.request} neither continues nor waits" for line in lines if isinstance(line, Stuck)]
    rounds = [line for line in lines if isinstance(line, Did) and line.changed]
    for late in rounds:
        if earlier := next((other for other in rounds if other.epoch > late.epoch and other.ended < late.began), None):
            found.append(f"epoch {late.epoch} does {late.changed} after epoch {earlier.epoch} did {earlier.changed}")
    return found
