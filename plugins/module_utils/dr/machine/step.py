# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One step of disaster recovery for one workload. A pure function: the same input has the same result.

A step either changes the state, which is written before anything else is done, or returns actions. So an intent is a revision in the
bucket before it is acted on, and a step that is repeated, or whose actions were lost, does no harm: the next observation goes on.
"""

from __future__ import annotations

from dataclasses import replace

from ..model import Intent, Observations, Policy, Step, Wait
from ..ramen_api import ENDED_EPOCH
from ..state import State
from .conditions import conditions
from .context import Context, Outcome
from .deletion import delete, sweep
from .deploy import begin_deployment
from .gates import closed, first_closed, gate
from .namespaces import NAMESPACE_GATES
from .procedures import PROCEDURES, complete
from .rebuild import is_rebuilt, rebuild
from .requests import decide_request
from .settled import maintain, settle
from .stages import run_stage


@gate("NoNewerStamp")
def no_newer_stamp(context: Context) -> Wait | None:
    """A later leader, or a later revision, has written already: this one acts no more."""
    stamp = context.state.epoch, context.state.revision
    (epoch, revision), name = context.newest_stamp
    if (epoch, revision) <= stamp:
        return None
    remedy = "If the bucket was restored from a backup, delete the state of this workload in it"
    if is_rebuilt(context.state):
        remedy = f"If the bucket was lost, confirm it: annotate this DRPlacementControl with {ENDED_EPOCH}={epoch}"
    return closed(
        f"{name} was written under epoch {epoch}, revision {revision}, and the bucket knows only {stamp[0]}-{stamp[1]}",
        f"A later leader continues. If none acts, check that the engines of all clusters use the same bucket. {remedy}",
    )


def step(intent: Intent, state: State, observations: Observations, policy: Policy) -> Step:
    """What to record, or what to do, and what it waits for."""
    context = Context(intent, state, observations, policy)
    return _conclude(context, _decide(context))


def sweep_leftovers(intent: Intent, state: State, observations: Observations, policy: Policy) -> Step:
    """The same for a protection that has ended, while members still have objects of it."""
    context = Context(intent, state, observations, policy)
    return _conclude(context, sweep(context))


def _decide(context: Context) -> Outcome:
    if wait := first_closed(context, ("NoNewerStamp",)):
        return Outcome(waits=(wait,))
    if ending := delete(context):
        return ending
    if wait := first_closed(context, NAMESPACE_GATES):
        return Outcome(waits=(wait,))
    return rebuild(context) or _proceed(context)


def _proceed(context: Context) -> Outcome:
    if not context.state.home and not context.state.request:
        return begin_deployment(context)
    decision = decide_request(context)
    if decision.state:
        return Outcome(decision.state)
    outcome = _work(context) if context.state.request else settle(context)
    return replace(outcome, waits=outcome.waits + ((decision.refused,) if decision.refused else ()))


def _work(context: Context) -> Outcome:
    """The stage of the request. Until it has left its first gates, and unless something was demoted, all else is maintained as before."""
    request = context.request
    outcome = run_stage(context, PROCEDURES[request.kind], complete)
    if outcome.state or request.demoted or request.stage != "Check":
        return outcome
    background = maintain(context)
    return background if background.state else replace(outcome, actions=background.actions)


def _conclude(context: Context, outcome: Outcome) -> Step:
    """Record first: if the state differs, the actions are computed again once it is written."""
    waits = tuple(replace(wait, since=context.state.since(wait.gate) or context.now) for wait in outcome.waits)
    waiting = tuple((wait.gate, wait.since) for wait in waits)
    if outcome.state:
        state = replace(outcome.state, waiting=waiting or outcome.state.waiting)
    else:
        state = replace(context.state, waiting=waiting, progression=_progression(context.state, waits))
    actions = outcome.actions if state == context.state else ()
    return Step(state, actions, waits, conditions(context, state, waits))


def _progression(state: State, waits: tuple[Wait, ...]) -> str:
    """Ramen has names of its own for some waits. Once the gate is open, the name of the stage is back."""
    if not state.request:
        return state.progression
    stage = next(stage for stage in PROCEDURES[state.request.kind] if stage.name == state.request.stage)
    return next((wait.progression for wait in waits if wait.progression), stage.progression)
