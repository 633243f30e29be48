# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A ResourceSet in a cluster: its objects applied in their order, and deleted when the set has them no longer. Public for providers.

An object that the set has created has a label with the set's name, and only such objects are ever deleted. An object that existed before
is changed as the set says, and stays. A ConfigMap in the cluster, the inventory, lists the objects of the set. It is written before the
first object and after the last, so that the next run knows every object of a run that died between.

A server without server-side apply is an error: only server-side apply knows which fields of an object are ours, and without it a field
that the set has no longer would stay unnoticed. Every Kubernetes since 1.22 has it.
"""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Invalid, KubeError, NotFound
from ..kube.kinds import in_apply_order
from .base import NotReadyYet, Provider, ProviderError
from .model import ResourceSet

Result = TypeVar("Result")

OWNER = "openfleet.clusters/resource-set"
INVENTORY, INVENTORY_NAMESPACE = "openfleet-resource-set", "kube-system"
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
CRD = "CustomResourceDefinition"
# A server serves a new kind moments after it has accepted its definition.
CRD_SECONDS = 10.0


def apply(provider: Provider, kube: Kube, resources: ResourceSet) -> None:
    """Apply the set's objects in the cluster of this connection; what changed is in the provider's changes."""
    problems = list(_problems(resources.items))
    if problems:
        raise Invalid(f"The resource set {resources.name} cannot be applied: {'; '.join(problems)}.", [])
    _Applied(provider, kube, resources.name).apply(resources.items)


def remove(provider: Provider, kube: Kube, name: str) -> bool:
    """Delete everything that the set has created; True once nothing of it is left."""
    return _Applied(provider, kube, name).remove()


class _Applied:
    """One set in one cluster."""

    def __init__(self, provider: Provider, kube: Kube, name: str) -> None:
        if not NAME.fullmatch(name):
            raise Invalid(f"{name[:100]!r} cannot be the name of a resource set: use up to 40 lower-case letters, digits and dashes.", [])
        self._kube = kube
        self._name = name
        self._writer = provider.writer.on(kube)
        self._check_mode = provider.ref.check_mode
        self._changes = provider.changes

    def apply(self, items: Sequence[Object]) -> None:
        wanted = [self._in_namespace(item, items) for item in items]
        inventory = self._inventory()
        listed = _listed(inventory)
        addresses = [_address(item) for item in wanted]
        dropped = [address for address in listed if address not in addresses]
        self._write_inventory([*addresses, *dropped])
        for group in in_apply_order(wanted):
            if not self._check_mode:
                self._wait_for_kinds(group, items)
            present = self._in_parallel(self._find, group)
            owned = [self._owned(item, before) for item, before in zip(group, present, strict=True)]
            self._changes += self._writer.apply(owned, known=[before for before in present if before])
        self._write_inventory([*addresses, *self._delete(dropped)])

    def remove(self) -> bool:
        inventory = self._inventory()
        if inventory is None:
            return True
        left = self._delete(_listed(inventory))
        if left:
            self._write_inventory(left)
            return False
        self._writer.delete([inventory])
        return not self._check_mode

    def _delete(self, addresses: Sequence[Object]) -> list[Object]:
        """Delete those of the objects that the set has created; returns what still exists."""
        found = [item for item in self._in_parallel(self._find, addresses) if item and self._is_ours(item)]
        self._changes += self._writer.delete(found)
        return [_address(item) for item in self._in_parallel(self._find, found) if item]

    def _is_ours(self, item: Object) -> bool:
        return _owner(item) == self._name

    def _owned(self, item: Object, before: Object | None) -> Object:
        """The object with the set's label, unless it existed without; an error where it is another set's."""
        if before and _owner(before) not in ("", self._name):
            raise ProviderError(
                f"{_called(item)} belongs to the resource set {_owner(before)}; take it out of that one, or out of {self._name}."
            )
        owned = copy.deepcopy(item)
        labels = owned["metadata"].setdefault("labels", {})
        labels.pop(OWNER, None)
        if not before or self._is_ours(before):
            labels[OWNER] = self._name
        return owned

    def _in_namespace(self, item: Object, items: Iterable[Object]) -> Object:
        """The object with its namespace: without one, it is that of the kubeconfig."""
        if item["metadata"].get("namespace"):
            return item
        definition = _definition(item, items)
        try:
            namespaced = self._kube.namespaced(item["apiVersion"], item["kind"])
        except NotFound:
            if definition is None:
                raise
            namespaced = definition["spec"].get("scope") == "Namespaced"
        return item | {"metadata": item["metadata"] | {"namespace": self._kube.target.namespace}} if namespaced else item

    def _wait_for_kinds(self, group: Iterable[Object], items: Iterable[Object]) -> None:
        """Wait until the server serves the kinds that the set itself defines."""
        deadline = time.monotonic() + CRD_SECONDS
        for item in group:
            while _definition(item, items) is not None:
                try:
                    self._kube.namespaced(item["apiVersion"], item["kind"])
                    break
                except NotFound as error:
                    if time.monotonic() > deadline:
                        raise NotReadyYet(f"{error} Its definition is applied; try again when the server serves it.") from error
                    time.sleep(0.1)

    def _find(self, item: Object) -> Object | None:
        return self._kube.find(item["apiVersion"], item["kind"], item["metadata"]["name"], item["metadata"].get("namespace"))

    def _in_parallel(self, work: Callable[[Object], Result], items: Sequence[Object]) -> list[Result]:
        done: list[Result] = []
        for result in self._kube.in_parallel(work, items):
            if isinstance(result, KubeError):
                raise result
            done.append(result)
        return done

    def _inventory(self) -> Object | None:
        return self._find(self._new_inventory([]))

    def _write_inventory(self, addresses: Sequence[Object]) -> None:
        """The inventory is no part of the set, so writing it is not reported as a change."""
        self._writer.apply([self._new_inventory(addresses)])

    def _new_inventory(self, addresses: Sequence[Object]) -> Object:
        metadata = {"name": f"{INVENTORY}-{self._name}", "namespace": INVENTORY_NAMESPACE, "labels": {OWNER: self._name}}
        ordered = sorted(addresses, key=_called)
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"objects": json.dumps(ordered, indent=1)}}


def _listed(inventory: Object | None) -> list[Object]:
    if inventory is None:
        return []
    try:
        listed = json.loads(inventory["data"]["objects"])
        return [_address(item) for item in listed]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProviderError(
            f"The ConfigMap {INVENTORY_NAMESPACE}/{inventory['metadata']['name']} of the cluster does not list objects any more. Delete it "
            "and apply the set again; objects that the set has no longer stay."
        ) from error


def _address(item: Object) -> Object:
    """The part of an object that identifies it."""
    metadata = {key: item["metadata"][key] for key in ("namespace", "name") if item["metadata"].get(key)}
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata}


def _owner(item: Object) -> str:
    return str((item["metadata"].get("labels") or {}).get(OWNER, ""))


def _called(item: Object) -> str:
    return f"{item['kind']} {'/'.join(filter(None, (item['metadata'].get('namespace'), item['metadata']['name'])))}"


def _definition(item: Object, items: Iterable[Object]) -> Object | None:
    """The definition of the object's kind, where it is in the set."""
    kind = (item["apiVersion"].partition("/")[0], item["kind"])
    return next((other for other in items if other["kind"] == CRD and _defined_by(other) == kind), None)


def _defined_by(definition: Object) -> tuple[str, str] | None:
    try:
        return definition["spec"]["group"], definition["spec"]["names"]["kind"]
    except (KeyError, TypeError):
        # The server reports what is wrong with it.
        return None


def _problems(items: Sequence[Object]) -> Iterable[str]:
    seen: set[str] = set()
    for number, item in enumerate(items, 1):
        metadata = item.get("metadata") if isinstance(item, Mapping) else None
        parts = (item.get("apiVersion"), item.get("kind"), metadata.get("name")) if isinstance(metadata, Mapping) else ()
        if not parts or not all(isinstance(part, str) and part for part in parts):
            yield f"object {number} has no apiVersion, kind and metadata.name"
            continue
        address = json.dumps(_address(item))
        if address in seen:
            yield f"{_called(item)} is in it twice"
        seen.add(address)
