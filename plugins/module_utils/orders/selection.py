# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The orders of a run, as named by its variables, by an event of ours, or by a webhook's payload, of which only name and uid are used."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
NOT_IN_UIDS = re.compile(r"[^-\w]")
UID_LENGTH = 64  # those of Kubernetes have 36 characters


class OrderName(NamedTuple):
    namespace: str
    name: str


class NoSuchSelection(Exception):
    """The selection names no order; the text says what to give."""


def named(name: str | None, namespace: str | None, orders: Sequence[Any], event: Any) -> list[OrderName]:
    """The named orders, each once."""
    found = [_one(entry) for entry in orders]
    # One without the other, or an empty one, as a survey may give it, must not select every order of the hub.
    if name is not None or namespace is not None:
        found.append(_one({"name": name, "namespace": namespace}))
    if not found and isinstance(event, Mapping):
        found = _of_event(event)
    return list(dict.fromkeys(found))


def event_of(variables: Mapping[str, Any]) -> Any:
    """The event that the rules engine passed to the run, unrendered.

    It is read here and never a module argument: Ansible trusts extra variables, and would render template syntax in a payload.
    """
    given = variables.get("ansible_eda")
    if given is None or isinstance(given, Mapping):
        return (given or {}).get("event")
    raise NoSuchSelection("The variable ansible_eda holds no event; omit it, or pass the one of ansible-rulebook.")


def uids(event: Any) -> dict[OrderName, str]:
    """The uids of the orders in an event. A run skips an order that has another one: a forged uid prevents a run, and allows nothing."""
    entries = _entries(event) if isinstance(event, Mapping) else []
    return {_one(entry): _shown_uid(entry["uid"]) for entry in entries if isinstance(entry, Mapping) and entry.get("uid")}


def _shown_uid(uid: Any) -> str:
    """It becomes part of a message. What is changed here is the uid of no order, before or after."""
    return NOT_IN_UIDS.sub("?", str(uid))[:UID_LENGTH]


def _of_event(event: Mapping[str, Any]) -> list[OrderName]:
    return [_one(entry) for entry in _entries(event)]


def _entries(event: Mapping[str, Any]) -> Sequence[Any]:
    """An event of ours has `orders` or `order`; a plain webhook has the whole ClusterOrder as its `payload`."""
    if "payload" in event:
        payload = event["payload"]
        return [payload.get("metadata") if isinstance(payload, Mapping) else payload]
    if event.get("orders"):
        return list(event["orders"])
    return [event["order"]] if event.get("order") else []


def _one(entry: Any) -> OrderName:
    if isinstance(entry, str) and entry.count("/") == 1:
        entry = dict(zip(("namespace", "name"), entry.split("/"), strict=True))
    parts = [entry.get(key) for key in ("namespace", "name")] if isinstance(entry, Mapping) else []
    # A name from a webhook becomes part of a request path: only a valid DNS name is accepted.
    if not parts or not all(isinstance(part, str) and DNS_NAME.fullmatch(part) for part in parts):
        raise NoSuchSelection("An order is named by its name and its namespace: give both, as name and namespace or as <namespace>/<name>.")
    return OrderName(*map(str, parts))
