# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reconciles one assignment of the home cluster with its order on the hub. `assigned_order` computes both.

It keeps no state: a call that was killed between any two writes is continued by the next one, and a second agent that works on the same
assignment is harmless. The order of the writes is what makes that true:

- the finalizer of the agent is on the assignment before anything exists on the hub, and is removed after everything is deleted there;
- before anything is created, the assignment is read again from the home cluster;
- each write is conditional, on the version of the object that was read or on its absence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Conflict, Invalid, NamespaceTerminating, NotFound
from ..orders.model import ClusterOrder, Names
from ..templates.catalogue import Template, resolve
from ..templates.errors import TemplateError
from ..templates.parameters import REFERENCE as SECRET_REFERENCE
from .assigned_order import (
    PROVISIONED_ANNOTATION,
    UID_LABEL,
    OrderReference,
    Problem,
    changes_of,
    has_finalizer,
    is_provisioned,
    marks_of,
    namespace_of,
    order_of,
    ownership_problem,
    reference_of,
    status_of,
)
from .cluster_secrets import SecretsRefused, references, secrets_of
from .kinds import AGENT_FINALIZER, API_VERSION, ASSIGNMENT
from .model import READY, ClusterAssignment, nodes_by_class

Result = Literal["unchanged", "created", "changed", "deleting", "deleted", "waiting", "refused"]


@dataclass(frozen=True)
class Outcome:
    """What a call did, and the assignment after it; None where it no longer exists. `is_settled`: only a change causes another call."""

    result: Result
    assignment: Object | None = None
    message: str = ""
    is_settled: bool = True


