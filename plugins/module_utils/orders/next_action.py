# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The one decision: what to do next for an order, from its spec, its status and its observed state. Pure.

The event source, the playbooks, the info modules and the inventory all call `next_action`, so they always agree.
"""

from __future__ import annotations

from datetime import datetime

from ..providers.model import AVAILABLE, ObservedCluster
from .conditions import was_applied
from .gitops import is_repair_due
from .infrastructure import NOT_READY, due_step, parts_of, pending
from .model import DELETING_CLUSTER, ClusterOrder
from .nodes import requests_match, wanted_nodes
from .observe import ObservedState
from .outcome import Action


def next_action(order: ClusterOrder, observed: ObservedState, now: datetime) -> Action | None:
    """The action that the order needs now; None when it needs none, or when something else has to happen first.

    A deletion in progress is waited for: its end is the next event. With an external controller the working namespace and the
    finalizer `<group>/finalizer` belong to that controller.
    """
    if order.management_state != "managed" or (order.failure and not order.failure.is_due(now)):
        return None
    cluster = observed.cluster
    if order.is_deleting:
        waits = bool(pending(parts_of(order))) and due_step(order, now) != "delete"
        return "delete" if not waits and _must_delete(order, observed) else None
    if order.names.external_controller and (not observed.namespace_exists or observed.namespace_deleting):
        return None  # the external controller creates it first, or again; nothing can be created in one that is being deleted
    wanted = wanted_nodes(order)
    if cluster.is_deleting or any(item.deleting and item.resource_class in (wanted or ()) for item in cluster.node_sets):
        return None
    if not order.is_applied or not cluster.exists or not requests_match(cluster.node_sets, wanted):
        return "provision"
    if not was_applied(order, cluster):
        return "post_install" if cluster.is_true(AVAILABLE) else None
    # The cluster matches the order, but the last run, for example a repair of what is not observed here, did not
    # finish.
    if order.failure:
        return "provision"
    due = due_step(order, now) or ("post_install" if is_repair_due(order, now) else None)
    return None if due == "post_install" and not cluster.is_true(AVAILABLE) else due


def action_reason(order: ClusterOrder, cluster: ObservedCluster, action: Action) -> str:
    """Why the order needs the action, in one word."""
    if order.failure:
        return "Retry"
    if action == "delete":
        return "DeletionRequested"
    if was_applied(order, cluster) and pending(parts_of(order)):
        return NOT_READY
    if action == "post_install":
        return "GitOpsMissing" if was_applied(order, cluster) else "ControlPlaneAvailable"
    if not order.is_applied:
        return "SpecNotApplied"
    return "NodesDiffer" if cluster.exists else "ClusterMissing"


def _must_delete(order: ClusterOrder, observed: ObservedState) -> bool:
    finalizers = {order.names.infrastructure_finalizer}
    external_controller = order.names.external_controller
    if not external_controller:
        finalizers.add(order.names.controller_finalizer)
    if not finalizers.intersection(order.finalizers):
        return False
    cluster = observed.cluster
    if cluster.is_absent and observed.namespace_deleting and not external_controller:
        return False  # the deletion of the namespace takes a while, and its end is the next event
    requested = (order.condition("Deleting") or {}).get("reason") == DELETING_CLUSTER
    in_progress = cluster.is_deleting or (not cluster.exists and any(item.deleting for item in cluster.node_sets))
    return not (requested and in_progress)
