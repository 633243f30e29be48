# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The nodes of an order by resource class: how many it wants, how many the cluster requests, how many are ready. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..common.types import Object
from ..providers.model import NodeRequest, NodeSet
from .model import ClusterOrder

Wanted = dict[str, int]  # number of nodes by resource class


@dataclass(frozen=True)
class NodeCount:
    """The nodes of one class: wanted, ready and surplus. Not `certain` while a node set reports an older generation.

    Not `counted` where the provider cannot know how many there are: then none is missing, and none is surplus.
    """

    resource_class: str
    requested: int
    ready: int
    surplus: int
    certain: bool
    counted: bool = True

    def to_status(self) -> Object:
        known = {"ready": self.ready} if self.counted else {}
        return {"resourceClass": self.resource_class, "requested": self.requested, **known}


def wanted_nodes(order: ClusterOrder, defaults: Sequence[NodeRequest] | None = None) -> Wanted | None:
    """The ordered nodes by class; None for an order that names none before its template's `defaults` are known."""
    wanted: Counter[str] = Counter()
    if order.node_requests or defaults is not None:
        for request in order.node_requests or defaults or ():
            wanted[request.resource_class] += max(request.number_of_nodes, 0)
    elif "nodeSets" in order.status:  # the defaults as the last run recorded them
        wanted.update({item["resourceClass"]: item["requested"] for item in order.status["nodeSets"] if item["requested"]})
    else:
        return None
    return dict(wanted)


def requests_match(node_sets: Sequence[NodeSet], wanted: Wanted | None) -> bool:
    """Whether the cluster requests the nodes that the order wants. How many of them exist does not matter here."""
    if wanted is None:
        return True
    requested: Counter[str] = Counter()
    for item in node_sets:
        if item.deleting or item.preexisting:
            continue
        if item.resource_class not in wanted:
            return False
        requested[item.resource_class] += wanted[item.resource_class] if item.requested is None else item.requested
    return all(requested[resource_class] == count for resource_class, count in wanted.items())


def node_counts(order: ClusterOrder, node_sets: Sequence[NodeSet], wanted: Wanted | None) -> list[NodeCount] | None:
    """The wanted classes, then those that exist and are not wanted. None while the wanted nodes are not known."""
    if wanted is None:
        return None
    known = {item.get("resourceClass"): item.get("ready", 0) for item in order.status.get("nodeSets") or []}
    counts = []
    for resource_class in dict.fromkeys([*wanted, *(item.resource_class for item in node_sets)]):
        requested = wanted.get(resource_class, 0)
        mine = [item for item in node_sets if item.resource_class == resource_class]
        if not all(item.counted for item in mine):
            counts.append(NodeCount(resource_class, requested, 0, 0 if resource_class in wanted else 1, certain=True, counted=False))
            continue
        certain = not any(item.outdated for item in mine)
        # An outdated number is neither used nor taken for a loss: the last known one stays.
        reported = sum(item.ready for item in mine) if certain else known.get(resource_class, 0)
        surplus = max(reported - requested, 0)
        if any(item.preexisting for item in mine):
            surplus = 0
        elif resource_class not in wanted:
            surplus = max(surplus, 1)  # the node set itself is surplus, even without nodes
        elif any(item.requested is None for item in mine):
            surplus = 0
        counts.append(NodeCount(resource_class, requested, min(reported, requested) if requested else reported, surplus, certain))
    return counts


def existing_nodes(node_sets: Sequence[NodeSet]) -> list[Object] | None:
    """The ready nodes by class, in the form of the spec's `nodeRequests`."""
    count: Counter[str] = Counter()
    for item in node_sets:
        if item.counted:
            count[item.resource_class] += item.ready
    return [{"resourceClass": name, "numberOfNodes": nodes} for name, nodes in count.items()] or None


def ready_of_requested(nodes: Sequence[NodeCount]) -> tuple[int, int]:
    """How many of the wanted nodes are ready, and how many are wanted, over all classes whose nodes are counted."""
    counted = [item for item in nodes if item.counted]
    return sum(min(item.ready, item.requested) for item in counted), sum(item.requested for item in counted)


def ready_column(nodes: Sequence[NodeCount]) -> str:
    """The ready and the wanted nodes for a column; a question mark for those that nothing counts."""
    ready, _requested = ready_of_requested(nodes)
    return f"{ready if all(item.counted for item in nodes) else '?'}/{sum(item.requested for item in nodes)}"
