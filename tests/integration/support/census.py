"""What a hub has: every object of every kind, by name. For tests that compare before and after."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError, NotFound
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE, lease_name

from .orders import Orders

PASSING = ("ComponentStatus", "Event")  # they come and go by themselves
NAMESPACE = "Namespace"
CREATED_BY_KUBERNETES = {"ServiceAccount": "default", "ConfigMap": "kube-root-ca.crt"}  # in every namespace, a moment after it


@dataclass(frozen=True)
class Census:
    """The objects of a hub on which other tests clean up in the background: what they leave is being deleted."""

    hub: Access

    @cached_property
    def _kinds(self) -> list[tuple[str, str]]:
        lines = self.hub.kubectl("api-resources", "--verbs=list", "--no-headers").stdout.splitlines()
        kinds = {(line.split()[-3], line.split()[-1]) for line in lines}
        return sorted(each for each in kinds if each[1] not in PASSING)

    def objects(self, label_selector: str = "") -> list[Object]:
        found = self.hub.kube.in_parallel(lambda kind: self.hub.kube.list_all(*kind, label_selector=label_selector), self._kinds)
        errors = [each for each in found if isinstance(each, KubeError) and not isinstance(each, NotFound)]
        assert not errors, errors
        return [item for each in found if not isinstance(each, KubeError) for item in each]

    @staticmethod
    def name(item: Object) -> str:
        return f"{item['kind']} {item['metadata'].get('namespace', '')} {item['metadata']['name']}"

    def take(self) -> set[str]:
        """The names of all objects, once each new namespace has what Kubernetes creates in it."""
        until(self._is_settled, "each namespace has its account and its certificate")
        return self._names()

    def _is_settled(self) -> bool:
        kube = self.hub.kube
        active = {item["metadata"]["name"] for item in kube.list_all("v1", NAMESPACE) if item["status"]["phase"] == "Active"}
        return all(
            active <= {item["metadata"]["namespace"] for item in kube.list_all("v1", kind, field_selector=f"metadata.name={name}")}
            for kind, name in CREATED_BY_KUBERNETES.items()
        )

    def _names(self) -> set[str]:
        return {self.name(item) for item in self.objects()}

    def assert_equal(self, before: set[str], stays: set[str], *namespaces: str) -> None:
        """Nothing of these namespaces is lost, and on the whole hub nothing is new but what stays. Namespaces take a while to end."""
        with contextlib.suppress(UserError):
            until(lambda: self._new(before) == stays, "the hub is as before")
        new, lost = self._new(before), self._lost(before, (*namespaces, SITE_NAMESPACE, "default", "kube-system"))
        assert new == stays, f"new: {new - stays}, not there: {stays - new}"
        assert not lost, lost

    def _new(self, before: set[str]) -> set[str]:
        return self._names() - before

    def _lost(self, before: set[str], namespaces: Iterable[str]) -> set[str]:
        mine = {"", *namespaces}
        gone = {tuple(name.split(" ")) for name in before - self._names()}
        return {" ".join(each) for each in gone if (each[2] if each[0] == NAMESPACE else each[1]) in mine}


def lock_of(orders: Orders, name: str = "demo") -> set[str]:
    """What stays of each order: the Lease of its name, which counts the tokens for a later order of that name."""
    return {f"Lease {SITE_NAMESPACE} {lease_name(orders.namespace, name)}"}
