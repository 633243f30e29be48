# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The requests of a user as changes of the spec of a DRPlacementControl, and when they are done. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..common.types import Object
from ..kube.errors import KubeError
from .copies import AcceptedRequest, RequestSpec, is_noop, is_read_under
from .kinds import DRPC, RAMEN
from .model import Intent
from .ramen_api import FAILOVER, RELOCATE, Phase, Progression
from .readers import read_intent
from .state import State

PROTECT, FAIL_OVER, MOVE = "protect", "failover", "relocate"
TEST, END_TEST, UNPROTECT = "test_failover", "end_test", "unprotect"
# The phases after which the workload runs on the requested cluster; what follows prepares the peers for the next move.
REACHED = {
    PROTECT: (Phase.DEPLOYED, Phase.FAILED_OVER, Phase.RELOCATED),
    FAIL_OVER: (Phase.FAILED_OVER,),
    MOVE: (Phase.RELOCATED,),
    END_TEST: (Phase.DEPLOYED, Phase.FAILED_OVER, Phase.RELOCATED),
}
IMMUTABLE = ("drPolicyRef", "placementRef", "pvcSelector")


class BadRequest(KubeError):
    """The request cannot be made. Nothing was changed."""


def new_drpc(namespace: str, name: str, options: Mapping[str, Any]) -> Object:
    """The DRPlacementControl of a new protection."""
    if not options.get("policy"):
        raise BadRequest(f"DRPlacementControl {namespace}/{name} does not exist: set policy to the DRPolicy that it should have.")
    spec = {
        "drPolicyRef": {"name": options["policy"]},
        "placementRef": {"kind": "Placement", "name": options.get("placement") or name},
        "pvcSelector": options.get("pvc_selector") or {},
        "preferredCluster": options.get("cluster"),
        "protectedNamespaces": options.get("protected_namespaces"),
    }
    metadata = {"namespace": namespace, "name": name}
    return {
        "apiVersion": RAMEN,
        "kind": DRPC,
        "metadata": metadata,
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def spec_change(request: str, drpc: Object, state: State, options: Mapping[str, Any]) -> Object:
    """The fields of the spec that the request changes; None removes a field."""
    spec, cluster = drpc["spec"], options.get("cluster")
    if request == PROTECT:
        _same_protection(drpc, options)
        wanted = {"preferredCluster": cluster} if cluster else {}
    elif request == END_TEST:
        wanted = _before_test(state)
    else:
        if not cluster:
            raise BadRequest(f"{request} needs cluster: set it to the cluster that should have the workload.")
        field = "preferredCluster" if request == MOVE else "failoverCluster"
        wanted = {"action": RELOCATE if request == MOVE else FAILOVER, field: cluster, "dryRun": True if request == TEST else None}
    return {name: value for name, value in wanted.items() if (spec.get(name) or None) != value}


def check_effect(request: str, drpc: Object, change: Mapping[str, Any], accepted: AcceptedRequest, state: State) -> None:
    """BadRequest if the request changes nothing because this copy shows it already, and no leader will follow it for that reason."""
    copy = read_intent(drpc)
    if change or request == PROTECT or copy.deleting:
        return
    nothing = f"The request was not made: the DRPlacementControl of this cluster shows {RequestSpec.of(copy)} already"
    again = "wait until its condition RequestAccepted is True, and run this again"
    if is_noop(accepted, copy):
        where, here, leader = accepted.cluster, accepted.cluster_of(copy.uid), "the cluster of the leader"
        there = f" Run this on {where}. If {where} is lost:" if where != here else " Do this:"
        raise BadRequest(
            f"{nothing}, but request {accepted.number}, {accepted.spec}, was accepted from {where or leader} since.{there}"
            f" set this copy to the request in effect by {_patch(copy, shown_by(accepted.spec))}, {again}."
        )
    if request == FAIL_OVER and accepted.disputed and state.progression == Progression.PAUSED:
        others = ", ".join(f"{name or 'this cluster'} {copy.spec}" for name, copy in accepted.observed_copies.items())
        raise BadRequest(
            f"{nothing}, but the bucket was lost, and its copies request different things ({others}): which is newer is not known."
            f" Remove the action of this copy by {_patch(copy, {'action': None})}, {again}."
        )


def shown_by(spec: RequestSpec) -> Object:
    """The fields of the spec of a copy with this request."""
    fields = {"action": spec.action, "preferredCluster": spec.preferred, "failoverCluster": spec.failover, "dryRun": spec.dry_run}
    return {name: value or None for name, value in fields.items()}


def with_change(intent: Intent, copy: Intent, change: Mapping[str, Any]) -> Intent:
    """The intent after the change of the spec of this copy, for a plan. The copy may show another request than the one in effect."""
    if not change:
        return intent
    spec = shown_by(RequestSpec.of(copy)) | dict(change)
    return replace(
        intent,
        generation=intent.generation + 1,
        action=str(spec["action"] or ""),
        preferred=str(spec["preferredCluster"] or ""),
        failover=str(spec["failoverCluster"] or ""),
        dry_run=bool(spec["dryRun"]),
        disputed=False,
    )


def unread(accepted: AcceptedRequest, copy: Intent) -> list[str]:
    """Why a change of this copy would be ignored, as what blocks a plan."""
    if not accepted.number or accepted.deleting or is_read_under(accepted, copy):
        return []
    return [
        f"No leader has read the DRPlacementControl of this cluster under request {accepted.number}, {accepted.spec}: a change that it"
        " reads first is ignored. Wait until the condition RequestAccepted has another reason than NotReadYet."
    ]


def superseded(accepted: AcceptedRequest, copy: Intent) -> str:
    """Why no leader will follow what this copy shows; empty if one does, or is still to read it."""
    if not is_noop(accepted, copy):
        return ""
    where = accepted.cluster or "the cluster of the leader"
    return (
        f"{RequestSpec.of(copy)} is not in effect: request {accepted.number}, {accepted.spec}, was accepted from {where}."
        " If it is still needed, request it on a cluster whose DRPlacementControl has the condition RequestAccepted True."
    )


def is_done(request: str, spec: RequestSpec, accepted: AcceptedRequest, state: State) -> bool:
    """Whether the workload runs on the requested cluster. The peers may not be ready yet."""
    if accepted.spec != spec:
        return False
    if request == TEST:
        return state.progression == Progression.TESTING_FAILOVER
    target = {FAILOVER: spec.failover, RELOCATE: spec.preferred}.get(spec.action, "")
    testing = bool(state.request and state.request.is_test)
    return not testing and state.phase in REACHED[request] and bool(state.home) and target in ("", state.home)


def _before_test(state: State) -> Object:
    """A test ends with what was there before it: that reverts it."""
    target = {FAILOVER: {"failoverCluster": state.home}, RELOCATE: {"preferredCluster": state.home}}.get(state.last_action, {})
    return {"action": state.last_action or None, "dryRun": None} | target


def _patch(copy: Intent, change: Mapping[str, Any]) -> str:
    text = json.dumps({"spec": change}, separators=(",", ":"))
    return f"kubectl patch drplacementcontrol {copy.name} -n {copy.namespace} --type merge -p '{text}'"


def _same_protection(drpc: Object, options: Mapping[str, Any]) -> None:
    metadata, spec = drpc["metadata"], drpc["spec"]
    given = {
        "drPolicyRef": options.get("policy") and options["policy"] == spec["drPolicyRef"]["name"],
        "placementRef": options.get("placement") and options["placement"] == spec["placementRef"]["name"],
        "pvcSelector": options.get("pvc_selector") and options["pvc_selector"] == spec.get("pvcSelector"),
    }
    different = [name for name in IMMUTABLE if given[name] is False]
    if different:
        raise BadRequest(
            f"DRPlacementControl {metadata['namespace']}/{metadata['name']} has another {' and '.join(different)}, which cannot be changed:"
            " unprotect it first."
        )