class Refused(Exception):
    """The order cannot be what the assignment asks for."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(reason, message)


class AssignmentReconciler:
    """Reconciles the assignments of one hub. Safe for concurrent use."""

    def __init__(self, home: Kube, hub: Kube, names: Names, templates: Mapping[str, Template]) -> None:
        self._home = home
        self._hub = hub
        self._names = names
        self._templates = templates

    def reconcile(self, item: Object, cached: Object | None = None, copied: Object | None = None) -> Outcome:
        """Bring the order on the hub to the assignment, and the status of the assignment to the order.

        `cached` is the order as an informer has it, `copied` the Secret with the values of the tenant's Secrets.
        """
        assignment = ClusterAssignment.from_object(item)
        if "deletionTimestamp" in item["metadata"]:
            return self._delete(assignment)
        reference = reference_of(assignment)
        order = cached or self._find_order(reference)
        if order is None and is_provisioned(assignment):
            return self._report(assignment, None, None, "refused")
        try:
            wanted = self._wanted(assignment)
            if order and (problem := ownership_problem(reference, order, wanted)):
                raise Refused(problem.reason, problem.message)
            assignment = self._protected(assignment, is_new=order is None)
            if order is None:
                return self._create(assignment, reference, wanted, copied)
            return self._update(assignment, reference, order, wanted, copied)
        except Refused as refused:
            return self._report(assignment, order, refused.problem, "refused")

    # An order for the assignment

    def _create(self, assignment: ClusterAssignment, reference: OrderReference, wanted: Object, copied: Object | None) -> Outcome:
        if reference.is_adopted:
            raise Refused("OrderMissing", f"The {reference}, which this cluster has to adopt, does not exist on the hub: restore it there.")
        namespace = self._namespace(assignment)
        if PROVISIONED_ANNOTATION in (namespace["metadata"].get("annotations") or {}):
            return self._report(assignment, None, None, "refused", provisioned=True)
        try:
            self._write_secrets(assignment, reference, wanted, copied)
            created = self._hub.create(wanted)
        except NamespaceTerminating:
            return self._report(assignment, None, None, "waiting", is_settled=False)
        except Invalid as error:
            raise _refused_by_server(error) from None
        try:
            return self._report(assignment, created, None, "created")
        except NotFound:
            # Another agent has deleted everything since the assignment was read, and the assignment with it.
            self._hub.delete(created, checked=True)
            self._delete_rest(assignment, reference)
            return Outcome("deleted", None)

    def _update(
        self, assignment: ClusterAssignment, reference: OrderReference, order: Object, wanted: Object, copied: Object | None
    ) -> Outcome:
        if "deletionTimestamp" in order["metadata"]:
            return self._report(assignment, order, None, "waiting")
        stale = self._write_secrets(assignment, reference, order, copied)
        changes = changes_of(order, wanted, is_adopted=reference.is_adopted)
        if changes:
            try:
                order = self._hub.patch(order, changes)
            except Invalid as error:
                raise _refused_by_server(error) from None
        for secret in stale:
            self._hub.delete(secret, checked=True)
        self._remember_ready(assignment, reference, order)
        return self._report(assignment, order, None, "changed" if "spec" in changes else "unchanged")

    def _wanted(self, assignment: ClusterAssignment) -> Object:
        """The order. Refused, if its template would add nodes that no quota was reserved for."""
        if not nodes_by_class(assignment.node_sets):
            try:
                defaults = resolve(assignment.raw["spec"]["template"], self._templates).default_node_requests
            except TemplateError:
                defaults = ()  # the order itself reports it
            if defaults:
                nodes = ", ".join(f"{each.number_of_nodes} {each.resource_class}" for each in defaults)
                raise Refused(
                    "NoNodesRequested",
                    f"The template would create {nodes} by default, for which nothing is reserved: request nodes in nodeSets.",
                )
        return order_of(assignment, self._names)

    def _find_order(self, reference: OrderReference) -> Object | None:
        return self._hub.find(self._names.api_version, "ClusterOrder", reference.name, reference.namespace)

    def _protected(self, assignment: ClusterAssignment, *, is_new: bool) -> ClusterAssignment:
        """The assignment with the finalizer. A new order is created only for one that still is what was read."""
        metadata = assignment.raw["metadata"]
        if not has_finalizer(assignment):
            changed = {**assignment.raw, "metadata": {**metadata, "finalizers": [*(metadata.get("finalizers") or ()), AGENT_FINALIZER]}}
            return ClusterAssignment.from_object(self._home.replace(changed))
        if is_new:
            found = self._home.find(API_VERSION, ASSIGNMENT, assignment.uid, metadata["namespace"])
            if found is None or found["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
                raise Conflict(f"{ASSIGNMENT} {assignment.uid} has changed meanwhile.")
        return assignment

    def _namespace(self, assignment: ClusterAssignment) -> Object:
        """The namespace of the order, created and never adopted."""
        wanted = namespace_of(assignment)
        name = wanted["metadata"]["name"]
        present = self._hub.find("v1", "Namespace", name)
        if present is None:
            return self._hub.create(wanted)
        if (present["metadata"].get("labels") or {}).get(UID_LABEL) != assignment.uid:
            raise Refused("NamespaceTaken", f"The namespace {name} on the hub does not belong to this cluster: delete it there.")
        return present

    def _remember_ready(self, assignment: ClusterAssignment, reference: OrderReference, order: Object) -> None:
        """On the hub too: the home cluster may be unreachable when the cluster becomes Ready, and when its order is deleted."""
        if reference.is_adopted or is_provisioned(assignment) or (order.get("status") or {}).get("phase") != READY:
            return
        namespace = self._hub.get("v1", "Namespace", reference.namespace)
        if PROVISIONED_ANNOTATION not in (namespace["metadata"].get("annotations") or {}):
            self._hub.patch(namespace, {"metadata": {"annotations": {PROVISIONED_ANNOTATION: "true"}}})

    # The Secrets of the tenant

    def _write_secrets(
        self, assignment: ClusterAssignment, reference: OrderReference, order: Object, copied: Object | None
    ) -> list[Object]:
        """Bring the Secrets on the hub to the values from home. Returns those that the order no longer needs once it is changed.

        An adopted order has its Secrets in its namespace already.
        """
        if reference.is_adopted:
            return []
        try:
            wanted = secrets_of(copied, references(assignment.raw["spec"].get("templateParameters") or {}))
        except SecretsRefused as refused:
            raise Refused("SecretsMissing", str(refused)) from None
        if not wanted and SECRET_REFERENCE not in (order["spec"].get("templateParameters") or ""):
            return []
        own = self._hub.list_all("v1", "Secret", reference.namespace, f"{UID_LABEL}={assignment.uid}")
        present = {item["metadata"]["name"]: item for item in own}
        for name, data in wanted.items():
            if name not in present:
                metadata = {"name": name, "namespace": reference.namespace, **marks_of(assignment)}
                self._hub.create({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data})
            elif present[name].get("data") != data:
                self._hub.replace({**present[name], "data": data})
        return [present[name] for name in sorted(present.keys() - wanted.keys())]

    # Deletion

    def _delete(self, assignment: ClusterAssignment) -> Outcome:
        """Delete the order, then its namespace, then remove the finalizer."""
        if not has_finalizer(assignment):
            return Outcome("unchanged", assignment.raw)
        reference = reference_of(assignment)
        order = self._find_order(reference)
        if order and (order["metadata"].get("labels") or {}).get(UID_LABEL) == assignment.uid:
            if "deletionTimestamp" not in order["metadata"]:
                self._hub.delete(order, checked=True)
                order = self._find_order(reference)
            if order:
                return self._report(assignment, order, None, "deleting")
        self._delete_rest(assignment, reference)
        self._release(assignment)
        return Outcome("deleted", None)

    def _delete_rest(self, assignment: ClusterAssignment, reference: OrderReference) -> None:
        if reference.is_adopted:
            return  # its namespace existed before the fleet
        namespace = self._hub.find("v1", "Namespace", reference.namespace)
        is_own = namespace and (namespace["metadata"].get("labels") or {}).get(UID_LABEL) == assignment.uid
        if namespace and is_own and "deletionTimestamp" not in namespace["metadata"]:
            self._hub.delete(namespace, checked=True)

    def _release(self, assignment: ClusterAssignment) -> None:
        """Remove the finalizer. The home cluster then deletes the assignment."""
        metadata = assignment.raw["metadata"]
        kept = [each for each in metadata["finalizers"] if each != AGENT_FINALIZER]
        try:
            self._home.replace({**assignment.raw, "metadata": {**metadata, "finalizers": kept}})
        except NotFound:
            return  # another agent was first

    # The status at home

    def _report(
        self,
        assignment: ClusterAssignment,
        order: Object | None,
        problem: Problem | None,
        result: Result,
        *,
        provisioned: bool = False,
        is_settled: bool = True,
    ) -> Outcome:
        """Write the status of the assignment, if it differs."""
        parsed = ClusterOrder.from_object(order, self._names) if order else None
        status = status_of(assignment, parsed, self._now(), problem=problem, provisioned=provisioned)
        item = assignment.raw
        if status != (item.get("status") or {}):
            item = self._home.replace({**item, "status": status}, "status")
        message = (status.get("failure") or {}).get("message", "")
        return Outcome(result, item, message, is_settled)

    def _now(self) -> datetime:
        return self._hub.server_time() or datetime.now(UTC)


def _refused_by_server(error: Invalid) -> Refused:
    """Without the message of the server, which may repeat parameters."""
    fields = ", ".join(error.fields) or "its fields"
    return Refused("OrderRefused", f"The API server of the hub refuses the order because of {fields}: correct the cluster.")
