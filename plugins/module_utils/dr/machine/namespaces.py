# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which namespaces a DRPlacementControl may protect: Ramen's rules for the namespace for operations, and for common namespaces."""

from __future__ import annotations

from ..model import Intent, Neighbor, Wait
from .context import Context
from .gates import closed, gate

NAMESPACE_GATES = ("NamespacesAllowed", "NamespacesFree")


@gate("NamespacesAllowed")
def namespaces_allowed(context: Context) -> Wait | None:
    """A permission to create DRPlacementControls in one namespace is none for the volumes and workloads of others."""
    intent, ops = context.intent, context.observations.ops_namespace
    if intent.namespace == ops:
        return _allowed_for_operations(intent)
    others = [name for name in intent.protected_namespaces if name != intent.namespace]
    if not others:
        return None
    return closed(
        f"A DRPlacementControl in {intent.namespace} cannot protect {', '.join(others)}",
        f"Create it in {ops or 'the namespace for that'}, the ops_namespace of dr-settings",
    )


@gate("NamespacesFree")
def namespaces_free(context: Context) -> Wait | None:
    """Two that protect one namespace would restore and remove each other's objects.

    Only before the first deployment: nothing that is created later may stop the failover of a protected workload.
    """
    if context.state.home or context.state.request:
        return None
    conflicts = [neighbor for neighbor in context.observations.neighbors if _comes_first(neighbor, context)]
    if not conflicts:
        return None
    names = " and ".join(f"{neighbor.name} ({', '.join(neighbor.namespaces)})" for neighbor in conflicts)
    return closed(
        f"{names} protects a namespace of this DRPlacementControl, on a cluster of its policy",
        "Delete one of them, or set protectedNamespaces so that each namespace is in one of them",
    )


def _allowed_for_operations(intent: Intent) -> Wait | None:
    if not intent.protected_namespaces:
        return closed(f"A DRPlacementControl in {intent.namespace} protects other namespaces, and names none", "Set protectedNamespaces")
    if intent.namespace not in intent.protected_namespaces:
        return None
    return closed(f"{intent.namespace}, the namespace for operations, cannot be protected", "Remove it from protectedNamespaces")


def _comes_first(neighbor: Neighbor, context: Context) -> bool:
    """One that has begun; of two that have not, the first by name, so that not both wait."""
    return neighbor.begun or neighbor.name < f"{context.intent.namespace}/{context.intent.name}"
