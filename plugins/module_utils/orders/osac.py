# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A ClusterOrder's status under OSAC's CRD: reduced to the fields that it accepts, and restored. Pure functions.

OSAC's CRDs have four fields of our status: phase (without Degraded), conditions, clusterReference and nodeRequests. The API server drops
every other field, or rejects it, as the newer CRD does with nodeSets, which has another meaning there. What the next decision depends on
must survive that, so it is stored in the message of one more condition, the only field those CRDs leave for it.

Where OSAC's controller runs, those four fields are its own, and two controllers that write the same field would do so for ever. Then we
write only conditions with our own prefix.
"""

from __future__ import annotations

import json

from ..common.types import Object

RECORD = "FulfillmentRecord"
OURS = "openfleet.clusters/"  # prefix of condition types beside another controller
SHARED_FIELDS = ("clusterReference", "nodeRequests")
# OSAC's phases are Progressing, Failed, Ready and Deleting. A broken cluster must look neither ready nor in progress.
FOREIGN_PHASE = {"Degraded": "Failed"}
# A condition's message holds 32768 characters and JSON may need six for one, so the longest texts are kept in part only.
MESSAGE_LIMIT, TASK_LIMIT = 2048, 256


def for_foreign_crd(status: Object, stored: Object) -> Object:
    """A derived status in the form that another controller's CRD accepts; `stored` is the current status on the API server.

    The other controller's fields stay unchanged. Compare the result with `stored` to see whether a write is needed.
    """
    result = {name: value for name, value in stored.items() if name not in SHARED_FIELDS}
    result |= {name: status[name] for name in SHARED_FIELDS if name in status}
    return result | {"phase": FOREIGN_PHASE.get(status["phase"], status["phase"]), "conditions": [*status["conditions"], _recorded(status)]}


def beside_controller(status: Object, stored: Object) -> Object:
    """A derived status for a hub where another controller runs: none of its fields is changed."""
    theirs = [item for item in stored.get("conditions", []) if not _is_ours(item)]
    ours = [item | {"type": f"{OURS}{item['type']}"} for item in status["conditions"]]
    return stored | {"conditions": [*theirs, *ours, _recorded(status)]}


def is_beside_controller(stored: Object) -> bool:
    """Whether the stored status went through `beside_controller`."""
    return any(item.get("type", "").startswith(OURS) for item in stored.get("conditions", []))


def is_reduced(stored: Object) -> bool:
    """Whether the stored status went through `for_foreign_crd`."""
    return any(item.get("type") == RECORD for item in stored.get("conditions", []))


def restored(stored: Object) -> Object:
    """A stored status as before `for_foreign_crd`; one that never went through it is returned unchanged."""
    status = dict(stored)
    if any("resourceClass" not in item for item in stored.get("nodeSets") or []):
        del status["nodeSets"]  # the other controller's
    found = [item for item in stored.get("conditions", []) if item.get("type") == RECORD]
    if not found:
        return status
    beside = is_beside_controller(stored)
    mine = [item for item in stored["conditions"] if item.get("type") != RECORD and (_is_ours(item) or not beside)]
    status["conditions"] = [item | {"type": item["type"].removeprefix(OURS)} for item in mine]
    try:
        record = json.loads(found[0]["message"])
    except (ValueError, KeyError):  # edited by hand: the record is ignored, and the order is observed again
        return status
    if not isinstance(record, dict):
        return status
    phase = record.pop("phase", None)
    if beside or (phase in FOREIGN_PHASE and status.get("phase") == FOREIGN_PHASE[phase]):
        status["phase"] = phase  # else the stored one counts: another controller may have changed it
    requested = record.pop("requested", None)
    if isinstance(requested, dict):
        record["nodeSets"] = [{"resourceClass": name, "requested": count, "ready": 0} for name, count in requested.items()]
    return record | status


def _is_ours(item: Object) -> bool:
    return bool(item.get("type") == RECORD or item.get("type", "").startswith(OURS))


def _recorded(status: Object) -> Object:
    return {
        "type": RECORD,
        "status": "True",
        "reason": "FieldsNotInSchema",
        "message": json.dumps(_record(status), separators=(",", ":"), sort_keys=True),
        "lastTransitionTime": max(item["lastTransitionTime"] for item in status["conditions"]),
    }


def _record(status: Object) -> Object:
    record: Object = {name: status[name] for name in ("phase", "configVersion", "observedGeneration", "provider") if name in status}
    if "failure" in status:
        failure = dict(status["failure"])
        for name, limit in (("message", MESSAGE_LIMIT), ("task", TASK_LIMIT)):
            if name in failure:
                failure[name] = failure[name][:limit]
        record["failure"] = failure
    if "infrastructure" in status:
        record["infrastructure"] = [part | {"message": part.get("message", "")[:TASK_LIMIT]} for part in status["infrastructure"]]
    if "nodeSets" in status:  # without the ready count: it changes often and nothing is decided by it
        record["requested"] = {item["resourceClass"]: item["requested"] for item in status["nodeSets"] if "resourceClass" in item}
    return record
