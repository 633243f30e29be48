# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A workload without a request: its home, its peers and its placement are kept as recorded."""

from __future__ import annotations

from dataclasses import replace

from ..model import Wait
from ..state import State
from .completion import clean_up, keep_home
from .context import Context, Outcome
from .gates import closed, first_closed, gate

PEER_GATES = ("PeersAnswer", "PeersSecondary", "PeerSynced")


@gate("PeerSynced")
def peer_synced(context: Context) -> Wait | None:
    """A sync that is newer than the move has reached the peer: before, a failover back would lose the move's data."""
    home = context.own(context.state.home)
    if context.policy.synchronous or (home and home.last_sync > context.state.moved_at):
        return None
    return closed("No sync is complete since the last move", "Wait for the next sync; check the replication if none comes")


def settle(context: Context) -> Outcome:
    outcome = maintain(context)
    wait = None if context.state.peer_ready else first_closed(context, PEER_GATES)
    return outcome if outcome.state or not wait else replace(outcome, waits=(wait,))


def maintain(context: Context) -> Outcome:
    """Also while a request only waits for its first gates: they may wait for what is done here."""
    settled = replace(context, state=replace(context.state, request=None))
    learned = _learn(settled)
    if learned != settled.state:
        return Outcome(replace(learned, request=context.state.request))
    # A peer that was never ready may have a workload from before the protection: what to do with it is not known.
    was_protected = settled.state.peer_ready or settled.state.moved_at or settled.state.last_action
    return Outcome(actions=clean_up(settled) if was_protected else keep_home(settled))


def _learn(context: Context) -> State:
    """What the state has to know later, when the home may not answer."""
    state, home = context.state, context.own(context.state.home)
    storage = home.storage if home and home.reports_primary else state.storage
    ready = state.peer_ready or first_closed(context, PEER_GATES) is None
    return replace(state, storage=storage, leftovers=remaining_leftovers(context), peer_ready=ready)


def remaining_leftovers(context: Context) -> tuple[str, ...]:
    """The clusters that did not answer since, or still have an object of an earlier protection."""
    return tuple(name for name in context.state.leftovers if not (context.is_absent(name) or context.own(name)))
