"""Flux in the sandbox: its own controllers run where their Deployments are, and bring git and charts into a cluster."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
from collections.abc import Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.access import ChartRepository, GitServer, OciRegistry
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.charts import Chart
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.flux_manifest import Manifest
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError

from ..support.gitops import (
    HELM,
    KUSTOMIZE,
    SOURCE,
    condition,
    is_available,
    until_ready,
)

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: from-git\ndata:\n  answer: '{answer}'\n"


@pytest.fixture
def namespace(flux_cluster: Access) -> Iterator[str]:
    """A namespace of the cluster with Flux."""
    with fresh_namespace(flux_cluster) as name:
        yield name
        # What Flux has applied goes before Flux's objects lose their namespace.
        for kind in ("HelmRelease", "Kustomization"):
            flux_cluster.kubectl("delete", kind.lower(), "--all", "-n", name)


def flux_object(api_version: str, kind: str, name: str, namespace: str, **spec: object) -> dict[str, object]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"interval": "1m", **spec},
    }


def config_map(cluster: Access, name: str, namespace: str) -> dict[str, str]:
    found = cluster.get("configmap", name, "-n", namespace)
    return found["data"] if found else {}


def test_the_checksum_of_the_install_manifest_is_beside_it(flux_manifest: Manifest) -> None:
    content = flux_manifest.path.read_bytes()
    assert hashlib.sha256(content).hexdigest() == flux_manifest.sha256
    assert (
        flux_manifest.path.with_name(f"{flux_manifest.path.name}.sha256").read_text()
        == f"{flux_manifest.sha256}  {flux_manifest.path.name}\n"
    )


def test_git_arrives_in_the_cluster_and_so_does_a_change_of_it(flux_cluster: Access, git_server: GitServer, namespace: str) -> None:
    repository = git_server.repository(namespace)
    first = repository.commit({"apps/config.yaml": CONFIG_MAP.format(answer="41")})
    flux_cluster.apply(
        repository.secret("git", namespace),
        flux_object(SOURCE, "GitRepository", "apps", namespace, url=repository.url, ref={"branch": "main"}, secretRef={"name": "git"}),
        flux_object(
            KUSTOMIZE,
            "Kustomization",
            "apps",
            namespace,
            path="./apps",
            prune=True,
            targetNamespace=namespace,
            sourceRef={"kind": "GitRepository", "name": "apps"},
        ),
    )
    source = until_ready(flux_cluster, SOURCE, "GitRepository", "apps", namespace)
    assert source["status"]["artifact"]["revision"] == f"main@sha1:{first}"
    until_ready(flux_cluster, KUSTOMIZE, "Kustomization", "apps", namespace)
    assert config_map(flux_cluster, "from-git", namespace) == {"answer": "41"}

    repository.commit({"apps/config.yaml": CONFIG_MAP.format(answer="42")})
    flux_cluster.kubectl("annotate", "gitrepository", "apps", "-n", namespace, "reconcile.fluxcd.io/requestedAt=now")
    until(lambda: config_map(flux_cluster, "from-git", namespace) == {"answer": "42"}, "the change arrives")


def test_a_wrong_token_is_reported_by_flux(flux_cluster: Access, git_server: GitServer, namespace: str) -> None:
    repository = git_server.repository(namespace)
    repository.commit({"config.yaml": CONFIG_MAP.format(answer="0")})
    secret = repository.secret("git", namespace)
    secret["stringData"]["password"] = f"not {git_server.token}"
    wanted = flux_object(SOURCE, "GitRepository", "apps", namespace, url=repository.url, ref={"branch": "main"}, secretRef={"name": "git"})
    flux_cluster.apply(secret, wanted)

    def refused() -> str:
        return str(condition(flux_cluster.kube.get(SOURCE, "GitRepository", "apps", namespace)).get("message", ""))

    assert "authentication required" in until(lambda: message if "auth" in (message := refused()) else "", "the token is refused")


def test_charts_from_http_and_from_oci_are_installed(
    flux_cluster: Access, chart_repository: ChartRepository, oci_registry: OciRegistry, namespace: str
) -> None:
    charts = chart_repository.named(namespace)
    charts.publish(Chart("web", "1.2.3", values={"size": 1}))
    digest = oci_registry.push(namespace, Chart("base", "0.4.0"))
    oci = {"url": f"{oci_registry.url}/{namespace}/base", "insecure": True, "ref": {"digest": digest}}
    chart = {"chart": "web", "version": "1.2.3", "sourceRef": {"kind": "HelmRepository", "name": "charts"}}
    flux_cluster.apply(
        flux_object(SOURCE, "HelmRepository", "charts", namespace, url=charts.url),
        flux_object(SOURCE, "OCIRepository", "base", namespace, **oci),
        flux_object(HELM, "HelmRelease", "base", namespace, chartRef={"kind": "OCIRepository", "name": "base"}),
        flux_object(HELM, "HelmRelease", "web", namespace, chart={"spec": chart}, values={"size": 2}, dependsOn=[{"name": "base"}]),
    )
    for name in ("base", "web"):
        until_ready(flux_cluster, HELM, "HelmRelease", name, namespace)
    # Flux appends the digest to the version of a chart from an OCI repository.
    assert config_map(flux_cluster, "base", namespace)["version"] == f"0.4.0+{digest.removeprefix('sha256:')[:12]}"
    assert config_map(flux_cluster, "web", namespace) == {"version": "1.2.3", "values": '{"size":2}'}


def test_a_killed_controller_starts_again_as_its_pod_would(flux_cluster: Access, sandbox: Sandbox) -> None:
    def pid() -> int:
        return next((each.pid for each in sandbox.status() if each.owner == "flux (Flux)" and each.name == "kustomize-controller"), 0)

    killed = until(pid, "it runs")
    os.kill(killed, signal.SIGKILL)
    until(lambda: pid() not in (0, killed), "a new process")
    until(lambda: is_available(flux_cluster, "kustomize-controller"), "it is available again")

    def is_whole() -> bool:
        with contextlib.suppress(UserError):
            sandbox.check()
            return True
        return False

    until(is_whole, "every process of the sandbox runs")
