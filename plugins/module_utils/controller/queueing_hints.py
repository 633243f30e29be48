# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Queueing hints: which changes of quotas and hubs may let pending clusters be scheduled. Pure.

Other changes, such as a heartbeat or a reservation, requeue none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..common.types import Object
from ..fleet.hub_state import is_ready

OFFERED = ("templates", "nodes")


def is_relevant_to_all(before: Object | None, after: Object | None) -> bool:
    """Whether the limits of a quota changed: lifetimes and denials concern clusters that exist too."""
    return ((before or {}).get("spec") or {}) != ((after or {}).get("spec") or {})


def quota_freed(before: Object | None, after: Object | None) -> bool:
    """Whether less is used than before."""
    then, now = _status(before).get("used") or {}, _status(after).get("used") or {}
    return any(now.get(key, 0) < amount for key, amount in then.items())


def hub_may_fit(before: Object | None, after: Object) -> bool:
    """Whether the hub may fit clusters that it did not fit before."""
    if before is None:
        return True
    if before["spec"] != after["spec"] or before["metadata"].get("labels") != after["metadata"].get("labels"):
        return True
    then, now = _status(before), _status(after)
    return is_ready(now) and (
        not is_ready(then) or any(then.get(key) != now.get(key) for key in OFFERED) or _grew(then.get("free") or {}, now.get("free") or {})
    )


def _grew(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    if int(now.get("clusters") or 0) > int(then.get("clusters") or 0):
        return True
    nodes = then.get("nodes") or {}
    return any(count > nodes.get(name, 0) for name, count in (now.get("nodes") or {}).items())


def _status(item: Object | None) -> Object:
    return (item or {}).get("status") or {}
