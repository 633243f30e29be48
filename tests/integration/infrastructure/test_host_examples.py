"""The examples of the module for hosts, run as they are written: by a real playbook, for a real order."""

from __future__ import annotations

from pathlib import Path

import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE
from ansible_collections.openfleet.clusters.plugins.modules import cluster_hosts

from ..support.agents import Agents, hosts
from ..support.orders import Orders
from ..support.playbooks import COLLECTION, Task, play

# As the examples call it.
NAMESPACE = "hosts"


def examples(_module: str) -> list[Task]:
    tasks: list[Task] = yaml.safe_load(cluster_hosts.EXAMPLES)
    return tasks


def test_examples_of_hosts(orders: Orders, tmp_path: Path) -> None:
    orders.kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    agents = Agents(orders.hub, NAMESPACE)
    agents.discover(hosts(2))
    orders.apply(nodes={"fc430": 2})
    prepare = {"step": "provision", "name": "demo", "namespace": orders.namespace}
    variables = {
        name: "{{ prepared.orders[0]." + name + " }}" for name in ("cluster_order", "cluster_provider", "cluster_lock", "node_requests")
    }
    defaults = {
        f"group/{COLLECTION}.cluster": {"cluster_order": "{{ cluster_order }}", "provider": "{{ cluster_provider }}"},
        f"group/{COLLECTION}.cluster_write": {"lock": "{{ cluster_lock }}"},
    }
    tasks = [
        {"name": "Before the examples", f"{COLLECTION}.cluster_order_prepare": prepare, "register": "prepared"},
        *({**task, "vars": variables, "module_defaults": defaults} for task in examples("cluster_hosts")),
    ]
    try:
        played = play(tmp_path, tasks, defaults={"kubeconfig": str(orders.hub.kubeconfig)})
    finally:
        orders.kube.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for name in (f"host-claims-agents-{NAMESPACE}", "host-claims-listed-lab-rack"):
            orders.kube.delete({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": SITE_NAMESPACE}})
    assert played.code == 0, played.output
    claimed = played["Claim the hosts of an order, in the install tasks of a template"]
    assert claimed.changed and claimed.result["hosts"] == {"fc430": ["host-000", "host-001"]}
    assert "agentLabelSelector" in str(played["Show the hosts and the selector of each NodePool"].result["msg"])
    released = played["Release the hosts of an order, in the delete tasks of a template"]
    assert released.result["released"] == ["host-000", "host-001"] and released.result["part"]["ready"]
    assert played["Claim a host of a list for a cluster without an order"].result["hosts"] == {"blade": ["blade-1"]}
