"""Variants of the sample document, and what a platform has of it, for tests of Automation Platform as code."""

from __future__ import annotations

import copy
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.platform.sample import Content
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import Platform
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.store import Link, Store

# What differs from platform to platform although it means the same.
INCIDENTAL = (
    "id",
    "created",
    "modified",
    "last_job_run",
    "status",
    "status_message",
    "uuid",
    "url",
    "rulesets",
    "source_mappings",
    "restart_count",
)
OF_RUNS = ("jobs", "workflow_jobs", "workflow_job_nodes", "project_updates", "inventory_updates", "roles", "users")


def changed(content: Content, key: str, number: int, **fields: Any) -> Content:
    """The document with other fields in one object."""
    other = copy.deepcopy(content)
    other[key][number] |= fields
    return other


def without(content: Content, key: str, *names: str) -> Content:
    other = copy.deepcopy(content)
    other[key] = [entry for entry in other[key] if entry["name"] not in names]
    return other


def content_of(platform: Platform) -> list[str]:
    """Every object of a platform in one line, with names instead of ids; two of the same are two lines."""
    return sorted(_lines(platform, platform.controller_store) + _lines(platform, platform.eda_store))


def _lines(platform: Platform, store: Store) -> list[str]:
    return [
        f"{kind.collection}: {_described(platform, store, collection, row)}"
        for collection, kind in store.kinds.items()
        if collection not in OF_RUNS
        for row in store.rows[collection].values()
        if not row.get("pending_deletion") and row.get("status") != "deleting"
    ]


def _described(platform: Platform, store: Store, collection: str, row: dict[str, Any]) -> dict[str, Any]:
    kind = store.kinds[collection]
    shown = {field.name: _named(store, field.to, row[field.name]) for field in kind.fields if field.name not in INCIDENTAL}
    for relation, target in kind.links.items():
        members = store.links.get(Link(collection, row["id"], relation), [])
        if members:
            shown[relation] = sorted(str(_named(store, target, member)) for member in members)
    if survey := platform.controller.surveys.of(kind, row):
        shown["survey"] = survey
    return shown


def _named(store: Store, collection: str, value: Any) -> Any:
    found = store.find(collection, value) if collection else None
    if found is None:
        return value
    row = found[1]
    return row.get("name") or row.get("identifier")
