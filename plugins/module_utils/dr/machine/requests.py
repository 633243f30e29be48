# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which request is in progress: a new one, the same one, or one that is taken back. Two at once: one wins, the other is reported.

- Until the first demotion the newest request wins.
- After it the request in progress wins, and cannot be taken back; only a Failover replaces it. A disaster does not wait, and both
  clusters may be secondary by then: a Failover to either is the way back.
- A test failover ends only by its promotion or by its revert.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..model import Wait
from ..ramen_api import FAILOVER, Progression
from ..state import DEPLOY, REVERT, TEST, Decision, Request, State
from .context import Context
from .gates import closed, first_closed, gate
from .procedures import PROCEDURES
from .stages import enter_stage, stage_names


@dataclass(frozen=True)
class RequestDecision:
    """The state with another request, if the request changes; what is reported to the user, if it is refused."""

    state: State | None = None
    refused: Wait | None = None


@gate("RequestValid")
def request_valid(context: Context) -> Wait | None:
    intent, names = context.intent, ", ".join(context.policy.clusters)
    field = "failoverCluster" if intent.action == FAILOVER else "preferredCluster"
    if intent.dry_run and intent.action != FAILOVER:
        return closed("dryRun is set without the action Failover", "Set dryRun to false, or action to Failover")
    if intent.action and intent.target not in context.policy.clusters:
        return closed(f"{field} is {intent.target or 'not set'}, which is not in the policy", f"Set {field} to one of {names}")
    if intent.dry_run and intent.target == context.state.home:
        return closed(f"A test failover to {intent.target} is impossible: the workload is there", "Set failoverCluster to its peer")
    return None


def decide_request(context: Context) -> RequestDecision:
    """Compare the request in progress with the one that the spec has."""
    current, wanted = context.state.request, _wanted(context)
    if wanted and (invalid := first_closed(context, ("RequestValid",))):
        return RequestDecision(refused=invalid)
    if current is None:
        return RequestDecision(_begin(context, *wanted)) if wanted and not _is_done(context) else RequestDecision()
    if wanted == (current.kind, current.target):
        return RequestDecision()
    if current.kind == TEST and current.stage != "Check":
        return _end_test(context, current)
    return _change(context, current, wanted)


def _wanted(context: Context) -> tuple[str, str] | None:
    intent = context.intent
    if not intent.action and not intent.dry_run:
        return None
    return TEST if intent.dry_run else intent.action, intent.target


def _is_done(context: Context) -> bool:
    """Whether the DRPlacementControl requests what is there already."""
    intent, state = context.intent, context.state
    return not intent.dry_run and intent.action == state.last_action and intent.target in ("", state.home)


def _change(context: Context, current: Request, wanted: tuple[str, str] | None) -> RequestDecision:
    is_failover = bool(wanted and wanted[0] == FAILOVER)
    if current.kind == DEPLOY:
        return (
            RequestDecision(_begin(context, *wanted))
            if wanted and context.state.home and not _is_done(context)
            else _after(current, wanted)
        )
    if current.kind == REVERT and _is_done(context):
        return RequestDecision()
    if current.demoted or current.kind == REVERT:
        return _replace_by_failover(context, wanted[1]) if wanted and is_failover else _too_late(context, current)
    if wanted and not _is_done(context):
        return RequestDecision(_begin(context, *wanted))
    return RequestDecision(_taken_back(context))


def _after(current: Request, wanted: tuple[str, str] | None) -> RequestDecision:
    """A deployment ends first; without another request there is nothing to report."""
    return RequestDecision(refused=_in_progress(current, f"{wanted[0]} to {wanted[1]} follows it")) if wanted else RequestDecision()


def _replace_by_failover(context: Context, target: str) -> RequestDecision:
    """Only by one that can succeed: otherwise a request that may complete would give way to one that cannot."""
    begun = _begin(context, FAILOVER, target)
    invalid = first_closed(replace(context, state=begun), ("TargetValid",))
    return RequestDecision(refused=invalid) if invalid else RequestDecision(begun)


def _too_late(context: Context, current: Request) -> RequestDecision:
    new = f"{context.intent.action} to {context.intent.target}" if context.intent.action else "To take it back"
    return RequestDecision(refused=_in_progress(current, f"{new} is refused: a demotion was written"))


def _in_progress(current: Request, what: str) -> Wait:
    remedy = "Wait until it is complete, or request a Failover if its cluster is lost"
    return Wait("RequestInProgress", f"{current} is in progress. {what}", remedy)


def _end_test(context: Context, test: Request) -> RequestDecision:
    intent = context.intent
    if not intent.dry_run and (intent.action, intent.target) == (FAILOVER, test.target):
        return RequestDecision(_begin(context, FAILOVER, test.target))
    if _is_done(context):
        return RequestDecision(_begin(context, REVERT, test.target))
    wait = first_closed(context, ("TestEnds",))
    return RequestDecision(refused=replace(wait, gate="TestInProgress") if wait else None)


def _begin(context: Context, kind: str, target: str) -> State:
    """The state with a new request. It inherits a demotion: what was demoted stays so, whatever is requested next.

    Without one, the workload is at home until the new request moves it, also if the one before had cleared the placement.
    """
    state, before = context.state, context.state.request
    origin, demoted = state.last_primary, bool(before and before.demoted)
    if not demoted and state.decision.cluster != state.home:
        state = replace(state, decision=Decision(state.home, reason=f"{before} was replaced" if before else "the state was rebuilt"))
    silent = context.unanswered(context.policy.clusters)
    request = Request(kind, target, "", origin, context.intent.generation, context.now, demoted, unanswered=silent)
    procedure = PROCEDURES[kind]
    first = procedure[stage_names(procedure).index("Ready")] if _is_primary_there(context, kind, target) else procedure[0]
    return enter_stage(context, replace(state, started_at=context.now, duration=0), request, first)


def _is_primary_there(context: Context, kind: str, target: str) -> bool:
    """Whether the target is the primary already, so that only the rest of the procedure is left."""
    if kind in (TEST, REVERT) or target != context.state.last_primary:
        return False
    before, vrg = context.state.request, context.own(target)
    return not (before and before.demoted) or bool(vrg and vrg.claims_data)


def _taken_back(context: Context) -> State:
    state = context.state
    decision = Decision(state.home, reason=f"{state.request} was taken back")
    return replace(
        state, request=None, decision=decision, phase=state.settled_phase, progression=Progression.COMPLETED, started_at="", waiting=()
    )
