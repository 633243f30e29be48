"""The archive for a support case: everything about an order and its cluster is in it, and nothing that is secret."""

from __future__ import annotations

import base64
import json
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.diagnostics import LOOKS_SECRET
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names

from ..plugins.test_examples import NAMESPACE, apply_order, examples, orders
from ..support.orders import Orders
from ..support.playbooks import play, task

__all__ = ["orders"]  # a fixture
WORKING = Names().working_namespace("orders", "demo")
HIDDEN = "hunter2-do-not-show"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzb21lYm9keSJ9.c29tZXNpZ25hdHVyZQ"  # noqa: S105 - made up


def contents(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        return {entry.name: file.read().decode() for entry in archive if (file := archive.extractfile(entry))}


@pytest.mark.usefixtures("orders")
def test_archive_has_everything_but_secrets(hub: Access, tmp_path: Path) -> None:
    apply_order(hub)
    Orders(hub, NAMESPACE, tmp_path).provision()
    stray = {"metadata": {"name": "stray", "namespace": WORKING}, "data": {"note": f"{HIDDEN} {TOKEN}", "plain": "left as it is"}}
    hub.apply({"apiVersion": "v1", "kind": "ConfigMap", **stray})
    bad = {"name": "demo", "namespace": "orders", "dest": "/nowhere/x.tar.gz"}
    tasks = [
        task("cluster_diagnostics", "predict", check=True, name="demo", namespace="orders", dest=str(tmp_path / "predicted.tar.gz")),
        *examples("cluster_diagnostics"),
        examples("cluster_diagnostics")[0] | {"name": "Collect it again"},
        task("cluster_diagnostics", "no folder", **bad),
        task("cluster_diagnostics", "no client", **bad | {"client": "absent-client"}),
        task("cluster_diagnostics", "no order", name="absent", namespace="orders", dest=str(tmp_path / "absent.tar.gz")),
    ]
    played = play(tmp_path, tasks, defaults={"kubeconfig": str(hub.kubeconfig)})
    assert played.code == 0, played.output
    collected = ("predict", "Collect diagnostics for a support case", "Collect it again")
    assert [played[name].changed for name in collected] == [True, True, False]
    assert not (tmp_path / "predicted.tar.gz").exists()
    path = tmp_path / "orders-demo.tar.gz"
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IRUSR | stat.S_IWUSR
    files = {name.removeprefix("orders-demo/"): text for name, text in contents(path).items()}
    assert sorted(files) == played["Collect diagnostics for a support case"].result["files"]
    wanted = {"summary.txt", "order.json", "lock.json", "jobs.json", "hub/HostedCluster.json", "hub/NodePool.json", "hub/Secret.json"}
    assert wanted | {"hub/Event.json", "cluster/Node.json", "cluster/Namespace.json"} <= files.keys()
    assert "Phase:     Ready" in files["summary.txt"]
    assert "NodesReady" in files["summary.txt"]
    assert json.loads(files["order.json"])["spec"]["templateParameters"] == ["pull_secret"]
    assert {item["manager"] for item in json.loads(files["jobs.json"])[2:]} >= {"openfleet.clusters"}
    assert "left as it is" in files["hub/ConfigMap.json"]
    everything = "\n".join(files.values())
    for secret in secrets(hub):
        assert secret not in everything
    assert HIDDEN not in everything + played.output
    assert TOKEN not in everything
    assert not LOOKS_SECRET.search(everything)
    assert "set dest to a file" in played["no folder"].message
    assert "There is no absent-client where Ansible runs" in played["no client"].message
    assert "There is no ClusterOrder orders/absent" in played["no order"].message


def secrets(hub: Access) -> list[str]:
    """What the Secrets of the order hold, as text and as it is stored."""
    items: list[dict[str, Any]] = hub.get("secrets", "-n", WORKING)["items"]
    stored = [value for item in items for value in item["data"].values()]
    assert stored
    return stored + [base64.b64decode(value).decode(errors="replace") for value in stored]
