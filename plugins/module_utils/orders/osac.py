# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A ClusterOrder's status under OSAC's CRD: reduced to the fields that it accepts, and restored. Pure functions.

OSAC's CRDs have four fields of our status: phase (without Degraded), conditions, clusterReference and nodeRequests. The API server drops
every other field, or rejects it, as the newer CRD does with nodeSets, which has another meaning there. What the next decision depends on
must survive that, so it is stored in the message of one more condition, the only field those CRDs leave for it.

Where OSAC's controller runs, those four fields are its own, and two controllers that write the same field would do so indefinitely. Then we
write only conditions with our own prefix, one by one: that controller has a list of conditions without keys, so server-side apply would
make the whole list ours.
"""

from __future__ import annotations

import json

from ..common.types import Object

RECORD = "FulfillmentRecord"
OURS = "openfleet.clusters/"  # prefix of condition types with another controller
SHARED_FIELDS = ("clusterReference", "nodeRequests")
# OSAC's phases are Progressing, Failed, Ready and Deleting. A broken cluster must look neither ready nor in progress.
FOREIGN_PHASE = {"Degraded": "Failed"}
# A condition's message holds 32768 characters and JSON may need six for one, so the longest texts are kept in part
# only.
MESSAGE_LIMIT, TASK_LIMIT = 2048, 256
RECORDED_FIELDS = ("phase", "configVersion", "observedGeneration", "provider", "readyNodes", "apiURL", "consoleURL")


def for_foreign_crd(status: Object, stored: Object) -> Object:
    """A derived status in the form that another controller's CRD accepts; `stored` is the current status on the API server.

    The other controller's fields stay unchanged. Compare the result with `stored` to see whether a write is needed.
    """
    result = {name: value for name, value in stored.items() if name not in SHARED_FIELDS}
    result |= {name: status[name] for name in SHARED_FIELDS if name in status}
    return result | {"phase": FOREIGN_PHASE.get(status["phase"], status["phase"]), "conditions": [*status["conditions"], _recorded(status)]}


def beside_controller(status: Object, stored: Object) -> Object:
    """A derived status for a hub where another controller runs: none of its fields is changed, and ours stay where they are."""
    ours = {f"{OURS}{item['type']}": item | {"type": f"{OURS}{item['type']}"} for item in status["conditions"]}
    theirs, found = ((source.get("clusterReference") or {}).get("namespace") for source in (stored, status))
    ours[RECORD] = _recorded(status, namespace=None if theirs else found)
    kept = [ours.pop(item["type"], None) if _is_ours(item) else item for item in stored.get("conditions", [])]
    return stored | {"conditions": [*filter(None, kept), *ours.values()]}


def conditions_patch(order: Object, shared: Object) -> list[Object] | None:
    """A JSON patch from the stored status of `order` to `shared`, of `beside_controller`, that never meets the other controller's writes.

    It applies only if the order's spec and all our conditions are as stored: a compare-and-swap on what is ours. None where a condition
    has to be added or removed, which needs one on the whole object: two patches could both add it.
    """
    stored = (order.get("status") or {}).get("conditions", [])
    wanted = shared["conditions"]
    if [item.get("type") for item in stored] != [item["type"] for item in wanted]:
        return None
    metadata = order["metadata"]
    tests = [_operation("test", f"/metadata/{name}", metadata[name]) for name in ("uid", "generation")]
    changes: list[Object] = []
    for number, (before, after) in enumerate(zip(stored, wanted, strict=True)):
        if _is_ours(after):
            path = f"/status/conditions/{number}"
            tests.append(_operation("test", path, before))
            changes += [_operation("replace", path, after)] if before != after else []
    return [*tests, *changes]


def is_beside_controller(stored: Object) -> bool:
    """Whether the stored status went through `beside_controller`."""
    return any(item.get("type", "").startswith(OURS) for item in stored.get("conditions", []))


def is_reduced(stored: Object) -> bool:
    """Whether the stored status went through `for_foreign_crd`."""
    return any(item.get("type") == RECORD for item in stored.get("conditions", []))


def restored(stored: Object, beside: bool = False) -> Object:
    """A stored status as before `for_foreign_crd` or `beside_controller`; one that never went through either is returned unchanged.

    `beside` another controller, a status that we have not written yet is that controller's: only its cluster reference counts.
    """
    if is_beside_controller(stored):
        return _restored_beside(stored)
    if beside and not is_reduced(stored) and "observedGeneration" not in stored:
        return {name: stored[name] for name in ("clusterReference",) if name in stored}
    status = dict(stored)
    if any("resourceClass" not in item for item in stored.get("nodeSets") or []):
        del status["nodeSets"]  # the other controller's
    found = [item for item in stored.get("conditions", []) if item.get("type") == RECORD]
    if not found:
        return status
    status["conditions"] = [item for item in stored["conditions"] if item.get("type") != RECORD]
    record = _read(found[0])
    phase = record.pop("phase", None)
    if phase in FOREIGN_PHASE and status.get("phase") == FOREIGN_PHASE[phase]:
        status["phase"] = phase  # else the stored one counts: another controller may have changed it
    return record | status


def _restored_beside(stored: Object) -> Object:
    mine = [item for item in stored["conditions"] if item.get("type", "").startswith(OURS)]
    record = next((_read(item) for item in stored["conditions"] if item.get("type") == RECORD), {})
    reference = stored.get("clusterReference") or {}
    namespace = record.pop("namespace", None)
    if namespace and not reference.get("namespace"):  # found by its label, before the other controller has recorded it
        reference = reference | {"namespace": namespace}
    status = record | {"conditions": [item | {"type": item["type"].removeprefix(OURS)} for item in mine]}
    return status | ({"clusterReference": reference} if reference else {})


def _read(condition: Object) -> Object:
    """The fields in the record's message; none where it was edited by hand, and the order is observed again."""
    try:
        record = json.loads(condition["message"])
    except (ValueError, KeyError):
        return {}
    if not isinstance(record, dict):
        return {}
    requested = record.pop("requested", None)  # as earlier versions recorded it
    nodes = record.pop("nodes", {name: [count, 0] for name, count in requested.items()} if isinstance(requested, dict) else None)
    if isinstance(nodes, dict) and all(_is_count(count) for count in nodes.values()):
        record["nodeSets"] = [
            {"resourceClass": name, "requested": requested, **({} if ready is None else {"ready": ready})}
            for name, (requested, ready) in nodes.items()
        ]
    return record


