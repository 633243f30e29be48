# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A plan for people and programs: as JSON, as a table, as a diff. No secret is in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..common.third_party import yaml
from ..common.types import Object
from .kinds import ROLES
from .plan import Change, Plan

WIDTH = 60  # characters of a value in the table


def as_objects(plan: Plan) -> list[Object]:
    """The plan in the order in which it is applied."""
    written = [_object(change) for group in plan.groups for change in group]
    roles = [{"action": role.action, "kind": ROLES, "name": role.called, "scope": "", "fields": []} for role in plan.roles]
    return [*written, *roles, *(_object(change) for group in plan.deletions for change in group)]


def _object(change: Change) -> Object:
    fields = [{"field": each.field, "before": each.before, "after": each.after} for each in change.fields]
    return {"action": change.action, "kind": change.kind.key, "name": change.name, "scope": change.scope, "fields": fields}


def as_table(objects: Iterable[Object]) -> list[str]:
    """A line for each object, and one for each field that changes on it."""
    lines = []
    for each in objects:
        scope = f" ({each['scope']})" if each["scope"] else ""
        lines.append(f"{each['action']:<7} {each['kind']:<34} {each['name']}{scope}")
        if each["action"] == "update":
            lines += [f"{'':<8}{field['field']}: {_short(field['before'])} -> {_short(field['after'])}" for field in each["fields"]]
    return lines


def as_diff(objects: Iterable[Object]) -> Object:
    """What `--diff` shows: the fields that differ, of each object that does."""
    before: Object = {}
    after: Object = {}
    for each in objects:
        name = f"{each['kind']}: {each['name']}"
        if each["action"] in ("update", "delete", "revoke"):
            before[name] = {field["field"]: field["before"] for field in each["fields"]} or "present"
        if each["action"] in ("create", "update", "grant"):
            after[name] = {field["field"]: field["after"] for field in each["fields"]} or "present"
    return {"before": _yaml(before), "after": _yaml(after)}


def counts(objects: Iterable[Object], unchanged: int) -> Object:
    actions = [each["action"] for each in objects]
    return {action: actions.count(action) for action in ("create", "update", "delete", "grant", "revoke")} | {"unchanged": unchanged}


def _yaml(content: Object) -> str:
    return str(yaml.safe_dump(content, sort_keys=True, default_flow_style=False)) if content else ""


def _short(value: Any) -> str:
    text = "-" if value in (None, "") else " ".join(str(value).split())
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
