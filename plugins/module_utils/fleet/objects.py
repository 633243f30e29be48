# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Brings an object of a fleet to what a task asks for, and describes it for the task's result.

The API server validates each change, also in check mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..common.types import Object
from ..kube.client import Kube, retry_on_conflict
from ..registry.model import to_yaml
from .compare_and_swap import merge_patch
from .kinds import API_VERSION, CLUSTER, HUB, QUOTA

HIDDEN = "hidden"  # instead of the value of a parameter, which may be a secret


@dataclass(frozen=True)
class Change:
    """An object before and after a task; in check mode, as it would be."""

    before: Object | None
    after: Object | None

    @property
    def changed(self) -> bool:
        return _shown(self.before) != _shown(self.after)

    @property
    def diff(self) -> dict[str, str]:
        before, after = (to_yaml(_without_values(_shown(each))) if each else "" for each in (self.before, self.after))
        return {"before": before, "after": after}


class FleetObjects:
    """Objects of the fleet on its home cluster."""

    def __init__(self, home: Kube, kind: str, *, check_mode: bool = False) -> None:
        self._home = home
        self._kind = kind
        self._check_mode = check_mode

    def read(self, name: str = "", namespace: str | None = None) -> list[Object]:
        """All objects of the kind, of a namespace, or the one of this name, sorted."""
        if name:
            found = self._home.find(API_VERSION, self._kind, name, namespace)
            return [found] if found else []
        items = self._home.list_all(API_VERSION, self._kind, namespace)
        return sorted(items, key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"]))

    def present(self, name: str, namespace: str | None, spec: Mapping[str, Any], labels: Mapping[str, str] | None = None) -> Change:
        """Create the object, or set these fields of its spec, and remove those that are None. Other fields stay."""

        def attempt() -> Change:
            before = self._home.find(API_VERSION, self._kind, name, namespace)
            metadata = {"name": name} | ({"namespace": namespace} if namespace else {}) | ({"labels": dict(labels)} if labels else {})
            if before is None:
                wanted = {"apiVersion": API_VERSION, "kind": self._kind, "metadata": metadata, "spec": given(**spec)}
                return Change(None, self._home.create(wanted, dry_run=self._check_mode, strict=True))
            present = {"spec": before["spec"], "metadata": {"labels": before["metadata"].get("labels") or {}}}
            wanted = {"spec": {**before["spec"], **spec}, "metadata": {"labels": {**present["metadata"]["labels"], **(labels or {})}}}
            changes = merge_patch(present, wanted)
            if not changes:
                return Change(before, before)
            return Change(before, self._home.patch(before, changes, dry_run=self._check_mode, strict=True))

        return retry_on_conflict(attempt)

    def absent(self, name: str, namespace: str | None) -> Change:
        """Delete the object. A cluster is deleted by its hub, after this returned."""
        before = self._home.find(API_VERSION, self._kind, name, namespace)
        if before is None or "deletionTimestamp" in before["metadata"]:
            return Change(None, None)
        self._home.delete(before, checked=True, dry_run=self._check_mode)
        return Change(before, None)


def result_of(item: Object) -> dict[str, Any]:
    """The object for a task's result: the names of its fields are those of the API. Parameters of templates are left out."""
    metadata, status = item["metadata"], dict(item.get("status") or {})
    spec = {name: value for name, value in item["spec"].items() if name != "templateParameters"}
    named = {name: metadata[name] for name in ("name", "namespace", "uid", "labels") if name in metadata}
    return {**named, "deleting": "deletionTimestamp" in metadata, "spec": spec, "status": status}


def answer(kind: str, change: Change) -> dict[str, Any]:
    """The result of a task that changes an object."""
    key = {CLUSTER: "fleet_cluster", HUB: "hub", QUOTA: "fleet_quota"}[kind]
    shown = {key: result_of(change.after)} if change.after else {}
    return {"changed": change.changed, **shown, **({"diff": change.diff} if change.changed else {})}


def given(**fields: Any) -> dict[str, Any]:
    """The fields that a task sets."""
    return {name: value for name, value in fields.items() if value is not None}


def _shown(item: Object | None) -> Object:
    return {"labels": item["metadata"].get("labels") or {}, "spec": item["spec"]} if item else {}


def _without_values(shown: Object) -> Object:
    spec = dict(shown["spec"])
    if "templateParameters" in spec:
        spec["templateParameters"] = dict.fromkeys(sorted(spec["templateParameters"]), HIDDEN)
    return shown | {"spec": spec}
