# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Test failover: the target becomes primary for a trial, while the home keeps its data, its workload and the placement.

A test ends by a promotion, which is a failover to the same cluster, or by a revert to what was there before.
"""

from __future__ import annotations

from dataclasses import replace

from ...common.timestamps import parse_time
from ..model import Action, StopWorkload, Wait
from ..ramen_api import TRUE, Phase, Progression
from ..state import State
from .completion import start_workload
from .context import Context
from .desired import primary_spec, reconcile_vrg, secondary_spec
from .gates import closed, gate
from .protected import protected
from .stages import Stage

FRESH_SYNCS = 3  # a test needs a sync that is not older than so many intervals


@gate("TestAllowed")
def test_allowed(context: Context) -> Wait | None:
    """A test interrupts the replication, so the workload has to be well protected before."""
    state = protected(context)
    if state.status != TRUE:
        return closed(f"The workload is not protected: {state.message}", "Wait until the condition Protected is True")
    target = context.own(context.target)
    if target and target.claims_data:
        return closed(f"{context.target} is primary", "Wait until it is a clean peer, or request a Failover")
    if context.policy.synchronous or _is_fresh(context):
        return None
    return closed(
        f"The last sync is older than {FRESH_SYNCS} intervals of {context.policy.scheduling_interval}",
        "Wait for a sync; check the replication if none comes",
    )


@gate("TestEnds")
def test_ends(context: Context) -> Wait | None:
    before = f"action {context.state.last_action} to {context.state.home}" if context.state.last_action else "no action"
    return closed(
        f"A test failover runs on {context.target}",
        f"Set dryRun to false to promote it, or dryRun to false and {before} to revert it",
    )


@gate("TestReverted")
def test_reverted(context: Context) -> Wait | None:
    vrg = context.own(context.target)
    if vrg and vrg.reports_secondary:
        return None
    return closed(
        f"{context.target} is not reported as secondary again after the test",
        "Check that the tested workload is stopped there, and its VolumeReplicationGroup",
    )


def try_target(context: Context) -> tuple[Action, ...]:
    return reconcile_vrg(context, context.target, primary_spec(context, context.target, dryRun=True))


def run_test(context: Context) -> tuple[Action, ...]:
    return try_target(context) + start_workload(context)


def revert(context: Context) -> tuple[Action, ...]:
    target, workload = context.target, context.workload(context.target)
    stop = (StopWorkload(target),) if workload and workload.wanted and not context.intent.discovered else ()
    return stop + reconcile_vrg(context, target, secondary_spec(context, target))


def record_test(context: Context, state: State) -> State:
    """The peer is ready again after a sync that is newer than the last one before the test."""
    home = context.own(state.home)
    return replace(state, peer_ready=False, moved_at=max(state.moved_at, home.last_sync if home else ""))


def _is_fresh(context: Context) -> bool:
    home = context.own(context.state.home)
    last = parse_time(home.last_sync) if home else None
    return last is not None and context.observations.now - last <= FRESH_SYNCS * context.policy.interval


PROCEDURE = (
    Stage("Check", Phase.INITIATING, Progression.NONE, after=("TargetValid", "TestAllowed", "GlobalConsensus")),
    Stage("Try", Phase.FAILING_OVER, Progression.FAILING_OVER, work=try_target, after=("Restored",), enter=record_test),
    Stage("Ready", Phase.FAILING_OVER, Progression.WAIT_FOR_READINESS, work=try_target, after=("TargetReady",)),
    Stage("Testing", Phase.FAILED_OVER, Progression.TESTING_FAILOVER, ("TargetReady",), run_test, ("TestEnds",)),
)
REVERSAL = (Stage("Revert", None, Progression.CLEANING_UP, work=revert, after=("TestReverted",), enter=record_test),)
