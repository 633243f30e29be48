"""A site with one hub and no home cluster: nothing of a fleet is loaded, asked for, or permitted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "extensions/eda/deploy/kubernetes"
LOADED = """
import sys
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import source
print([name for name in sys.modules if ".module_utils.fleet" in name or ".controller.fleet" in name])
"""


def test_engine_of_a_hub_loads_nothing_of_a_fleet() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_manifests_of_a_hub_permit_nothing_of_a_fleet() -> None:
    files = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    named = [name for name in files if "fleet.openfleet.io" in (MANIFESTS / name).read_text(encoding="utf-8")]
    assert named == ["policy_orders.yaml"], "the policy refuses tenants the labels of a fleet, and permits nothing"


def test_rulebooks_and_playbooks_of_orders_use_nothing_of_a_fleet() -> None:
    files = [ROOT / "rulebooks" / f"{name}.yml" for name in ("cluster_fulfillment", "cluster_fulfillment_aap", "cluster_webhooks_aap")]
    files += [ROOT / "playbooks" / f"{name}.yml" for name in ("create_cluster", "post_install", "delete_cluster", "sync_status")]
    files += sorted((ROOT / "playbooks/imports").glob("*.yml"))
    words = ("openfleet.clusters.fleet", "home_kubeconfig", "fleet_hub")
    assert [file.name for file in files if any(word in file.read_text(encoding="utf-8") for word in words)] == []
