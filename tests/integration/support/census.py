"""What a hub has: every object of every kind, by name. For tests that compare before and after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError, NotFound

PASSING = ("ComponentStatus", "Event")  # they come and go by themselves
NAMESPACE = "Namespace"


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
        return {self.name(item) for item in self.objects()}

    def new(self, before: set[str]) -> set[str]:
        return self.take() - before

    def lost(self, before: set[str], namespaces: Iterable[str]) -> set[str]:
        """What is no longer there of these namespaces, or of no namespace."""
        mine = {"", *namespaces}
        gone = {tuple(name.split(" ")) for name in before - self.take()}
        return {" ".join(each) for each in gone if (each[2] if each[0] == NAMESPACE else each[1]) in mine}
