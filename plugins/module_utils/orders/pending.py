# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The next actions of several orders at once: for a run without named orders, the info module and the inventory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ..kube.client import Kube
from ..kube.errors import Forbidden
from .model import ClusterOrder, Names
from .next_action import next_action
from .observe import ListView, LiveView, observe
from .outcome import Action


def next_actions(kube: Kube, names: Names, orders: Sequence[ClusterOrder], *, poll: bool = True) -> list[Action | None] | None:
    """The next action of each order; None where the caller has no permission to read what it depends on.

    Without `poll` only the hub is read: a provider that does not answer delays nothing.
    """
    if not orders:
        return []
    try:
        single = len(orders) == 1 and poll
        states = [observe(orders[0], LiveView(kube))] if single else ListView(kube, names, orders, poll=poll).observe_all()
    except Forbidden:
        return None
    now = kube.server_time() or datetime.now(UTC)
    return [next_action(order, observed, now) for order, observed in zip(orders, states, strict=True)]


def orders_needing(kube: Kube, names: Names, action: Action) -> list[ClusterOrder]:
    """All orders of the hub whose next action is this one."""
    view = ListView(kube, names)
    return [
        order for order, observed in zip(view.orders, view.observe_all(), strict=True) if next_action(order, observed, view.time) == action
    ]
