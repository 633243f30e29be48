# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An order as its tenant uses it: create, change, delete, wait, read. It acquires no lock and creates no cluster.

Results never include the values of the template's parameters, because some of them are secrets.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..common.types import Object
from ..kube.client import FIELD_MANAGER, Kube, retry_on_conflict
from ..kube.errors import ApplyConflict, Invalid, KubeError
from ..lock.fenced_writer import Change
from ..templates.errors import COLLECTION
from .model import FAILED, READY, ClusterOrder, Names, readable_orders

HIDDEN, HIDDEN_CHANGED = "(hidden)", "(hidden, changed)"
PARAMETERS_LIMIT = 262144  # as the CRD has it
POLL_SECONDS = 2.0
# It repeats the whole object, parameters and all.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
SHOWN_METADATA = ("name", "namespace", "uid", "generation", "labels", "annotations", "finalizers", "creationTimestamp", "deletionTimestamp")


class OrderRefused(KubeError):
    """The order cannot be changed as requested; the text says what to do instead."""


class OrderFailed(KubeError):
    """The wait cannot succeed until a person acts."""


class NotInTime(KubeError):
    """The wait timed out."""

    retryable = True


@dataclass(frozen=True)
class DesiredOrder:
    """What a tenant wants. None means unchanged, and the template's default in a new order."""

    namespace: str
    name: str
    template_id: str | None = None
    template_parameters: Mapping[str, Any] | None = field(default=None, repr=False)
    node_requests: Sequence[Mapping[str, Any]] | None = None
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None


# Create, change, delete


def find(kube: Kube, names: Names, namespace: str, name: str) -> ClusterOrder | None:
    item = kube.find(names.api_version, "ClusterOrder", name, namespace)
    return ClusterOrder.from_object(item, names) if item else None


def apply(kube: Kube, names: Names, wanted: DesiredOrder, *, force: bool = False, check_mode: bool = False) -> Change:
    """Create or change the order. A field of another manager is an ApplyConflict, unless `force`."""
    return retry_on_conflict(lambda: _apply(kube, names, wanted, force, check_mode))


def delete(kube: Kube, names: Names, namespace: str, name: str, *, check_mode: bool = False) -> Change | None:
    """Delete the order, and with it its cluster. None if there is no such order."""
    order = find(kube, names, namespace, name)
    if order is None:
        return None
    if order.is_deleting:
        return Change("unchanged", order.raw, order.raw)
    kube.delete(order.raw, checked=True, dry_run=check_mode)
    return Change("deleted", order.raw, None)


def _apply(kube: Kube, names: Names, wanted: DesiredOrder, force: bool, check_mode: bool) -> Change:
    present = find(kube, names, wanted.namespace, wanted.name)
    called = f"ClusterOrder {wanted.namespace}/{wanted.name}"
    if present is None and not wanted.template_id:
        raise OrderRefused(f"There is no {called} yet; to create it, set template_id.")
    if present is not None and present.is_deleting:
        raise OrderRefused(f"{called} is being deleted; create it again after that.")
    if present is not None and wanted.template_id and _full(wanted.template_id) != _full(present.template_id):
        raise OrderRefused(
            f"{called} is for the template {present.template_id}, which cannot be changed to {wanted.template_id}: "
            "create another order, or delete this one first."
        )
    fields = _fields(wanted, present)
    before = present.raw if present else None
    if before is not None and not _would_change(before, fields):
        return Change("unchanged", before, before)
    item: Object = {"apiVersion": names.api_version, "kind": "ClusterOrder"} | _with_ours(fields, before)
    item["metadata"] = {"name": wanted.name, "namespace": wanted.namespace} | item.get("metadata", {})
    if before is not None:
        # With the uid, an order that was deleted meanwhile is not created again.
        item["metadata"]["uid"] = before["metadata"]["uid"]
    try:
        after = kube.apply(item, force=force, dry_run=check_mode)
        after = _without_surplus_nodes(kube, after, wanted, force, check_mode)
    except ApplyConflict as error:
        raise ApplyConflict(f"{error} With force=true this task takes them over.", error.fields) from None
    except Invalid as error:
        raise Invalid(_redacted(str(error), fields), error.fields) from None
    return Change("changed" if before else "created", before, after)


def _full(template_id: str) -> str:
    return template_id if "." in template_id else f"{COLLECTION}.{template_id}"


def _fields(wanted: DesiredOrder, present: ClusterOrder | None) -> Object:
    """The wanted fields, as a part of the object."""
    spec: Object = {}
    if present is not None:
        spec["templateID"] = present.template_id
    elif wanted.template_id:
        spec["templateID"] = wanted.template_id
    if wanted.template_parameters is not None:
        spec["templateParameters"] = _as_text(wanted.template_parameters, present.template_parameters if present else "")
    if wanted.node_requests is not None:
        spec["nodeRequests"] = [dict(request) for request in wanted.node_requests]
    metadata = {name: dict(value) for name, value in (("labels", wanted.labels), ("annotations", wanted.annotations)) if value is not None}
    return {"spec": spec} | ({"metadata": metadata} if metadata else {})


