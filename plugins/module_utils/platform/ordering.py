# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The order of changes: an object after those that it refers to, and deleted before them. Pure functions."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Mapping

from .document import Item
from .kinds import ACTIVATIONS, EDA_ORGANIZATIONS, EVENT_STREAMS, KINDS, ORGANIZATIONS
from .plan import Change


def in_groups(items: Iterable[Item], changes: Iterable[Change], needs: Mapping[Item, set[Item]]) -> list[list[Change]]:
    """Changes in groups that need only the groups before them. `needs` has what an item needs, also through unchanged items."""
    by_item = {change.item: change for change in changes if change.item}
    sorter = graphlib.TopologicalSorter({item: needs.get(item, set()) for item in items})
    sorter.prepare()
    groups = []
    while sorter.is_active():
        ready = sorter.get_ready()
        if group := [by_item[item] for item in ready if item in by_item]:
            groups.append(group)
        sorter.done(*ready)
    return groups


def in_reverse(deletions: list[Change]) -> list[list[Change]]:
    """Deletions, those first that others are not referred to by: a group for each kind."""
    order = kind_order()
    groups = {key: [change for change in deletions if change.kind.key == key] for key in reversed(order)}
    return [group for group in groups.values() if group]


def kind_order() -> list[str]:
    """The kinds, each after those that it refers to."""
    graph = {key: {target for target in kind.targets() if target != key} for key, kind in KINDS.items()}
    graph[EDA_ORGANIZATIONS] = {ORGANIZATIONS}
    graph[ACTIVATIONS].add(EVENT_STREAMS)
    return list(graphlib.TopologicalSorter(graph).static_order())
