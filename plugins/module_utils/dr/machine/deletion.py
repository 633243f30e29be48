# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The end of a protection: secondaries are deleted first, then the primary. The workload stays.

A member that does not answer for a while does not keep the protection alive. It is recorded, and what it has left is deleted when it
answers again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from ...common.timestamps import parse_time
from ..model import Action, DeleteVRG, ReleaseDRPC, Wait
from ..ramen_api import Phase, Progression
from ..state import State
from .context import Context, Outcome
from .gates import closed, first_closed, gate
from .rebuild import is_rebuilt

GRACE = timedelta(minutes=5)  # a member that answers again within this time leaves nothing behind


@gate("MembersAnswer")
def members_answer(context: Context) -> Wait | None:
    missing = [name for name in context.unanswered(context.policy.clusters) if name not in context.state.leftovers]
    if not missing:
        return None
    return closed(
        f"{context.explain(missing)} does not answer, and may have a VolumeReplicationGroup",
        f"Restore the cluster or its access. After {GRACE.seconds // 60} minutes the protection ends without it",
    )


@gate("SecondariesDeleted")
def secondaries_deleted(context: Context) -> Wait | None:
    left = [name for name, is_primary in _all_own(context).items() if not is_primary]
    return closed(f"The secondary of {' and '.join(left)} is being deleted", "Check its finalizers") if left else None


@gate("PrimariesDeleted")
def primaries_deleted(context: Context) -> Wait | None:
    left = [name for name, is_primary in _all_own(context).items() if is_primary]
    return closed(f"The primary of {' and '.join(left)} is being deleted", "Check its finalizers") if left else None


def delete(context: Context) -> Outcome | None:
    """None while nothing is being deleted."""
    state = context.state
    if not context.intent.deleting:
        return None
    if state.is_deleted:
        return Outcome(actions=(ReleaseDRPC(),))
    if state.phase != Phase.DELETING:
        uid = _owner(context)
        return Outcome(replace(state, uid=uid, phase=Phase.DELETING, progression=Progression.DELETING, request=None, waiting=()))
    return _delete_all(context)


def _owner(context: Context) -> str:
    """If the bucket was lost, it is the one of the newest object that a leader wrote: without it all of them would be left behind."""
    written = [vrg for vrg in context.vrgs.values() if vrg.epoch]
    return max(written, key=lambda vrg: vrg.stamp).owner if written and is_rebuilt(context.state) else context.state.uid


def _delete_all(context: Context) -> Outcome:
    wait = first_closed(context, ("MembersAnswer", "SecondariesDeleted", "PrimariesDeleted"))
    if wait and wait.gate == "MembersAnswer" and _is_over(context):
        return Outcome(_leave_behind(context))
    if not wait:
        return Outcome(replace(context.state, progression=Progression.DELETED, waiting=()))
    return Outcome(actions=_deletions(context), waits=(wait,))


def _deletions(context: Context) -> tuple[Action, ...]:
    """Secondaries; once they are gone, and every member has answered or is recorded, the primaries."""
    primaries = first_closed(context, ("MembersAnswer", "SecondariesDeleted")) is None
    return _delete_these(context, _all_own(context), primaries)


def _delete_these(context: Context, owned: Mapping[str, bool], primaries: bool) -> tuple[Action, ...]:
    return tuple(DeleteVRG(name) for name, is_primary in owned.items() if is_primary == primaries and not context.vrgs[name].deleting)


def _all_own(context: Context) -> dict[str, bool]:
    """Whether each VolumeReplicationGroup of this protection is a primary, those in deletion included."""
    return {name: vrg.claims_data for name, vrg in context.vrgs.items() if context.is_owned(vrg)}


def _is_over(context: Context) -> bool:
    """If no member answers at all, the leader is the one that is cut off."""
    if len(context.unanswered(context.policy.clusters)) == len(context.policy.clusters):
        return False
    since = parse_time(context.state.since("MembersAnswer"))
    return since is not None and context.observations.now - since >= GRACE


def _leave_behind(context: Context) -> State:
    silent = context.unanswered(context.policy.clusters)
    return replace(context.state, leftovers=tuple(sorted({*context.state.leftovers, *silent})))


def sweep(context: Context) -> Outcome:
    """After the end of a protection: delete what members had left when they answer again, secondaries first here too."""
    owned = _all_own(context)
    left = tuple(name for name in context.state.leftovers if name in owned or not context.answered(name))
    if left != context.state.leftovers:
        return Outcome(replace(context.state, leftovers=left, waiting=()))
    return Outcome(actions=_delete_these(context, {name: owned[name] for name in left if name in owned}, all(owned.values())))
