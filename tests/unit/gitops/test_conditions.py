"""What Flux's objects show, case by case."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.condition_types import (
    INSTALLED,
    PROFILES_READY,
    SOURCE_READY,
    SYNCED,
    TYPES,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.conditions import (
    ObservedGitOps,
    gitops_conditions,
    installed,
    ready,
    unreachable,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.lock_file import (
    LockedProfile,
    LockedRepository,
    ProfilesLock,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.render import REVISION_LABEL

SILENT = "GitRepository flux-system: Flux does not report it yet"
LATE = "GitRepository flux-system: Flux has not observed its generation 2 yet"


def reported(status: str, reason: str = "Succeeded", message: str = "ok", generation: int | None = 2, observed: int | None = 2) -> Object:
    """An object of generation 2, as a controller of Flux reports on it."""
    condition: Object = {"type": "Ready", "status": status, "reason": reason, "message": message}
    if generation is not None:
        condition["observedGeneration"] = generation
    state: Object = {"conditions": [{"type": "Reconciling", "status": "True"}, condition]}
    return {"metadata": {"generation": 2}, "status": state | ({} if observed is None else {"observedGeneration": observed})}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (None, ("False", "Missing", "GitRepository flux-system: it does not exist")),
        ({"metadata": {"generation": 1}}, ("Unknown", "Pending", SILENT)),
        (reported("True", message="stored artifact"), ("True", "Succeeded", "GitRepository flux-system: stored artifact")),
        (reported("True", generation=None), ("True", "Succeeded", "GitRepository flux-system: ok")),
        # The order was changed, and Flux has yet to notice.
        (reported("True", generation=1, observed=1), ("Unknown", "Outdated", LATE)),
        (reported("True", generation=None, observed=1), ("Unknown", "Outdated", "GitRepository flux-system: ok")),
        (reported("False", generation=1), ("Unknown", "Outdated", LATE)),
        # Flux counts a generation as observed only after a success.
        (reported("False", "AuthFailed", "no", observed=1), ("False", "AuthFailed", "GitRepository flux-system: no")),
        (reported("False", "AuthFailed", "no", observed=None), ("False", "AuthFailed", "GitRepository flux-system: no")),
        # It waits for another object, which says why.
        (reported("False", "DependencyNotReady", "no"), ("Unknown", "DependencyNotReady", "GitRepository flux-system: no")),
        (
            reported("False", "ArtifactFailed", "Source artifact not found, retrying in 30s"),
            ("Unknown", "ArtifactFailed", "GitRepository flux-system: Source artifact not found, retrying in 30s"),
        ),
        (reported("False", "ArtifactFailed", "no route"), ("False", "ArtifactFailed", "GitRepository flux-system: no route")),
        (reported("Unknown", "Progressing", "working"), ("Unknown", "Progressing", "GitRepository flux-system: working")),
        (reported("False", "no reason!", ""), ("False", "noreason", "GitRepository flux-system")),
        # A tenant may write anything into the status of objects in the cluster.
        ({"metadata": {"generation": 1}, "status": "x"}, ("Unknown", "Pending", SILENT)),
        ({"metadata": {"generation": 1}, "status": {"conditions": ["x", 1]}}, ("Unknown", "Pending", SILENT)),
        (reported("Perhaps"), ("Unknown", "Outdated", "GitRepository flux-system: ok")),
    ],
)
def test_an_object_is_ready_when_flux_says_so_of_its_generation(item: Any, expected: Any) -> None:
    state = ready(item, "GitRepository flux-system")
    assert (state.status, state.reason, state.message) == expected


def test_the_message_of_an_object_is_shortened() -> None:
    assert len(ready(reported("False", message="x" * 100_000), "Kustomization flux-system").message) == 2048


def deployment(name: str, *conditions: tuple[str, ...], observed: int = 1, updated: int = 1, replicas: int = 1) -> Object:
    words = ("type", "status", "message", "reason")
    shown = [{"reason": "R"} | dict(zip(words, condition, strict=False)) for condition in conditions]
    status = {"observedGeneration": observed, "conditions": shown, "updatedReplicas": updated, "replicas": replicas}
    return {"metadata": {"name": name, "generation": 1}, "spec": {"replicas": 1}, "status": status}


UP, DOWN = ("Available", "True", ""), ("Available", "False", "no pod")


@pytest.mark.parametrize(
    ("deployments", "expected"),
    [
        ([], ("False", "Missing", "Deployment helm: it does not exist")),
        ([deployment("helm", UP)], ("False", "Missing", "Deployment source: it does not exist")),
        ([deployment("helm", UP), deployment("source", UP), deployment("other")], ("True", "ControllersAvailable", "helm, source")),
        (
            [deployment("helm", UP, updated=0), deployment("source", DOWN, ("Progressing", "True", "", "NewReplicaSetAvailable"))],
            ("False", "R", "Deployment source: no pod"),
        ),
        (
            [deployment("helm", UP), deployment("source", DOWN, ("Progressing", "True", "", "ReplicaSetUpdated"))],
            ("Unknown", "R", "Deployment source: no pod"),
        ),
        ([deployment("helm", UP), deployment("source")], ("Unknown", "Pending", "Deployment source: it has no available replica yet")),
        (
            [deployment("helm", UP), deployment("source", UP, ("Progressing", "False", "deadline"))],
            ("False", "R", "Deployment source: deadline"),
        ),
        (
            [deployment("helm", UP), deployment("source", ("ReplicaFailure", "True", "quota exceeded"))],
            ("False", "R", "Deployment source: quota exceeded"),
        ),
        # An upgrade: the old replica is still available.
        (
            [deployment("helm", UP), deployment("source", UP, observed=0)],
            ("Unknown", "Outdated", "Deployment source: its generation 1 is not observed yet"),
        ),
        (
            [deployment("helm", UP), deployment("source", UP, updated=0)],
            ("Unknown", "RollingOut", "Deployment source: 0 of 1 replicas are updated"),
        ),
        (
            [deployment("helm", UP), deployment("source", UP, replicas=2)],
            ("Unknown", "RollingOut", "Deployment source: 1 of 1 replicas are updated"),
        ),
    ],
)
def test_flux_is_installed_when_each_controller_runs_as_its_deployment_says(deployments: list[Object], expected: Any) -> None:
    state = installed(("helm", "source"), deployments)
    assert (state.status, state.reason, state.message) == expected


def test_without_controllers_nothing_is_installed() -> None:
    assert installed((), [deployment("source", UP)]).reason == "Missing"


def test_only_the_conditions_that_are_used_are_derived_in_their_order() -> None:
    assert list(gitops_conditions({SYNCED, SOURCE_READY}, ObservedGitOps(), ProfilesLock())) == [SOURCE_READY, SYNCED]
    assert list(gitops_conditions(TYPES, ObservedGitOps(), ProfilesLock())) == list(TYPES)


def test_of_a_cluster_that_does_not_answer_nothing_is_known() -> None:
    assert unreachable([INSTALLED], "time is up")[INSTALLED].status == "Unknown"


LOCK = ProfilesLock(
    tuple(LockedProfile(name, name, name, "acme", "1.0.0", f"sha256:{'1' * 64}") for name in ("base", "web")),
    {"acme": LockedRepository("https://charts.example.com")},
)
NOT_APPLIED = ("Unknown", "ProfilesProgressing", "HelmRelease web: not applied yet")
NOT_STARTED = ("Unknown", "ProfilesProgressing", "HelmRelease web: installation not started yet")


def release(name: str, **report: Any) -> Object:
    item = reported(**{"status": "True"} | report)
    return item | {"metadata": item["metadata"] | {"name": name, "labels": {REVISION_LABEL: LOCK.revisions[name]}}}


@pytest.mark.parametrize(
    ("releases", "is_applied", "expected"),
    [
        ([release("base"), release("web")], True, ("True", "ProfilesReady", "2 profiles ready")),
        ([release("base")], True, ("False", "Missing", "HelmRelease web: it does not exist")),
        ([], True, ("False", "Missing", "HelmRelease base: it does not exist")),
        # Another one has failed, and its message says more.
        ([release("base", status="False", reason="InstallFailed")], True, ("False", "ProfileFailed", "HelmRelease base: ok")),
        # The order was changed: the next run applies the release for the first time.
        ([release("base")], False, NOT_APPLIED),
        # A release that exists is being upgraded, however old it is.
        ([release("base"), {"metadata": {"name": "web"}}], True, NOT_APPLIED),
        # A tenant may write anything into the status of objects in the cluster.
        *(
            ([release("base"), release("web") | {"status": odd}], True, NOT_STARTED)
            for odd in ("odd", {"conditions": ["odd", 1]}, {"conditions": 5})
        ),
    ],
)
def test_a_release_that_was_applied_and_does_not_exist_is_missing(releases: list[Object], is_applied: bool, expected: Any) -> None:
    state = gitops_conditions([PROFILES_READY], ObservedGitOps(releases=releases), LOCK, is_applied=is_applied)[PROFILES_READY]
    assert (state.status, state.reason, state.message) == expected
