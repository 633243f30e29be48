"""Real GitOps for tests: a git server, a chart repository and an OCI registry, and a cluster on which Flux runs. Started on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops import flux_manifest as manifests
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.access import (
    ChartRepository,
    Gitea,
    GitOpsAccess,
    GitServer,
    OciRegistry,
)
from ansible_collections.openfleet.clusters.extensions.sandbox.gobuild import FLUX_CONTROLLERS
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox

FLUX_NAMESPACE = manifests.NAMESPACE
SOURCE = "source.toolkit.fluxcd.io/v1"
KUSTOMIZE = "kustomize.toolkit.fluxcd.io/v1"
HELM = "helm.toolkit.fluxcd.io/v2"


@pytest.fixture(scope="session")
def gitops_services(sandbox: Sandbox) -> GitOpsAccess:
    sandbox.up(gitops=True)
    return sandbox.gitops()


@pytest.fixture(scope="session")
def git_server(gitops_services: GitOpsAccess) -> GitServer:
    return gitops_services.git


@pytest.fixture(scope="session")
def chart_repository(gitops_services: GitOpsAccess) -> ChartRepository:
    return gitops_services.charts


@pytest.fixture(scope="session")
def oci_registry(gitops_services: GitOpsAccess) -> OciRegistry:
    return gitops_services.registry


@pytest.fixture(scope="session")
def gitea(sandbox: Sandbox) -> Gitea:
    sandbox.up(gitea=True)
    return sandbox.gitea()


@pytest.fixture(scope="session")
def flux_manifest(tmp_path_factory: pytest.TempPathFactory) -> manifests.Manifest:
    """Flux's install manifest, with its checksum beside it."""
    return manifests.write(tmp_path_factory.mktemp("flux"))


@pytest.fixture(scope="session")
def flux_cluster(sandbox: Sandbox, flux_manifest: manifests.Manifest) -> Access:
    """A further cluster of the sandbox on which Flux's controllers run."""
    sandbox.up(clusters=["flux"], workloads=["flux"])
    cluster = Access(sandbox.kubeconfig("flux"))
    install_flux(cluster, flux_manifest)
    return cluster


def install_flux(cluster: Access, manifest: manifests.Manifest) -> None:
    """Apply the manifest, as `kubectl` does, and return when every controller is ready."""
    # Twice: objects of new kinds are none yet, but kubectl looks up all kinds before the first is served.
    cluster.kubectl("apply", "--server-side", "-f", str(manifest.path))
    for name in FLUX_CONTROLLERS:
        until(lambda name=name: is_available(cluster, name), f"{name} is available")  # type: ignore[misc]


def is_available(cluster: Access, deployment: str, namespace: str = FLUX_NAMESPACE) -> bool:
    found = cluster.get("deployment", deployment, "-n", namespace)
    return bool(found) and condition(found, "Available").get("status") == "True"


def condition(item: dict[str, Any], kind: str = "Ready") -> dict[str, Any]:
    """The condition of this type; empty where the object has none."""
    return next((each for each in item.get("status", {}).get("conditions", []) if each["type"] == kind), {})


def until_ready(cluster: Access, api_version: str, kind: str, name: str, namespace: str) -> dict[str, Any]:
    """Wait until Flux reports the object Ready for its present generation."""

    def found() -> dict[str, Any] | None:
        item = cluster.kube.get(api_version, kind, name, namespace)
        ready = condition(item)
        current = item["status"].get("observedGeneration") == item["metadata"]["generation"] if ready else False
        return item if current and ready["status"] == "True" else None

    return until_with_state(found, lambda: cluster.kube.get(api_version, kind, name, namespace).get("status"), f"{kind} {name} is Ready")


def until_with_state(check: Callable[[], dict[str, Any] | None], state: Callable[[], Any], what: str) -> dict[str, Any]:
    """As `until`; a failure shows the last state."""
    try:
        return until(check, what) or {}
    except Exception as error:
        raise AssertionError(f"{error} Its state: {state()}") from error
