"""The objects of Flux for a lock file, and what a release waits for, by the expressions that Flux evaluates."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import celpy
import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.lock_file import (
    LockedProfile,
    LockedRepository,
    ProfilesLock,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.render import render
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.state import ready_state
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid

HTTP, OCI = LockedRepository("https://charts.example.com"), LockedRepository("oci://registry.example.com/charts")
DIGEST, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def locked(name: str, layer: int = 0, *, version: str = "1.0.0", depends_on: tuple[str, ...] = (), **more: Any) -> LockedProfile:
    fields = {"profile": name, "chart": name, "repository": "acme", "digest": DIGEST} | more
    return LockedProfile(name, version=version, layer=layer, dependsOn=depends_on, **fields)


def lock_of(*profiles: LockedProfile, repository: LockedRepository = HTTP) -> ProfilesLock:
    return ProfilesLock(profiles, {"acme": repository})


TWO_LAYERS = lock_of(locked("base"), locked("top", 5, depends_on=("base",)))
THREE_LAYERS = lock_of(locked("base"), locked("middle", 1, depends_on=("base",)), locked("top", 2, depends_on=("middle",)))


def releases(lock: ProfilesLock) -> dict[str, Any]:
    return {item["metadata"]["name"]: item for item in render(lock) if item["kind"] == "HelmRelease"}


def observed(
    release: dict[str, Any], *, generation: int = 1, status: str = "True", reason: str = "", message: str = "", seen: int = 0
) -> Any:
    """A release as Flux reports on it."""
    condition = {"type": "Ready", "status": status, "reason": reason, "message": message, "observedGeneration": generation}
    return release | {
        "metadata": release["metadata"] | {"generation": generation},
        "status": {"observedGeneration": seen or generation, "conditions": [condition]},
    }


def may_start(release: dict[str, Any], dependency: dict[str, Any]) -> bool:
    """Flux's check of a dependency: the expression replaces its own one."""
    environment = celpy.Environment()
    (expression,) = [item["readyExpr"] for item in release["spec"]["dependsOn"] if item["name"] == dependency["metadata"]["name"]]
    return bool(environment.program(environment.compile(expression)).evaluate({"dep": celpy.json_to_cel(dependency)}))


def test_a_chart_of_an_http_repository_is_pinned_by_its_version() -> None:
    repository, release = render(lock_of(locked("base", namespace="tools", values={"replicas": 2})))
    assert (repository["kind"], repository["metadata"]["name"], repository["spec"]["url"]) == ("HelmRepository", "acme", HTTP.url)
    assert release["spec"]["chart"]["spec"]["version"] == "1.0.0"
    assert release["spec"]["chart"]["spec"]["sourceRef"] == {"kind": "HelmRepository", "name": "acme"}
    assert (release["spec"]["targetNamespace"], release["spec"]["values"]) == ("tools", {"replicas": 2})
    assert release["metadata"]["labels"]["openfleet.clusters/layer"] == "0"


def test_another_version_asks_flux_to_read_the_index_again_and_other_values_do_not() -> None:
    def request(**changes: Any) -> str:
        return str(render(lock_of(locked("base", **changes)))[0]["metadata"]["annotations"]["reconcile.fluxcd.io/requestedAt"])

    assert request() == request(values={"replicas": 3})
    assert request() != request(version="2.0.0")


def test_a_chart_of_a_registry_is_pinned_by_its_digest() -> None:
    source, release = render(lock_of(locked("base"), repository=OCI))
    assert (source["kind"], source["spec"]["url"], source["spec"]["ref"]) == ("OCIRepository", f"{OCI.url}/base", {"digest": DIGEST})
    assert release["spec"]["chartRef"] == {"kind": "OCIRepository", "name": source["metadata"]["name"]}


def test_another_digest_is_another_spec_of_the_release_because_flux_counts_generations_of_that() -> None:
    before, after = (releases(lock_of(locked("base", digest=digest), repository=OCI))["base"] for digest in (DIGEST, OTHER))
    assert before["spec"] != after["spec"]


def test_one_chart_can_be_installed_twice() -> None:
    names = releases(lock_of(locked("one", chart="nginx", profile="nginx"), locked("two", chart="nginx", profile="nginx")))
    assert [item["spec"]["releaseName"] for item in names.values()] == ["one", "two"]


def test_certificates_of_a_repository_become_a_secret_that_the_source_names() -> None:
    secret, repository, _release = render(lock_of(locked("base"), repository=replace(HTTP, ca="PEM")))
    assert secret["data"] == {"ca.crt": "UEVN"}
    assert repository["spec"]["certSecretRef"] == {"name": secret["metadata"]["name"]}


def test_with_a_kubeconfig_flux_installs_from_the_hub() -> None:
    objects = render(TWO_LAYERS, namespace="work", kubeconfig={"name": "admin", "key": "kubeconfig"})
    assert {item["metadata"]["namespace"] for item in objects} == {"work"}
    assert [item["spec"]["kubeConfig"] for item in objects if item["kind"] == "HelmRelease"] == [
        {"secretRef": {"name": "admin", "key": "kubeconfig"}}
    ] * 2
    releases = [item["spec"] for item in objects if item["kind"] == "HelmRelease"]
    assert all(spec["storageNamespace"] == spec["targetNamespace"] for spec in releases), "the cluster has no namespace work"


