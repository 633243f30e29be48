# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks of an item against the platform. Each returns problems, which say what to do. Pure functions."""

from __future__ import annotations

from ..common.text import did_you_mean
from ..common.types import Object
from .compare import Comparison, Targets, credential_type
from .document import Item, Named
from .kinds import PROJECTS
from .snapshot import Snapshot
from .values import ENCRYPTED


def missing_values(item: Item) -> list[str]:
    """Values that a new object needs."""
    values = {name: item.values.get(name) for name in item.kind.required}
    missing = [name for name, value in values.items() if value in (None, "") or (isinstance(value, Named) and not value.name)]
    return [f"{item.where}: it does not exist yet, and a new {item.kind.title} needs {name}." for name in missing]


def unknown_secrets(item: Item, compared: Comparison) -> list[str]:
    """Secrets of a new object that the document does not have either."""
    if ENCRYPTED not in compared.secrets.values():
        return []
    return [f"{item.where}: it does not exist yet, and {ENCRYPTED} is not the value of a secret: set the value."]


def foreign_name(item: Item, current: Object, snapshot: Snapshot) -> list[str]:
    """A name that is unique in the whole platform, and that an object of another organization has."""
    if not item.kind.unique or not item.organization:
        return []
    other = snapshot.name_of(item.kind, item.kind.reference("organization"), current)
    if other in ("", item.organization):
        return []
    return [
        f"{item.where}: the name is taken by organization {other}, and two organizations cannot have a {item.kind.title} of the same "
        f"name: rename it, or set organization to {other}."
    ]


def foreign_project(item: Item, targets: Targets) -> list[str]:
    """A project of another organization than that of its job template."""
    projects = [target for target in targets.get("project", {}).values() if target.kind == PROJECTS and item.organization]
    return [
        f"{item.where}: organization is {item.organization}, and its project belongs to {project.organization}: a job template is in the "
        "organization of its project, so set the same."
        for project in projects
        if project.organization not in ("", item.organization)
    ]


def unknown_inputs(item: Item, targets: Targets, snapshot: Snapshot) -> list[str]:
    """Inputs of a credential that its type does not have."""
    description = credential_type(targets, snapshot)
    if description is None:
        return []
    known = [str(each.get("id")) for each in (description.get("inputs") or {}).get("fields") or []]
    return [
        f"{item.where}: inputs has {name}, which its credential type does not have{did_you_mean(name, known)}: remove it."
        for name in item.values.get("inputs") or {}
        if name not in known
    ]
