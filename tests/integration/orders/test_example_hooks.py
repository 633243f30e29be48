"""The hooks of the documentation's example, run by a real playbook in the cluster of an order."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import CONFIG_MAP
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE

from ..support.inside import open_crd, serve_by_hub
from ..support.orders import Orders

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "acme_hooks"
ROLES = ("backup", "monitoring", "compliance")
KINDS = [
    open_crd("velero.io", "v1", "Schedule", "schedules"),
    open_crd("compliance.openshift.io", "v1alpha1", "ScanSettingBinding", "scansettingbindings"),
]
NAMESPACES = ("openshift-adp", "openshift-monitoring", "openshift-compliance")  # of the operators


def test_hooks_set_up_backup_monitoring_and_compliance_in_a_new_cluster(orders: Orders) -> None:
    for role in ROLES:
        assert len((EXAMPLE / f"roles/{role}/tasks/main.yml").read_text(encoding="utf-8").splitlines()) < 25
    shutil.copytree(EXAMPLE, orders.folder / "collections/ansible_collections/acme/hooks")
    hooks = {"post_post_install": [f"acme.hooks.{role}" for role in ROLES]}
    settings = orders.kube.get("v1", "ConfigMap", CONFIG_MAP, SITE_NAMESPACE)
    retentions = yaml.safe_dump({"backup": {"retentions": ["168h", "720h"]}})
    orders.kube.patch(settings, {"data": {"infrastructure": retentions}}, checked=False)
    orders.apply(nodes={"fc430": 1}, backup_retention="168h")
    provisioned = orders.provision(wait=0, hooks=hooks)
    assert provisioned.orders[0]["cluster_template_has_post_install"], "for the hooks: the template has nothing to do in it"
    serve_by_hub(orders.hub, "demo", orders.working())
    orders.hub.install_crds(*KINDS)
    orders.hub.kubectl("create", "namespace", "openshift-adp")
    try:
        for namespace in NAMESPACES[1:]:
            orders.hub.kubectl("create", "namespace", namespace)
        receiver = "https://metrics.acme.example/write"
        run = orders.play("post_install", cluster_hooks=hooks, monitoring_receiver=receiver, cluster_wait_timeout=300).successful()
        assert run.changed and orders.status()["phase"] == "Ready"
        schedule = orders.kube.get("velero.io/v1", "Schedule", "nightly", "openshift-adp")
        assert schedule["spec"] == {"schedule": "0 2 * * *", "template": {"ttl": "168h"}}, "as the tenant has chosen"
        config: Object = orders.kube.get("v1", "ConfigMap", "cluster-monitoring-config", "openshift-monitoring")["data"]
        metrics = yaml.safe_load(config["config.yaml"])["prometheusK8s"]
        assert metrics["remoteWrite"] == [{"url": receiver}] and metrics["externalLabels"] == {"cluster": f"{orders.namespace}/demo"}
        scan = orders.kube.get("compliance.openshift.io/v1alpha1", "ScanSettingBinding", "cis", "openshift-compliance")
        assert [profile["name"] for profile in scan["profiles"]] == ["ocp4-cis", "ocp4-cis-node"]
        assert schedule["metadata"]["annotations"][f"{orders.group}/lock-token"] == str(orders.lease()["leaseTransitions"])
    finally:
        orders.kube.patch(settings, {"data": {"infrastructure": None}}, checked=False)
        orders.hub.kubectl("delete", "crd", *(crd["metadata"]["name"] for crd in KINDS), "--wait=false")
        orders.hub.kubectl("delete", "namespace", *NAMESPACES, "--ignore-not-found", "--wait=false")
        for role in ROLES:
            name = f"openfleet-resource-set-{role}"
            orders.hub.kubectl("delete", "configmap", name, "-n", "kube-system", "--ignore-not-found")
