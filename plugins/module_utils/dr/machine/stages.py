# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a request comes forward: a procedure is a row of stages, and a stage has gates, work and gates.

A stage ends only forwards. Entering one is a revision of the state, before any work of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..model import Action
from ..state import Request, State
from .context import Context, Outcome
from .gates import first_closed

Work = Callable[[Context], tuple[Action, ...]]
Enter = Callable[[Context, State], State]


def no_work(_context: Context) -> tuple[Action, ...]:
    return ()


def unchanged(_context: Context, state: State) -> State:
    return state


@dataclass(frozen=True)
class Stage:
    """One stage, with Ramen's names for it. A phase of None leaves the phase as it is."""

    name: str
    phase: str | None
    progression: str
    before: tuple[str, ...] = ()  # gates of the work
    work: Work = no_work  # what is left to do now
    after: tuple[str, ...] = ()  # gates of the next stage
    enter: Enter = unchanged  # what is recorded together with the stage


Procedure = tuple[Stage, ...]


def stage_names(procedure: Procedure) -> list[str]:
    return [stage.name for stage in procedure]


def run_stage(context: Context, procedure: Procedure, complete: Enter) -> Outcome:
    """The work of the current stage and the gate it waits for; or the state with the next stage, or with the end of the request."""
    position = stage_names(procedure).index(context.request.stage)
    stage = procedure[position]
    if wait := first_closed(context, stage.before):
        return Outcome(waits=(wait,))
    actions = stage.work(context)
    if wait := first_closed(context, stage.after):
        return Outcome(actions=actions, waits=(wait,))
    if actions:
        return Outcome(actions=actions)
    if position + 1 == len(procedure):
        return Outcome(complete(context, context.state))
    return Outcome(enter_stage(context, context.state, context.request, procedure[position + 1]))


def enter_stage(context: Context, state: State, request: Request, stage: Stage) -> State:
    phase = state.phase if stage.phase is None else stage.phase
    entered = replace(state, request=replace(request, stage=stage.name), phase=phase, progression=stage.progression, waiting=())
    return stage.enter(context, entered)


def with_request(state: State, **changes: object) -> State:
    """The state with changes to its request."""
    return replace(state, request=replace(state.in_progress, **changes))  # type: ignore[arg-type]
