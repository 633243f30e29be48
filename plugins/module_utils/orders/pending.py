# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The next actions of several orders at once: for a run without named orders, the info module and the inventory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeAlias

from ..kube.client import Kube
from ..kube.errors import Forbidden, KubeError
from .model import ClusterOrder, Names
from .next_action import next_action
from .observe import ListView, LiveView, ObservedState, observe
from .outcome import Action

Decision: TypeAlias = "Action | KubeError | None"


def next_actions(kube: Kube, names: Names, orders: Sequence[ClusterOrder], *, poll: bool = True) -> list[Decision] | None:
    """The next action of each order, or why it is not known; None where the caller has no permission to read what it depends on.

    Without `poll` only the hub is read: a provider that does not answer delays nothing, and the orders of such providers get NotAsked.
    """
    if not orders:
        return []
    try:
        single = len(orders) == 1 and poll
        view = ListView(kube, names, orders, poll=poll) if not single else None
        states = view.observe_all() if view else kube.in_parallel(lambda order: observe(order, LiveView(kube)), orders)
    except Forbidden:
        return None
    if any(isinstance(state, Forbidden) for state in states):
        return None
    now = kube.server_time() or datetime.now(UTC)
    return _decided(kube, orders, states, now)


def orders_needing(kube: Kube, names: Names, action: Action) -> list[ClusterOrder]:
    """All orders of the hub whose next action is this one."""
    view = ListView(kube, names)
    actions = _decided(kube, view.orders, view.observe_all(), view.time)
    return [order for order, needed in zip(view.orders, actions, strict=True) if needed == action]


def _decided(kube: Kube, orders: Sequence[ClusterOrder], states: Sequence[ObservedState | KubeError], now: datetime) -> list[Decision]:
    """An error of one order concerns only this one; it is reported where its status is updated."""

    def decide(pair: tuple[ClusterOrder, ObservedState | KubeError]) -> Decision:
        order, observed = pair
        return observed if isinstance(observed, KubeError) else next_action(order, observed, now)

    return kube.in_parallel(decide, zip(orders, states, strict=True))
