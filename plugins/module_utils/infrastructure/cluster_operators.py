# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Operators in a new cluster, as subscriptions of its Operator Lifecycle Manager (OLM), and how far each is installed. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..common.types import Object
from ..kube.errors import Invalid
from .part_state import PartState

RESOURCE_SET = "operators"
API_VERSION, GROUP_API_VERSION = "operators.coreos.com/v1alpha1", "operators.coreos.com/v1"
SUBSCRIPTION, CSV = "Subscription", "ClusterServiceVersion"
GLOBAL_NAMESPACE = "openshift-operators"  # it exists, with an OperatorGroup for all namespaces


@dataclass(frozen=True)
class OperatorState:
    """How far an operator is installed. `version` is that of the installed one, also while the next one is being installed."""

    name: str
    namespace: str
    part: PartState
    version: str = ""

    def as_dict(self) -> Object:
        return {"name": self.name, "namespace": self.namespace, "version": self.version, **self.part.as_dict()}


def operator_objects(operators: Sequence[Mapping[str, Any]]) -> list[Object]:
    """A Subscription for each operator; for a namespace other than the global one also the namespace and its OperatorGroup."""
    scopes: dict[str, bool] = {}
    names: set[str] = set()
    for operator in operators:
        namespace = operator["namespace"]
        if operator["name"] in names:
            raise Invalid(f"The operator {operator['name']} is listed twice: list it once.", ["operators"])
        names.add(operator["name"])
        if scopes.setdefault(namespace, operator["all_namespaces"]) != operator["all_namespaces"]:
            raise Invalid(
                f"The operators in the namespace {namespace} differ in all_namespaces, and a namespace has one scope: use two namespaces.",
                ["operators"],
            )
    own = {namespace: everywhere for namespace, everywhere in scopes.items() if namespace != GLOBAL_NAMESPACE}
    parents = [item for namespace, everywhere in own.items() for item in _operator_group(namespace, everywhere)]
    return [*parents, *(_subscription(operator) for operator in operators)]


def _operator_group(namespace: str, everywhere: bool) -> list[Object]:
    metadata = {"name": namespace, "namespace": namespace}
    spec = {} if everywhere else {"targetNamespaces": [namespace]}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": GROUP_API_VERSION, "kind": "OperatorGroup", "metadata": metadata, "spec": spec},
    ]


def _subscription(operator: Mapping[str, Any]) -> Object:
    spec = {
        "name": operator["name"],
        "source": operator["source"],
        "sourceNamespace": operator["source_namespace"],
        "installPlanApproval": operator["install_plan_approval"],
    }
    spec |= {field: operator[option] for option, field in (("channel", "channel"), ("starting_csv", "startingCSV")) if operator[option]}
    metadata = {"name": operator["name"], "namespace": operator["namespace"]}
    return {"apiVersion": API_VERSION, "kind": SUBSCRIPTION, "metadata": metadata, "spec": spec}


def operator_state(subscription: Object, installed: Object | None) -> OperatorState:
    """The state of an operator: of its Subscription, and of the ClusterServiceVersion that this has `installed`."""
    metadata, status = subscription["metadata"], subscription.get("status") or {}
    version = str(((installed or {}).get("spec") or {}).get("version") or "")
    return OperatorState(metadata["name"], metadata["namespace"], _part(metadata["name"], status, installed), version)


def _part(name: str, status: Object, installed: Object | None) -> PartState:
    progress = (installed or {}).get("status") or {}
    phase, detail = progress.get("phase"), str(progress.get("message") or "")
    if phase == "Succeeded":
        return PartState(True, "OperatorReady", f"The operator {name} is installed")
    failed = next(
        (item for item in status.get("conditions") or [] if item.get("type") == "ResolutionFailed" and item.get("status") == "True"), None
    )
    if failed:
        return PartState(False, "ResolutionFailed", f"The operator {name} cannot be resolved: {failed.get('message', '')}")
    if phase == "Failed":
        return PartState(False, "OperatorFailed", f"The operator {name} has failed: {detail}")
    if status.get("state") == "UpgradePending" and installed is None:
        return PartState(
            False, "InstallPlanPending", f"The install plan of the operator {name} is not complete; approve it if it is manual"
        )
    return PartState(False, "Installing", f"The operator {name} is being installed" + (f": {detail}" if detail else ""))


def operators_state(states: Sequence[OperatorState]) -> PartState:
    """The state of all: the first one that is not ready gives the reason, and the message names all of them."""
    waiting = [state.part for state in states if not state.part.ready]
    if waiting:
        return PartState(False, waiting[0].reason, "; ".join(part.message for part in waiting))
    return PartState(True, "OperatorsReady", f"{len(states)} operators")
