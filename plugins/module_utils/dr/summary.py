# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The state of a workload, human-readable: what, where, who leads, which step, since when, what it waits for. Pure."""

from __future__ import annotations

from ..common.types import Object
from ..coordination.documents import WorkloadRef
from ..coordination.lease import LockRecord
from ..coordination.state import State as StateDocument
from .copies import AcceptedRequest
from .model import Step
from .observe import accepted_request
from .reconcile import ACTION_REFUSED, Result, would_do
from .state import State


def placement_info(workload: WorkloadRef, lock: LockRecord, document: StateDocument, drpc: Object | None) -> Object:
    """From the bucket, and from this cluster's copy of the DRPlacementControl. It has no secrets."""
    state, accepted = State.from_document(document), accepted_request(document.intent)
    shown = {item["type"]: item for item in ((drpc or {}).get("status") or {}).get("conditions") or []}
    waiting = shown.get("Waiting", {})
    # The copy may still show a gate that is open now.
    current = {ACTION_REFUSED, *(gate for gate, _since in state.waiting)}
    return {
        "namespace": workload.namespace,
        "name": workload.name,
        "phase": state.phase,
        "progression": state.progression,
        "home": state.home,
        "decision": {"cluster": state.decision.cluster, "retained": state.decision.retained, "reason": state.decision.reason},
        "request": _request(state),
        "requested": _requested(accepted),
        "leader": lock.holder,
        "epoch": lock.epoch,
        "revision": state.revision,
        "since": document.written_at,
        "started_at": state.started_at,
        "duration": state.duration,
        "waits": [{"gate": gate, "since": since} for gate, since in state.waiting],
        "message": waiting.get("message", "") if waiting.get("status") == "True" and waiting.get("reason") in current else "",
        "conditions": [
            {name: shown[kind].get(name, "") for name in ("type", "status", "reason", "message")} for kind in shown if kind != "Waiting"
        ],
        "last_sync": ((drpc or {}).get("status") or {}).get("lastGroupSyncTime", ""),
    }


def line(info: Object) -> str:
    """One line about a workload."""
    if not info["revision"]:
        return f"{info['namespace']}/{info['name']}: no leader has begun"
    where = f" on {info['home']}" if info["home"] else ""
    request = f", {info['request']['kind']} to {info['request']['target']} since {info['request']['started_at']}" if info["request"] else ""
    led = f"led by {info['leader']} under epoch {info['epoch']}" if info["leader"] else "without a leader"
    waits = "".join(f"; waits for {wait['gate']} since {wait['since']}" for wait in info["waits"])
    detail = f": {info['message']}" if info["message"] else ""
    return f"{info['namespace']}/{info['name']}: {position(info)}{where}{request}, {led}{waits}{detail}"


def position(info: Object) -> str:
    return ", ".join(filter(None, [info["phase"] or "No phase", info["progression"]]))


def result_info(result: Result) -> Object:
    """What a reconcile came to."""
    view = result.view
    state = view.state if view else State()
    return {
        "namespace": result.workload.namespace,
        "name": result.workload.name,
        "ended": result.ended,
        "message": result.message,
        "changed": result.changed,
        "phase": state.phase,
        "progression": state.progression,
        "home": state.home,
        "revision": state.revision,
        "recorded": result.recorded,
        "actions": result.actions,
        "waits": _waits(view.step) if view else [],
        "problems": result.problems,
    }


def plan_info(workload: WorkloadRef, state: State, steps: list[Step]) -> Object:
    """What a leader would do, until it acts or waits, and what blocks it."""
    passed, actions, blocked_by = would_do(steps)
    last = steps[-1]
    return {
        "namespace": workload.namespace,
        "name": workload.name,
        "ended": "Planned",
        "message": "",
        "changed": last.state != state or bool(last.actions),
        "phase": last.state.phase,
        "progression": last.state.progression,
        "home": last.state.home,
        "revision": state.revision,
        "recorded": passed if last.state != state else [],
        "actions": actions,
        "waits": _waits(last),
        "problems": blocked_by,
    }


def diff_of(before: Object, after: Object) -> Object:
    """Phase, progression and actions, as Ansible shows them with --diff."""
    header = f"{after['namespace']}/{after['name']}"

    def text(info: Object, actions: list[str]) -> str:
        lines = [f"{name}: {info[name]}" for name in ("phase", "progression", "home")] + [f"action: {each}" for each in actions]
        return "".join(f"{each}\n" for each in lines)

    return {"before_header": header, "after_header": header, "before": text(before, []), "after": text(after, after["actions"])}


def _requested(accepted: AcceptedRequest) -> Object | None:
    if not accepted.number:
        return None
    return {"number": accepted.number, "for": "deletion" if accepted.deleting else str(accepted.spec), "cluster": accepted.cluster}


def _request(state: State) -> Object | None:
    request = state.request
    if not request:
        return None
    return {
        "kind": request.kind,
        "target": request.target,
        "stage": request.stage,
        "started_at": request.started_at,
        "can_be_taken_back": not request.demoted,
    }


def _waits(step: Step) -> list[Object]:
    return [{"gate": wait.gate, "since": wait.since, "message": wait.message, "remedy": wait.remedy} for wait in step.waits]