def _as_text(parameters: Mapping[str, Any], present: str) -> str:
    """The parameters as JSON. A stored text of the same value stays as it is written."""
    try:
        text = json.dumps(parameters, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise OrderRefused(f"template_parameters has a value that JSON does not have ({error}); put it in quotes.") from None
    if len(text) > PARAMETERS_LIMIT:
        raise OrderRefused(f"template_parameters are {len(text)} characters as JSON; an order holds {PARAMETERS_LIMIT} at most.")
    return present if _parsed(present) == json.loads(text) else text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _would_change(present: Object, fields: Object) -> bool:
    spec, wanted = present.get("spec") or {}, fields["spec"]
    if any(spec.get(name) != value for name, value in wanted.items() if name != "nodeRequests"):
        return True
    if "nodeRequests" in wanted and _by_class(spec.get("nodeRequests") or []) != _by_class(wanted["nodeRequests"]):
        return True
    metadata = present["metadata"]
    return any(not value.items() <= (metadata.get(name) or {}).items() for name, value in fields.get("metadata", {}).items())


def _by_class(requests: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {request["resourceClass"]: request["numberOfNodes"] for request in requests}


def _with_ours(fields: Object, present: Object | None) -> Object:
    """The fields, and those that an earlier task applied: an apply without them would remove them."""
    if present is None:
        return fields
    ours: Object = next((entry["fieldsV1"] for entry in present["metadata"].get("managedFields", []) if _is_apply_of_ours(entry)), {})
    spec = {name: present["spec"][name] for name in ("templateParameters", "nodeRequests") if f"f:{name}" in ours.get("f:spec", {})}
    if "nodeRequests" in spec:
        kept = [key for key in ours["f:spec"]["f:nodeRequests"] if key.startswith("k:")]
        classes = {json.loads(key[2:])["resourceClass"] for key in kept}
        spec["nodeRequests"] = [request for request in spec["nodeRequests"] if request["resourceClass"] in classes]
    metadata: Object = {}
    for kind in ("labels", "annotations"):
        owned = [key[2:] for key in ours.get("f:metadata", {}).get(f"f:{kind}", {}) if key.startswith("f:")]
        values = {name: present["metadata"][kind][name] for name in owned} | fields.get("metadata", {}).get(kind, {})
        if values:
            metadata[kind] = values
    return {"spec": spec | fields["spec"]} | ({"metadata": metadata} if metadata else {})


def _is_apply_of_ours(entry: Mapping[str, Any]) -> bool:
    return (entry["manager"], entry["operation"]) == (FIELD_MANAGER, "Apply") and not entry.get("subresource")


def _without_surplus_nodes(kube: Kube, order: Object, wanted: DesiredOrder, force: bool, check_mode: bool) -> Object:
    """Remove classes that another manager added: an apply merges the list by class, and would keep them."""
    if wanted.node_requests is None:
        return order
    classes = _by_class(wanted.node_requests)
    present = order["spec"].get("nodeRequests") or []
    surplus = [number for number, request in enumerate(present) if request["resourceClass"] not in classes]
    if not surplus:
        return order
    if not force:
        names = ", ".join(present[number]["resourceClass"] for number in surplus)
        raise ApplyConflict(f"apply ClusterOrder {wanted.namespace}/{wanted.name}: another manager has requested nodes of {names}.", {})
    if check_mode:
        kept = [request for request in present if request["resourceClass"] in classes]
        return order | {"spec": order["spec"] | {"nodeRequests": kept}}
    return kube.patch(order, [{"op": "remove", "path": f"/spec/nodeRequests/{number}"} for number in reversed(surplus)])


def _redacted(message: str, fields: Object) -> str:
    """A server's message, without the parameters that it may repeat."""
    text = fields["spec"].get("templateParameters") or ""
    for form in (text, json.dumps(text)[1:-1]):
        if len(form) > len("{}"):
            message = message.replace(form, HIDDEN)
    return message


# Wait


def wait_until_ready(kube: Kube, names: Names, namespace: str, name: str, timeout: float) -> ClusterOrder:
    """Wait until the current spec is Ready; OrderFailed as soon as a person has to act."""

    def is_done(order: ClusterOrder | None) -> bool:
        if order is None or order.is_deleting:
            raise OrderFailed(f"ClusterOrder {namespace}/{name} was deleted during the wait.")
        _raise_if_stuck(order, "is Failed")
        return order.phase == READY and order.status.get("observedGeneration", order.generation) == order.generation

    order = _wait(kube, names, namespace, name, timeout, is_done, "Ready")
    if order is None:
        raise AssertionError("the wait for a deleted order has raised already")
    return order


def wait_until_deleted(kube: Kube, names: Names, namespace: str, name: str, uid: str, timeout: float) -> None:
    """Wait until this very order is deleted; OrderFailed as soon as a person has to act."""

    def is_done(order: ClusterOrder | None) -> bool:
        if order is None or order.uid != uid:
            return True
        _raise_if_stuck(order, "cannot be deleted")
        return False

    _wait(kube, names, namespace, name, timeout, is_done, "deleted")


def _raise_if_stuck(order: ClusterOrder, what: str) -> None:
    failure = order.failure
    if failure and not failure.retryable and (order.is_deleting or order.phase == FAILED):
        task = f"{failure.task}: " if failure.task else ""
        raise OrderFailed(f"ClusterOrder {order.namespace}/{order.name} {what} ({failure.reason}): {task}{failure.message}")


def _wait(
    kube: Kube, names: Names, namespace: str, name: str, timeout: float, done: Callable[[ClusterOrder | None], bool], what: str
) -> ClusterOrder | None:
    deadline = time.monotonic() + timeout
    order: ClusterOrder | None = None
    while True:
        try:
            order = find(kube, names, namespace, name)
            if done(order):
                return order
        except KubeError as error:
            # A restart of the API server does not end a wait of an hour.
            if not error.retryable or time.monotonic() >= deadline:
                raise
        if time.monotonic() >= deadline:
            raise NotInTime(f"ClusterOrder {namespace}/{name} is not {what} after {timeout:.0f} seconds: {_summary(order)}")
        time.sleep(min(POLL_SECONDS, max(0.1, deadline - time.monotonic())))


def _summary(order: ClusterOrder | None) -> str:
    """The state of an order, in one sentence."""
    if order is None or not order.phase:
        return "no run has prepared it yet; run create_cluster for it"
    unmet = [item for item in order.status.get("conditions", []) if item["status"] != "True" and item["type"] != "Deleting"]
    condition = order.condition("Deleting") if order.is_deleting else next(iter(unmet), None)
    reason = order.failure.message if order.failure else (condition or {}).get("message")
    return f"it is {order.phase}. {reason or ''}".strip()


# Read


def find_all(
    kube: Kube, names: Names, name: str | None, namespace: str | None, label_selector: str
) -> tuple[list[ClusterOrder], list[str]]:
    """The orders of that name, in that namespace, with those labels, and a message for each that cannot be read."""
    # The name as a selector too, so that all three hold at once.
    by_name = f"metadata.name={name}" if name else ""
    try:
        items = kube.list_all(names.api_version, "ClusterOrder", namespace, label_selector, by_name)
    except Invalid as error:
        raise Invalid(f"{error}; check the label selector {label_selector!r}.", error.fields) from None
    return readable_orders(items, names)


# Show


def shown(order: ClusterOrder) -> Object:
    """An order for a task's result, with only the names of its template's parameters."""
    return _shown(order.raw, sorted(_parameters(order.raw))) | {"status": order.status}


def diff(change: Change) -> dict[str, str]:
    """Before and after, for `--diff`. A parameter with another value is marked as changed, without the value."""
    header = f"ClusterOrder {change.item['metadata']['namespace']}/{change.item['metadata']['name']}"
    return {
        "before_header": header,
        "after_header": header,
        "before": _readable(change.before, None),
        "after": _readable(change.after, change.before),
    }


def _readable(item: Object | None, before: Object | None) -> str:
    if item is None:
        return ""
    parameters, known = _parameters(item), _parameters(before or item)
    hidden = {name: HIDDEN if name in known and known[name] == value else HIDDEN_CHANGED for name, value in parameters.items()}
    visible = _shown(item, hidden)
    visible["metadata"] = {
        name: value for name, value in visible["metadata"].items() if name in ("labels", "annotations", "name", "namespace")
    }
    return json.dumps(visible, indent=2, sort_keys=True) + "\n"


def _shown(item: Object, parameters: Any) -> Object:
    metadata = {name: item["metadata"][name] for name in SHOWN_METADATA if name in item["metadata"]}
    if LAST_APPLIED in metadata.get("annotations", {}):
        metadata["annotations"] = {name: value for name, value in metadata["annotations"].items() if name != LAST_APPLIED}
    spec = {name: value for name, value in item["spec"].items() if name != "templateParameters"}
    if "templateParameters" in item["spec"]:
        spec["templateParameters"] = parameters
    return {"metadata": metadata, "spec": spec}


def _parameters(item: Object) -> dict[str, Any]:
    """The parameters by name; none where the text is no JSON object."""
    parsed = _parsed(item["spec"].get("templateParameters") or "{}")
    return parsed if isinstance(parsed, dict) else {}
