"""Profiles from real repositories on a cluster with real Flux: layers, upgrades that cannot overtake each other, and failures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.access import ChartRepository, OciRegistry
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.charts import Chart
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.accept import accept_profiles
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.charts import Charts
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.lock_file import ProfilesLock
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.render import HELM_API, HELM_RELEASE, NAMESPACE, render
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.state import ready_state
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.profile_offer import parse_offer
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ConditionState

WORKLOADS = "profiles-test"
BROKEN = {"broken.yaml": "{{ fail .Values.reason }}\n"}
LAYER = {"openfleet.clusters/layer": "10"}


@dataclass
class Installed:
    """A cluster with the profiles of an order."""

    cluster: Access
    charts: ChartRepository
    registry: OciRegistry
    lock: ProfilesLock

    def resolve(self, *given: dict[str, Any]) -> ProfilesLock:
        """The lock file for these profiles, after the one that there is."""
        repositories = {
            "http": {"url": self.charts.url, "insecure": True},
            "registry": {"url": f"{self.registry.url}/profiles", "insecure": True},
        }
        profiles = {
            "base": {"repository": "http", "layer": 2, "namespace": WORKLOADS},
            "middle": {"repository": "registry", "namespace": WORKLOADS, "requires": {"base": ""}},
            "top": {"repository": "http", "layer": 30, "namespace": WORKLOADS},
        }
        problems: list[str] = []
        offer = parse_offer(repositories, profiles, problems)
        assert not problems
        template: Any = SimpleNamespace(id="acme.site.any", profile_rules=None)
        parameters = {"gitops": {"profiles": [{"namespace": WORKLOADS} | item for item in given]}}
        text = accept_profiles(template, parameters, offer, Charts(offer), self.lock.to_json())
        self.lock = ProfilesLock.from_json(text)
        return self.lock

    def apply(self, keep: Callable[[Any], bool] = lambda _item: True) -> None:
        for item in filter(keep, render(self.lock, interval="1m")):
            self.cluster.kube.apply(item)

    def state(self) -> ConditionState:
        return ready_state(self.lock, self.cluster.kube.list_all(HELM_API, HELM_RELEASE, NAMESPACE))

    def until_state(self, status: str, reason: str) -> ConditionState:
        """The state once it has this status and reason; Flux may change it again."""

        def reached() -> ConditionState | None:
            state = self.state()
            return state if (state.status, state.reason) == (status, reason) else None

        try:
            found = until(reached, f"{status}, {reason}")
        except UserError as error:
            raise AssertionError(f"{error} Now {self.state()}") from error
        assert found
        return found

    def version(self, name: str) -> str:
        found = self.cluster.kube.find("v1", "ConfigMap", name, WORKLOADS) or {"data": {"version": ""}}
        return str(found["data"]["version"]).partition("+")[0]  # Flux adds the digest to a version of a registry


@pytest.fixture
def installed(flux_cluster: Access, chart_repository: ChartRepository, oci_registry: OciRegistry) -> Iterator[Installed]:
    charts = chart_repository.named("profiles")
    charts.publish(Chart("base", "1.0.0"), Chart("top", "1.0.0"))
    oci_registry.push("profiles", Chart("middle", "1.0.0", annotations=LAYER))
    created = Installed(flux_cluster, charts, oci_registry, ProfilesLock())
    yield created
    objects = [*render(created.lock), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WORKLOADS}}]
    for item in reversed(objects):
        flux_cluster.kube.delete(item)
    for item in objects:
        until(lambda item=item: is_absent(flux_cluster, item), f"{item['kind']} {item['metadata']['name']} is deleted")


def is_absent(cluster: Access, item: Object) -> bool:
    return cluster.kube.find(item["apiVersion"], item["kind"], item["metadata"]["name"], item["metadata"].get("namespace")) is None


def test_profiles_of_three_layers_are_installed_upgraded_in_their_order_and_name_what_fails(installed: Installed) -> None:
    lock = installed.resolve({"name": "middle"}, {"name": "top"}, {"name": "again", "chart": "top"})
    assert [(item.name, item.layer, item.dependsOn) for item in lock.profiles] == [
        ("base", 2, ()),
        ("middle", 10, ("base",)),
        ("again", 30, ("middle",)),
        ("top", 30, ("middle",)),
    ]
    installed.apply()
    installed.until_state("True", "ProfilesReady")
    assert [installed.version(name) for name in ("base", "middle", "top", "again")] == ["1.0.0"] * 4

    # An upgrade of all layers, of which the highest is written first: Flux's own check of generations would let it
    # pass.
    installed.charts.publish(Chart("base", "2.0.0"), Chart("top", "2.0.0"))
    installed.registry.push("profiles", Chart("middle", "2.0.0", annotations=LAYER))
    newer = [{"name": name, "version": ">=2"} for name in ("base", "middle", "top")]
    before = {item["metadata"]["name"]: item for item in installed.cluster.kube.list_all(HELM_API, HELM_RELEASE, NAMESPACE)}
    installed.resolve(*newer, {"name": "again", "chart": "top"})
    installed.apply(lambda item: item["metadata"]["name"] == "top")
    generation = before["top"]["metadata"]["generation"]

    def waits() -> bool:
        item = installed.cluster.kube.get(HELM_API, HELM_RELEASE, "top", NAMESPACE)
        ready = next(each for each in item["status"]["conditions"] if each["type"] == "Ready")
        return bool(ready["reason"] == "DependencyNotReady" and ready["observedGeneration"] > generation)

    until(waits, "the release of the highest layer waits")
    assert installed.version("top") == "1.0.0"
    installed.apply()
    installed.until_state("True", "ProfilesReady")
    assert [installed.version(name) for name in ("base", "middle", "top", "again")] == ["2.0.0", "2.0.0", "2.0.0", "1.0.0"]
    digests = {item.name: item.digest for item in installed.lock.profiles}
    middle = installed.cluster.kube.get(HELM_API, HELM_RELEASE, "middle", NAMESPACE)
    assert middle["status"]["history"][0]["ociDigest"] == digests["middle"]

    # A broken version of the middle layer: it is named with Helm's own message, the layer below stays, the ones above
    # wait.
    broken = Chart("middle", "3.0.0", templates=BROKEN, values={"reason": "disk is full"}, annotations=LAYER)
    installed.registry.push("profiles", broken)
    installed.resolve(newer[0], {"name": "middle", "version": ">=3"}, newer[2], {"name": "again", "chart": "top"})
    installed.apply()
    failed = installed.until_state("False", "ProfileFailed")
    assert failed.message.startswith("HelmRelease middle: ") and "disk is full" in failed.message
    until(lambda: installed.state().message.endswith("waiting: again, top"), "those above wait")
    assert json.loads(installed.lock.to_json())["profiles"][0]["version"] == "2.0.0"
