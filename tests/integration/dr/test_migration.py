"""The checks of the four phases of the migration from ACM to direct access, on one cluster that is hub and member."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.acm.deployer import AcmDeployer
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.acm.reader import AcmReader
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.interfaces import Stamp
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import MANIFEST_WORK, RAMEN, VERSIONS, VRG
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.migration import check_phase
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.settings import CONFIG_MAP
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.clients import ClusterClients
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.store import RegistryStore

from ..support.acm_agent_standin import AgentStandIn
from ..support.actions import answer
from ..support.dr_objects import SECONDS, ref, vrg
from ..support.kubeconfigs import kubeconfig, put_kubeconfig
from ..support.manifests import manifest

POLICY = ("policy_stamps", "policy_stamps_binding")


class Site:
    """A namespace with settings and a registry with one cluster, which is also a managed cluster."""

    def __init__(self, acm: Access, namespace: str) -> None:
        self.kube, self.namespace, self.cluster = acm.kube, namespace, f"{namespace}-east"
        self.agent = AgentStandIn(acm.kube, self.cluster, acm.kube)
        put_kubeconfig(self.kube, namespace, "east", kubeconfig(acm))
        self.store = RegistryStore(self.kube, "ClusterRegistry")
        self.store.register(namespace, "peers", [{"name": self.cluster, "kubeconfig_secret": "east"}])

    def set(self, **data: str) -> None:
        metadata = {"name": CONFIG_MAP, "namespace": self.namespace}
        self.kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, force=True)

    def failed(self, phase: str) -> dict[str, str]:
        """The checks that fail, with their messages."""
        return {check.name: check.message for check in check_phase(self.kube, self.namespace, phase) if not check.passed}

    def check_health(self) -> None:
        registry = self.store.get(self.namespace, "peers")
        checked = ClusterClients(self.kube, self.namespace, SECONDS).check(registry.clusters)
        now = self.kube.server_time()
        assert now
        self.store.write_status(self.namespace, "peers", checked, now)


@pytest.fixture
def site(acm: Access, namespace: str) -> Iterator[Site]:
    site = Site(acm, namespace)
    site.agent.join()
    yield site
    site.agent.leave()
    for name in reversed(POLICY):
        acm.kube.delete(manifest(f"dr/{name}"))


def test_each_phase_is_complete_only_after_its_work(site: Site) -> None:
    kube, cluster, namespace = site.kube, site.cluster, site.namespace
    assert set(site.failed("prepare")) == {"settings", f"policy on {cluster}"}
    assert "kubectl apply -k" in site.failed("prepare")[f"policy on {cluster}"]
    site.set(dr_mode="acm")
    for name in POLICY:
        kube.apply(manifest(f"dr/{name}"), force=True)
    until(lambda: site.failed("prepare") == {}, "the policy is in force")

    # The health of the cluster is not known yet, and the view of the group has to be requested first.
    AcmDeployer(kube).apply(cluster, vrg(namespace), Stamp("ours", 1, 1))
    site.agent.apply_works()
    failed = site.failed("compare")
    assert set(failed) == {"settings", "clusters", "VolumeReplicationGroups"}
    assert f"{namespace}/shop: Found by direct, Not listed by acm" in failed["VolumeReplicationGroups"]
    site.set(dr_mode="acm", compare="true")
    site.check_health()
    AcmReader(kube).get([cluster], ref(namespace))
    site.agent.answer_views()
    left = site.failed("compare")
    assert left.keys() <= {"VolumeReplicationGroups"}
    assert f"{namespace}/shop" not in str(left)  # groups of other tests may be there

    failed = site.failed("switch")
    assert {"settings", MANIFEST_WORK} <= set(failed)
    assert f"delete {cluster}/shop-{namespace}-vrg-mw" in failed[MANIFEST_WORK]
    work = kube.get(VERSIONS[MANIFEST_WORK], MANIFEST_WORK, f"shop-{namespace}-vrg-mw", cluster)
    kube.delete(work)
    site.agent.apply_works()
    site.set(dr_mode="direct", compare="true")
    assert site.failed("switch").keys() <= {"stamps"}

    assert {"settings", "ManagedClusterView"} <= set(site.failed("remove"))
    AcmReader(kube).forget([cluster], ref(namespace))
    site.set(dr_mode="direct")
    assert site.failed("remove").keys() <= {"stamps"}


def test_object_without_a_stamp_is_named(site: Site) -> None:
    site.kube.create(vrg(site.namespace, "old"))
    assert f"{site.cluster} {site.namespace}/old has no stamp yet" in site.failed("switch")["stamps"]


def test_cluster_of_a_policy_that_is_not_registered_is_named(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    list_all = site.kube.list_all
    policy = {"metadata": {"name": "metro"}, "spec": {"drClusters": [site.cluster, "west"]}}
    monkeypatch.setattr(site.kube, "list_all", lambda *kind: [policy] if kind == (RAMEN, "DRPolicy") else list_all(*kind))
    assert site.failed("prepare")["registry"].startswith("Register west in ClusterRegistry")


def test_check_that_cannot_be_done_fails_and_hides_no_other(site: Site) -> None:
    site.set(dr_mode="direct", acm_hub_secret="missing")  # noqa: S106 - the name of a Secret
    failed = site.failed("remove")
    assert "missing" in failed[MANIFEST_WORK]
    assert "settings" not in failed


def test_checks_change_nothing(site: Site) -> None:
    site.set(dr_mode="acm")
    kinds = [(RAMEN, VRG), ("v1", "ConfigMap"), ("v1", "Secret"), (RAMEN, "ClusterRegistry")]

    def contents() -> list[str]:
        items = [item for version, kind in kinds for item in site.kube.list_all(version, kind, site.namespace)]
        items += site.kube.list_all(RAMEN, VRG, "default")
        return [item["metadata"]["uid"] + item["metadata"]["resourceVersion"] for item in items]

    before = contents()
    for phase in ("prepare", "compare", "switch", "remove"):
        site.failed(phase)
    assert contents() == before


def test_module_returns_the_checks(site: Site, acm: Access) -> None:
    result = answer("dr_migration_info", phase="remove", namespace=site.namespace, kubeconfig=str(acm.kubeconfig)).result
    assert result["passed"] == all(check["passed"] for check in result["checks"])
    assert [check["name"] for check in result["checks"]] == [
        "settings",
        f"access to {site.cluster}",
        "stamps",
        "ManifestWork",
        "ManagedClusterView",
    ]
    assert not result["changed"]


def test_playbook_fails_with_what_is_left_to_do(site: Site, acm: Access, tmp_path: Path) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))}
    settings = {"ANSIBLE_COLLECTIONS_PATH": str(Path(sys.prefix) / "collections"), "HOME": str(tmp_path)}
    variables = {"dr_namespace": site.namespace, "hub_kubeconfig": str(acm.kubeconfig)}
    command = [
        str(Path(sys.executable).parent / "ansible-playbook"),
        "openfleet.clusters.dr_migration_prepare",
        "-e",
        json.dumps(variables),
    ]
    played = subprocess.run(command, cwd=tmp_path, env=inherited | settings, capture_output=True, text=True, check=False)
    assert played.returncode != 0
    assert f"settings: Set dr_mode: acm in ConfigMap {site.namespace}/dr-settings." in played.stdout, played.stderr
