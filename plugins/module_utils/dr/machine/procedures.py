# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The procedure of each kind of request, and the state after it."""

from __future__ import annotations

from dataclasses import replace

from ...common.timestamps import parse_time
from ..ramen_api import FAILOVER, RELOCATE, Progression
from ..state import DEPLOY, REVERT, TEST, State
from . import deploy, dry_run, failover, relocate
from .context import Context
from .stages import Procedure

PROCEDURES: dict[str, Procedure] = {
    DEPLOY: deploy.PROCEDURE,
    FAILOVER: failover.PROCEDURE,
    RELOCATE: relocate.PROCEDURE,
    TEST: dry_run.PROCEDURE,
    REVERT: dry_run.REVERSAL,
}


def complete(context: Context, state: State) -> State:
    """The request is done. After a deployment the peer is ready; after a move it needs a sync first."""
    started = parse_time(context.request.started_at)
    return replace(
        state,
        request=None,
        phase=state.settled_phase,
        progression=Progression.COMPLETED,
        peer_ready=context.request.kind == DEPLOY,
        duration=int((context.observations.now - started).total_seconds()) if started else 0,
        waiting=(),
    )