@pytest.mark.parametrize(
    ("change", "starts"),
    [
        ({}, True),
        ({"status": "False"}, False),
        ({"status": "Unknown"}, False),
        ({"generation": 2, "seen": 1}, False),
    ],
)
def test_a_release_waits_for_the_layer_below(change: dict[str, Any], starts: bool) -> None:
    found = releases(TWO_LAYERS)
    assert may_start(found["top"], observed(found["base"], **change)) is starts


def test_a_release_without_a_status_is_not_ready() -> None:
    found = releases(TWO_LAYERS)
    assert not may_start(found["top"], found["base"] | {"status": {}})
    assert not may_start(found["top"], {**observed(found["base"]), "metadata": {"name": "base", "generation": 1}})


@pytest.mark.parametrize("changed", [{"version": "2.0.0"}, {"digest": OTHER}, {"values": {"a": 1}}])
def test_an_upgrade_does_not_overtake_the_layer_below_whatever_is_written_first(changed: dict[str, Any]) -> None:
    before = releases(THREE_LAYERS)
    base, middle, top = THREE_LAYERS.profiles
    after = releases(lock_of(replace(base, **changed), middle, replace(top, version="3.0.0")))
    # The release of the middle changes in nothing but what it waits for. The top one must still not start with the old
    # state of it.
    assert not may_start(after["middle"], observed(before["base"]))
    assert not may_start(after["top"], observed(before["middle"]))
    assert may_start(after["middle"], observed(after["base"]))
    assert may_start(after["top"], observed(after["middle"]))


def test_a_release_below_is_not_changed_by_one_above() -> None:
    base, top = TWO_LAYERS.profiles
    assert releases(TWO_LAYERS)["base"] == releases(lock_of(base, replace(top, version="2.0.0")))["base"]


def test_a_lock_file_is_the_same_after_a_round_trip() -> None:
    lock = lock_of(locked("base", values={"a": [1, {"ü": None}]}, requires={"x": (">=1",)}, conflicts=("y",)), *TWO_LAYERS.profiles[1:])
    assert ProfilesLock.from_json(lock.to_json()) == lock
    assert render(ProfilesLock.from_json(lock.to_json())) == render(lock)
    assert ProfilesLock.from_json("") == ProfilesLock()


@pytest.mark.parametrize(
    "text", ["{", "[]", "null", '{"profiles": [{"name": 1}]}', '{"profiles": 1}', json.dumps({"profiles": [{"x": 1}]})]
)
def test_a_lock_file_that_cannot_be_read_is_one_clear_error(text: str) -> None:
    with pytest.raises(Invalid, match="remove its annotation"):
        ProfilesLock.from_json(text)


def test_a_lock_file_fits_into_an_annotation_or_is_refused() -> None:
    with pytest.raises(Invalid, match="more than 128 KiB"):
        lock_of(locked("base", values={"a": "x" * 200_000})).to_json()


DEPENDENCY = {"status": "False", "reason": "DependencyNotReady", "message": "dependency 'flux-system/base' is not ready"}


@pytest.mark.parametrize(
    ("base", "top", "expected"),
    [
        ({}, {}, ("True", "ProfilesReady", "2 profiles ready")),
        (None, None, ("False", "ProfilesProgressing", "HelmRelease base: not applied yet; also progressing: top")),
        (
            {"status": "False", "reason": "InstallFailed", "message": "Helm install failed: boom"},
            DEPENDENCY,
            ("False", "ProfileFailed", "HelmRelease base: Helm install failed: boom; waiting: top"),
        ),
        (
            {"status": "Unknown", "message": "Running install"},
            DEPENDENCY,
            ("False", "ProfilesProgressing", "HelmRelease base: Running install; waiting: top"),
        ),
        ({}, {"status": "False", "reason": "UpgradeFailed", "message": "no"}, ("False", "ProfileFailed", "HelmRelease top: no")),
        ({"generation": 2, "seen": 1}, {}, ("False", "ProfilesProgressing", "HelmRelease base: installation not started yet")),
        (
            {"status": "False", "reason": "SourceNotReady", "message": "HelmChart 'x' is not ready: does not have an artifact"},
            {},
            ("False", "ProfilesProgressing", "HelmRelease base: HelmChart 'x' is not ready: does not have an artifact"),
        ),
        ({}, DEPENDENCY, ("False", "ProfilesProgressing", "waiting: top")),
    ],
)
def test_the_condition_names_what_failed_and_what_waits(base: Any, top: Any, expected: tuple[str, str, str]) -> None:
    found = releases(TWO_LAYERS)
    reported = [observed(found[name], **change) for name, change in (("base", base), ("top", top)) if change is not None]
    state = ready_state(TWO_LAYERS, reported)
    assert (state.status, state.reason, state.message) == expected


def test_the_state_of_an_older_revision_does_not_count() -> None:
    old = [observed(item) for item in releases(TWO_LAYERS).values()]
    base, top = TWO_LAYERS.profiles
    state = ready_state(lock_of(base, replace(top, version="2.0.0")), old)
    assert (state.status, state.message) == ("False", "HelmRelease top: not applied yet")
