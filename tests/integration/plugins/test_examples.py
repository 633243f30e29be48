"""The examples in the modules' documentation, run as they are written: against a real hub, with real orders."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import StoreAccess
from ansible_collections.openfleet.clusters.plugins import modules
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names

from ..support.name_server import KEY_NAME, name_server
from ..support.orders import Orders
from ..support.playbooks import COLLECTION, Played, Task, play
from ..support.ramen import policies

ALL = sorted(file.stem for file in Path(next(iter(modules.__path__))).glob("*.py") if not file.stem.startswith("_"))
PULL_SECRET = json.dumps({"auths": {"registry.example.com": {"auth": "hunter2-do-not-show"}}})
WITHOUT_HUB = (
    *("cluster_order_proposal", "cluster_template_info", "vm_class_info"),
    *("platform_configuration_info", "platform_document_info", "platform_job"),
)
# As the examples call it.
NAMESPACE = "orders"
# What the playbooks set for the tasks of a template, from the result of the first task.
VARIABLES = {
    name: "{{ prepared.orders[0]." + name + " }}"
    for name in (
        "cluster_order",
        "cluster_working_namespace",
        "cluster_provider",
        "cluster_lock",
        "template_parameters",
        "node_requests",
        "cluster_site",
    )
}
DEFAULTS = {
    f"group/{COLLECTION}.cluster": {"cluster_order": "{{ cluster_order }}", "provider": "{{ cluster_provider }}"},
    f"group/{COLLECTION}.cluster_write": {"lock": "{{ cluster_lock }}"},
}
PREPARE = {
    "name": "Before the examples",
    f"{COLLECTION}.cluster_order_prepare": {"step": "provision", "name": "demo", "namespace": NAMESPACE},
    "register": "prepared",
}


@pytest.fixture
def orders(hub: Access) -> Iterator[None]:
    """The namespace of the examples, for one test."""
    for left in (NAMESPACE, working_namespace()):
        until(lambda name=left: hub.get("namespace", name) is None, f"the namespace {left} of an earlier test is deleted")
    hub.kubectl("create", "namespace", NAMESPACE)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "registries", "namespace": NAMESPACE}}
    hub.apply(secret | {"stringData": {".dockerconfigjson": PULL_SECRET}})
    yield
    for order in hub.get("clusterorders", "-n", NAMESPACE)["items"]:
        name = order["metadata"]["name"]
        hub.kubectl("patch", "clusterorder", name, "-n", NAMESPACE, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
        if hub.get("namespace", working_namespace(name)) is not None:
            hub.kubectl("patch", "namespace", working_namespace(name), "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
            hub.kubectl("delete", "namespace", working_namespace(name), "--wait=false")
    hub.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def examples(module: str) -> list[Task]:
    tasks: list[Task] = yaml.safe_load(importlib.import_module(f"ansible_collections.openfleet.clusters.plugins.modules.{module}").EXAMPLES)
    return tasks


def working_namespace(name: str = "demo") -> str:
    return Names().working_namespace(NAMESPACE, name)


def apply_order(hub: Access, name: str = "demo") -> None:
    spec = {"templateID": "ocp_4_17_small", "templateParameters": json.dumps({"pull_secret": PULL_SECRET})}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"team": "blue"}}
    hub.apply({"apiVersion": "cloudkit.openshift.io/v1alpha1", "kind": "ClusterOrder", "metadata": metadata, "spec": spec})


def run(hub: Access, folder: Path, tasks: list[Task], *options: str, **variables: Any) -> Played:
    event = {"action": "provision", "orders": [{"namespace": NAMESPACE, "name": "demo"}]}
    defaults = {"kubeconfig": str(hub.kubeconfig)}
    return play(folder, tasks, *options, defaults=defaults, secrets={"pull_secret": PULL_SECRET}, ansible_eda={"event": event}, **variables)


@pytest.mark.usefixtures("orders")
def test_examples_of_reading_and_locking(hub: Access, tmp_path: Path) -> None:
    apply_order(hub)
    apply_order(hub, "second")
    failure = {"reason": "TaskFailed", "message": "It broke.", "retryable": False, "attempts": 1}
    status = json.dumps({"status": {"phase": "Failed", "observedGeneration": 1, "failure": failure}})
    hub.kubectl("patch", "clusterorder", "second", "-n", NAMESPACE, "--subresource=status", "--type=merge", "-p", status)
    named = (
        "cluster_template_info",
        "vm_class_info",
        "cluster_lock",
        "cluster_lock_info",
        "cluster_order_info",
        "cluster_order_status",
        "cluster_order_upgrade",
        "cluster_profile_info",
    )
    played = run(hub, tmp_path, [task for module in named for task in examples(module)])
    assert played.code == 0, played.output
    # Leases outlive their orders, so another test may have counted before.
    token = played["Acquire the lock"].result["token"]
    assert token >= 1 and played["Change the cluster"].result["msg"] == f"Writes of this run carry the token {token}."
    assert played["Release the lock"].changed
    assert played["Release the locks of several orders"].result["released"] == ["orders/demo", "orders/second"]
    assert played["Show its holder"].result["msg"] == "free until now"
    assert played["Count the locks that are held"].result["msg"] in (0, "0")
    assert played["Show its phase"].result["msg"] == "no phase yet"
    assert "It broke." in played.output
    of_event = played["Update the orders of the event, or all orders"]
    assert [order["name"] for order in of_event.result["orders"]] == ["demo"]


@pytest.mark.usefixtures("orders")
def test_examples_of_a_run(hub: Access, tmp_path: Path) -> None:
    apply_order(hub)
    # Extra variables win over those that the example gives the role, so this run breaks where a template would.
    broken = run(hub, tmp_path, examples("cluster_order_finish"), "-e", json.dumps({"template_parameters": {}}))
    assert broken.code != 0
    assert "pull_secret" in broken["Write the failure, release the lock and fail"].message
    failure = hub.get("clusterorder", "demo", "-n", NAMESPACE)["status"]["failure"]
    assert "pull_secret" in failure["message"]

    def finish(name: str, of: str) -> Task:
        return {"name": name, f"{COLLECTION}.cluster_order_finish": {"step": "provision", "orders": "{{ " + of + ".orders }}"}}

    tasks = [
        *examples("cluster_order_prepare"),
        finish("After the examples of prepare", "of_event"),
        *examples("cluster_order_finish"),
        PREPARE,
        *({**task, "vars": VARIABLES, "module_defaults": DEFAULTS} for task in examples("cluster")[:2]),
        finish("After the examples", "prepared"),
        *examples("cluster_order_adopt"),
    ]
    played = run(hub, tmp_path, tasks)
    assert played.code == 0, played.output
    assert played["Show the skipped orders"].result["msg"] == []
    assert played["Write the status and release the lock"].result["orders"][0]["phase"] in ("Progressing", "Ready")
    made = played["Create the cluster of an order, in the install tasks of a template"]
    assert not made.changed  # the template has done the same already
    assert played["Adopt their clusters"].result["orders"] == [{"namespace": NAMESPACE, "name": "demo", "changed": False}]
    removed = played["Delete the cluster of an order, in the delete tasks of a template"]
    assert {item["action"] for item in removed.result["objects"]} == {"deleted"}
    assert "hunter2" not in played.output + broken.output


@pytest.mark.usefixtures("orders")
def test_examples_of_a_tenant(hub: Access, tmp_path: Path) -> None:
    runs = Orders(hub, NAMESPACE, tmp_path)

    def site() -> None:
        """Create the ordered cluster, and delete it with the order."""

        def scaled() -> bool:
            order = hub.get("clusterorder", "demo", "-n", NAMESPACE)
            return bool(order and order["spec"]["nodeRequests"][0]["numberOfNodes"] == 3)

        until(scaled, "the order is scaled")
        runs.provision()
        until(lambda: "deletionTimestamp" in hub.get("clusterorder", "demo", "-n", NAMESPACE)["metadata"], "the order is deleted")
        runs.remove()

    with ThreadPoolExecutor(1) as threads:
        working = threads.submit(site)
        played = run(hub, tmp_path, examples("cluster_order"))
        assert played.code == 0, played.output
        working.result()
    ordered = played["Scale the cluster to three nodes and wait"].result["order"]
    assert ordered["status"]["phase"] == "Ready"
    assert ordered["status"]["nodeSets"] == [{"resourceClass": "fc430", "requested": 3, "ready": 3}]
    assert "https://" in json.dumps(played["Show the URL of the cluster"].result)
    assert hub.get("clusterorder", "demo", "-n", NAMESPACE) is None
    assert hub.get("namespace", working_namespace()) is None
    assert "hunter2" not in played.output


def test_examples_of_registries(hub: Access, tmp_path: Path) -> None:
    hub.kubectl("create", "namespace", "dr")
    try:
        kubeconfig = f"--from-file=kubeconfig={hub.kubeconfig}"
        for name in ("east-kubeconfig", "west-admin"):
            hub.kubectl("create", "secret", "generic", name, "-n", "dr", kubeconfig)
        register, policy, check, show, *remove = examples("cluster_registry")
        with policies(hub):
            played = run(
                hub, tmp_path, [register, policy, check, show, *examples("cluster_registry_info"), *examples("dr_migration_info"), *remove]
            )
        assert hub.get("secret", "west-admin", "-n", "dr")
    finally:
        hub.kubectl("delete", "namespace", "dr", "--wait=false")
    assert played.code == 0, played.output
    # No host has the address of west.
    reasons = {"west": "Unreachable", "dr1": "SecretNotFound", "dr2": "SecretNotFound"}
    assert played["Show the unhealthy clusters"].result["msg"] == reasons
    assert played["Show the unreachable clusters"].result["msg"] == ["west"]
    assert played["Show the clusters whose credentials need attention"].result["msg"] == ["dr1", "dr2"]
    left = played["Show what is left to do"].result["msg"]
    assert left[0] == "Set dr_mode: acm, compare: true in ConfigMap dr/dr-settings."
    assert len(left) == 3
    assert played["Delete the registry and keep the Secrets"].changed


def test_examples_of_s3_coordination(s3: StoreAccess, tmp_path: Path) -> None:
    secrets = {"aws_access_key_id": s3.access_key, "aws_secret_access_key": s3.secret_key}
    boto3.client("s3", endpoint_url=s3.endpoint, region_name=s3.region, **secrets).create_bucket(Bucket="coordination")
    settings = {"AWS_ENDPOINT_URL_S3": s3.endpoint, "AWS_REGION": s3.region} | {name.upper(): value for name, value in secrets.items()}
    named = ("s3_coordination_check", "s3_state", "s3_decision", "s3_lock", "s3_history_info")
    played = play(tmp_path, [task for module in named for task in examples(module)], environment=settings)
    assert played.code == 0, played.output
    assert any("8 concurrent creates" in line for line in played["Show the table"].result["msg"])
    assert played["Write the intent, if the state has not changed since"].changed
    assert played["Show where the workload runs"].result["msg"] == "west"
    assert played["Show the leader"].result["msg"] == "no leader, the last epoch was 3"
    assert played["Show the steps"].result["msg"] == ["Completed", "Completed", "Inspected"]
    assert s3.secret_key not in played.output


@pytest.mark.usefixtures("orders")
def test_examples_of_addresses_and_names(hub: Access, tmp_path: Path) -> None:
    kinds = {
        "machine-networks": {"type": "Network", "ranges": ["10.20.0.0/16"], "prefixLength": 24},
        "vlans": {"type": "VLAN", "ranges": ["100-199"]},
        "load-balancers": {"type": "Address", "ranges": ["192.0.2.10-192.0.2.20"]},
    }
    about = {"apiVersion": "infrastructure.openfleet.io/v1alpha1", "kind": "AddressPool"}
    pools = [about | {"metadata": {"name": name, "namespace": "openfleet-system"}, "spec": spec} for name, spec in kinds.items()]
    made = [hub.kube.create(pool) for pool in pools]
    (tmp_path / "knot").mkdir()
    try:
        apply_order(hub)
        finish = {
            "name": "After the examples",
            f"{COLLECTION}.cluster_order_finish": {"step": "provision", "orders": "{{ prepared.orders }}"},
        }
        allocate, *others = examples("cluster_addresses")
        in_template = {**allocate, "vars": VARIABLES, "module_defaults": DEFAULTS}
        played = run(hub, tmp_path, [PREPARE, in_template, *others, finish])
        assert played.code == 0, played.output
        assert played["Show the machine network"].result["msg"] == "10.20.0.0/24"
        assert played["Release them when the cluster is deleted"].changed
        with name_server(tmp_path / "knot") as server:
            secret = {"name": KEY_NAME, "secret": server.key}
            hub.kubectl(
                "create", "secret", "generic", "dns-key", "-n", "openfleet-system", *(f"--from-literal={k}={v}" for k, v in secret.items())
            )
            played = run(
                hub, tmp_path, examples("cluster_dns_records"), dns_server={"server": "127.0.0.1", "port": server.port, "secret": "dns-key"}
            )
            hub.kubectl("delete", "secret", "dns-key", "-n", "openfleet-system")
        assert played.code == 0, played.output
        assert played["Show what is not visible yet"].result["msg"] == []
        assert played["Delete the records of the cluster"].changed
    finally:
        for pool in made:
            hub.kube.delete(pool)


def test_no_example_is_left_out() -> None:
    """Tests that run examples name every module, so that those of a new one are run as well."""
    texts = (file.read_text(encoding="utf-8") for file in Path(__file__).parents[1].rglob("test_*.py"))
    running = "".join(text for text in texts if "examples(" in text)
    assert [name for name in ALL if f'"{name}"' not in running] == []


def test_documentation_can_be_read_on_a_terminal(tmp_path: Path) -> None:
    settings = {"ANSIBLE_COLLECTIONS_PATH": str(Path(sys.prefix) / "collections"), "HOME": str(tmp_path)}
    command = [str(Path(sys.executable).parent / "ansible-doc"), "-t", "module", "--json", *(f"{COLLECTION}.{name}" for name in ALL)]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    documented = json.loads(done.stdout)
    assert sorted(documented) == [f"{COLLECTION}.{name}" for name in ALL]
    for name, parts in documented.items():
        assert parts["doc"]["options"], name
        assert parts["doc"]["has_action"], name
        assert parts["examples"], name
        assert parts["return"], name
        if name.startswith(f"{COLLECTION}.s3_"):
            assert {"bucket", "endpoint_url"} <= parts["doc"]["options"].keys(), name
        elif name.removeprefix(f"{COLLECTION}.") not in WITHOUT_HUB:
            assert {"kubeconfig"} <= parts["doc"]["options"].keys(), name
