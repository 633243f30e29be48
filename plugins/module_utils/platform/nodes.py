# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Nodes of workflows: compared with those of the platform by their identifiers. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Optional

from ..common.types import Object
from .compare import Comparison, Difference, compare_fields, compare_references
from .document import EDGES, NODE, Item, Named, Node
from .resolve import Target
from .snapshot import Snapshot

Resolve = Callable[[Item, str, Iterable[str], Named], Optional[Target]]  # noqa: UP045 - `|` is an operation for the pylint of ansible-test
Edge = tuple[str, str, str]  # from a node, on which outcome, to a node


@dataclass
class NodeChanges:
    """What to do with the nodes of one workflow. Bodies have Targets for ids; nodes are named by their identifiers."""

    create: list[tuple[Node, Object]] = field(default_factory=list)
    update: list[tuple[str, Object]] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    link: list[Edge] = field(default_factory=list)
    unlink: list[Edge] = field(default_factory=list)
    approvals: list[tuple[str, Object]] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)
    fields: list[Difference] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)  # what the nodes launch and use


def compare_nodes(item: Item, current: list[Object], resolve: Resolve, snapshot: Snapshot) -> NodeChanges:
    changes = NodeChanges(known={str(node.get("identifier")): node["id"] for node in current})
    present = {str(node.get("identifier")): node for node in current}
    by_id = {node["id"]: name for name, node in present.items()}
    wanted = {node.identifier: node for node in item.nodes or ()}
    for name, node in wanted.items():
        _compare_node(item, node, present.get(name), resolve, snapshot, changes)
    for name in present:
        if name not in wanted:
            changes.delete.append(name)
            changes.fields.append((f"node {name}", {"unified_job_template": _launched(present[name])}, None))
    before = {
        (name, edge, by_id[other]) for name, node in present.items() for edge in EDGES for other in node.get(edge) or [] if other in by_id
    }
    after = {(name, edge, other) for name, node in wanted.items() for edge in EDGES for other in node.edges[edge]}
    changes.link = sorted(after - before)
    changes.unlink = sorted(edge for edge in before - after if edge[0] in wanted and edge[2] in wanted)
    for start, outcome, end in changes.link:
        changes.fields.append((f"node {start}.{outcome}", None, end))
    for start, outcome, end in changes.unlink:
        changes.fields.append((f"node {start}.{outcome}", end, None))
    return changes


def _compare_node(item: Item, node: Node, current: Object | None, resolve: Resolve, snapshot: Snapshot, changes: NodeChanges) -> None:
    targets: dict[str, dict[Named, Target]] = {}
    for reference in NODE.references:
        named = node.values.get(reference.name)
        if isinstance(named, Named) and named.name:
            target = resolve(item, f"node {node.identifier}: {reference.name}", reference.kinds, named)
            if target:
                targets[reference.name] = {named: target}
                changes.targets.append(target)
    compared = Comparison()
    compare_fields(NODE, node.values, current, compared)
    compare_references(NODE, node.values, current, targets, snapshot, compared)
    if current is None:
        changes.create.append((node, compared.body))
        changes.fields.append((f"node {node.identifier}", None, {name: after for name, _before, after in compared.fields}))
    elif compared.fields:
        changes.update.append((node.identifier, compared.body))
        changes.fields += [(f"node {node.identifier}.{name}", before, after) for name, before, after in compared.fields]
    if node.approval is not None and (current is None or _launched(current) != node.approval["name"]):
        changes.approvals.append((node.identifier, node.approval))
        changes.fields.append((f"node {node.identifier}.approval", _launched(current) if current else None, node.approval["name"]))


def _launched(node: Object | None) -> str | None:
    shown = ((node or {}).get("summary_fields") or {}).get("unified_job_template") or {}
    return shown.get("name")