def _is_count(count: object) -> bool:
    """The requested nodes, and those that are ready, which some providers cannot count."""
    return isinstance(count, list) and len(count) == 2 and isinstance(count[0], int) and isinstance(count[1], int | None)


def _operation(name: str, path: str, value: object) -> Object:
    return {"op": name, "path": path, "value": value}


def _is_ours(item: Object) -> bool:
    return bool(item.get("type") == RECORD or item.get("type", "").startswith(OURS))


def _recorded(status: Object, namespace: str | None = None) -> Object:
    record = _record(status) | ({"namespace": namespace} if namespace else {})
    return {
        "type": RECORD,
        "status": "True",
        "reason": "FieldsNotInSchema",
        "message": json.dumps(record, separators=(",", ":"), sort_keys=True),
        "lastTransitionTime": max(item["lastTransitionTime"] for item in status["conditions"]),
    }


def _record(status: Object) -> Object:
    record: Object = {name: status[name] for name in RECORDED_FIELDS if name in status}
    if "failure" in status:
        failure = dict(status["failure"])
        for name, limit in (("message", MESSAGE_LIMIT), ("task", TASK_LIMIT)):
            if name in failure:
                failure[name] = failure[name][:limit]
        record["failure"] = failure
    if "version" in status:  # without the updates, which can be many
        record["version"] = {name: text for name, text in status["version"].items() if name in ("running", "desired")}
    if "infrastructure" in status:
        record["infrastructure"] = [part | {"message": part.get("message", "")[:TASK_LIMIT]} for part in status["infrastructure"]]
    if "nodeSets" in status:
        known = [item for item in status["nodeSets"] if "resourceClass" in item]
        record["nodes"] = {item["resourceClass"]: [item["requested"], item.get("ready")] for item in known}
    return record
