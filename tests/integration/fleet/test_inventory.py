"""The inventory of the fleet and the lookup of kubeconfigs, in Ansible on a real hub."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.inventory import fleet as fleet_plugin
from ansible_collections.openfleet.clusters.plugins.lookup import cluster_kubeconfig
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.model import API_VERSION, LABEL

from ..support.inventories import InventoryReader, environment, inventory_reader
from ..support.kubeconfigs import kubeconfig, put_kubeconfig, with_server, with_user
from ..support.samples import hosted_cluster, pull_secret

SECRET = "hunter2-do-not-show"  # noqa: S105
NAMESPACE = "dr"
WORKING = Names().working_namespace(NAMESPACE, "demo")


def secret_kubeconfig(hub: Access) -> Object:
    """The hub's own kubeconfig, with a certificate and a second secret to search for in output."""
    content = kubeconfig(hub)
    content["users"].append({"name": "other", "user": {"token": SECRET}})
    return content


@pytest.fixture(scope="module")
def fleet(hub: Access) -> Iterator[str]:
    """A namespace with three orders, one of them Ready, and a registry of two clusters, one of them ordered too."""
    kube = hub.kube
    # A worker may come back to this file while the namespaces of its first visit are still being deleted.
    until(lambda: not any(kube.find("v1", "Namespace", name) for name in (NAMESPACE, WORKING)), "no namespace is left of an earlier visit")
    namespaces = [kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})]
    for name, phase, extra in (
        (
            "demo",
            "Ready",
            {"apiURL": "https://demo:6443", "version": {"running": "4.17.0", "desired": "4.17.1", "availableUpdates": ["4.17.1"]}},
        ),
        ("new", "", {}),
        ("odd", "Failed", {"provider": {"type": "acme.cloud.metal"}}),
    ):
        labels = {"topology.kubernetes.io/region": "eu-west"} if name == "demo" else {}
        template = "acme.cloud.big" if name == "odd" else "openfleet.clusters.ocp_4_17_small"
        order = kube.create(
            {
                "apiVersion": "cloudkit.openshift.io/v1alpha1",
                "kind": "ClusterOrder",
                "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
                "spec": {"templateID": template, "templateParameters": json.dumps({"pull_secret": SECRET})},
            }
        )
        if name == "demo":
            labels = ClusterOrder.from_object(order).labels
            namespaces.append(kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WORKING, "labels": labels}}))
        if phase:
            kube.patch(order, {"status": {"phase": phase} | extra}, subresource="status")
    for item in (pull_secret(WORKING), hosted_cluster(WORKING, "demo")):
        kube.create(item)
    put_kubeconfig(kube, NAMESPACE, "east-kubeconfig", secret_kubeconfig(hub))
    clusters = [{"name": "east", "region": "eu-east", "kubeconfigSecret": {"name": "east-kubeconfig"}}]
    clusters.append({"name": "odd", "region": "moon", "kubeconfigSecret": {"name": "missing"}})
    metadata = {"name": "peers", "namespace": NAMESPACE}
    registry = kube.create({"apiVersion": API_VERSION, "kind": "ClusterRegistry", "metadata": metadata, "spec": {"clusters": clusters}})
    health = [{"name": "east", "reason": "Healthy", "reachable": True, "authenticated": True, "version": "v1.36.3"}]
    kube.patch(registry, {"status": {"clusters": health}}, subresource="status")
    until(
        lambda: hub.get("hostedcluster", "demo", "-n", WORKING).get("status", {}).get("kubeconfig"),
        "the stand-in has written and named the kubeconfig",
    )
    yield NAMESPACE
    for namespace in namespaces:
        kube.delete(namespace)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InventoryReader]:
    with inventory_reader(tmp_path_factory.mktemp("inventory")) as reading:
        yield reading


@pytest.fixture
def config(hub: Access, fleet: str) -> Object:
    return {"kubeconfig": str(hub.kubeconfig), "namespace": fleet}


def test_every_cluster_is_a_host_with_its_groups(hub: Access, reader: InventoryReader, config: Object) -> None:
    inventory = reader.read(**config)
    assert inventory["groups"] == {
        "ordered": ["demo.dr", "new.dr", "odd.dr"],
        "registered": ["east.dr", "odd.dr"],
        "phase_ready": ["demo.dr"],
        "phase_pending": ["new.dr"],
        "phase_failed": ["odd.dr"],
        "template_ocp_4_17_small": ["demo.dr", "new.dr"],
        "template_acme_cloud_big": ["odd.dr"],
        "provider_hypershift": ["demo.dr", "new.dr"],
        "provider_acme_cloud_metal": ["odd.dr"],
        "provider_registered": ["east.dr"],
        "region_eu_west": ["demo.dr"],
        "region_eu_east": ["east.dr"],
        "region_moon": ["odd.dr"],
    }
    demo, registered = inventory["hosts"]["demo.dr"], inventory["hosts"]["east.dr"]
    assert (demo["fleet_name"], demo["fleet_namespace"], demo["fleet_api_url"]) == ("demo", "dr", "https://demo:6443")
    assert (demo["fleet_running_version"], demo["fleet_desired_version"]) == ("4.17.0", "4.17.1")
    assert demo["fleet_available_updates"] == ["4.17.1"]
    assert demo["fleet_hub"] == {"kubeconfig": str(hub.kubeconfig)}
    assert inventory["hosts"]["new.dr"]["fleet_next_action"] == "provision"
    assert (registered["fleet_healthy"], registered["fleet_version"], registered["fleet_registry"]) == (True, "v1.36.3", "peers")
    assert inventory["hosts"]["odd.dr"]["fleet_kubeconfig_source"]["secret"] == "missing"  # noqa: S105


def ansible(folder: Path, command: str, *arguments: str, ok: bool = True) -> str:
    """The output of one of Ansible's commands."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / command), *arguments],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == ok, done.stdout
    return done.stdout


def test_play_reads_kubeconfigs_and_neither_output_nor_cache_has_a_secret(
    hub: Access, reader: InventoryReader, config: Object, tmp_path: Path
) -> None:
    inline = secret_kubeconfig(hub)
    (tmp_path / "cache").mkdir()
    cached = {"cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_connection": str(tmp_path / "cache")}
    (tmp_path / "fleet.yml").write_text(yaml.safe_dump({"plugin": "openfleet.clusters.fleet"} | config | cached))
    listed = ansible(tmp_path, "ansible-inventory", "-i", "fleet.yml", "--list", "-vvvv")
    examples = yaml.safe_load(cluster_kubeconfig.EXAMPLES)
    of_dr = "{{ read.orders | selectattr('metadata.namespace', '==', 'dr') | length }}"
    of_demo = "{{ lookup('openfleet.clusters.cluster_kubeconfig', 'demo.dr').clusters | length }}"
    book = {
        "hosts": "east.dr",
        "gather_facts": False,
        "vars": {"scratch": str(tmp_path)},
        "tasks": [
            {**examples[0], "register": "read"},
            {"name": "Count", "ansible.builtin.debug": {"msg": f"orders {of_dr}"}},
            *examples[1:],
            {"name": "Read that of an order", "ansible.builtin.debug": {"msg": f"clusters {of_demo}"}},
            {
                "name": "Name an unknown host",
                "ansible.builtin.debug": {"msg": "{{ lookup('openfleet.clusters.cluster_kubeconfig', 'unknown') }}"},
                "ignore_errors": True,
            },
        ],
    }
    (tmp_path / "play.yml").write_text(yaml.safe_dump([book]))
    played = ansible(tmp_path, "ansible-playbook", "-i", "fleet.yml", "play.yml", "-vvvv")
    assert "orders 3" in played
    assert "clusters 1" in played
    assert "unknown is not a host of the inventory" in " ".join(played.split()), played
    written = tmp_path / "east.kubeconfig"
    assert yaml.safe_load(written.read_text()) == inline
    assert written.stat().st_mode & 0o777 == 0o600
    files = [file.read_text() for file in (tmp_path / "cache").iterdir()]
    assert len(files) == 1
    key = inline["users"][0]["user"]["client-key-data"]
    for text in (listed, played, *files):
        assert SECRET not in text
        assert key not in text
    # The same with the credentials of the hub in the inventory file.
    inventory = reader.read(**config | cached | {"kubeconfig": inline})
    assert inventory["hosts"]["east.dr"]["fleet_hub"] == {}
    for text in (json.dumps(inventory), *(file.read_text() for file in (tmp_path / "cache").iterdir())):
        assert SECRET not in text
        assert key not in text


def test_cache_is_used_only_for_the_same_hub_and_query(hub: Access, reader: InventoryReader, config: Object, tmp_path: Path) -> None:
    private = tmp_path / "kubeconfig"
    private.write_bytes(hub.kubeconfig.read_bytes())
    config |= {"cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_connection": str(tmp_path / "cache")}
    config |= {"kubeconfig": str(private)}
    first = reader.read(**config)
    assert set(first["hosts"]) == {"demo.dr", "new.dr", "odd.dr", "east.dr"}
    # Without valid credentials only the cache can answer.
    private.write_text(yaml.safe_dump(with_user(hub, token="wrong")))  # noqa: S106
    assert reader.read(**config) == first
    assert "does not accept the credentials" in reader.read(use_cache=False, **config)["messages"]
    assert "does not accept the credentials" in reader.read(**config | {"sources": ["registries"]})["messages"]
    private.write_text(yaml.safe_dump(with_server(hub, f"https://127.0.0.1:{free_port()}")))
    assert "does not answer" in reader.read(**config)["messages"]
    private.write_bytes(hub.kubeconfig.read_bytes())
    assert set(reader.read(**config | {"sources": ["registries"]})["hosts"]) == {"east.dr", "odd.dr"}


def test_example_constructs_variables_and_groups(reader: InventoryReader, config: Object) -> None:
    config = yaml.safe_load(fleet_plugin.EXAMPLES) | config | {"cache": False}
    inventory = reader.read(**config)
    assert inventory["groups"]["needs_attention"] == ["odd.dr"]
    assert inventory["groups"]["version_v1_36_3"] == ["east.dr"]
    assert inventory["hosts"]["new.dr"]["site"] == "none"
    assert "Could not set site for host" in reader.read(**config | {"compose": {"site": "no_such_variable"}})["messages"]


def test_invalid_registry_is_skipped_with_a_warning(hub: Access, reader: InventoryReader) -> None:
    with fresh_namespace(hub) as namespace:
        for name, clusters in (("peers", "[{name: east, kubeconfigSecret: {name: east-kubeconfig}}]"), ("invalid", "- name: [")):
            metadata = {"name": name, "namespace": namespace, "labels": {LABEL: "true"}}
            hub.kube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"clusters": clusters}})
        config = {"kubeconfig": str(hub.kubeconfig), "namespace": namespace, "registry_kind": "ConfigMap", "sources": ["registries"]}
        inventory = reader.read(**config)
    assert set(inventory["hosts"]) == {f"east.{namespace}"}
    assert f"Skipped an invalid registry: ConfigMap {namespace}/invalid " in inventory["messages"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"namspace": "a"}, "The option namspace does not exist (did you mean namespace or site_namespace?)"),
        ({"sources": ["order"]}, "order"),
        ({"kubeconfig": "/no/such/file"}, "The kubeconfig /no/such/file cannot be read"),
        ({"host": "https://127.0.0.1:1", "api_key": "x"}, "https://127.0.0.1:1 does not answer"),
    ],
)
def test_bad_inventory_is_one_message(reader: InventoryReader, config: Object, changes: Object, message: str) -> None:
    assert message in reader.read(**config | changes)["messages"]


def test_error_is_printed_without_a_traceback(config: Object, tmp_path: Path) -> None:
    (tmp_path / "fleet.yml").write_text(yaml.safe_dump({"plugin": "openfleet.clusters.fleet", "namspace": "a"} | config))
    output = ansible(tmp_path, "ansible-inventory", "-i", "fleet.yml", "--list", ok=False)
    assert "The option namspace does not exist (did you mean namespace or site_namespace?)" in " ".join(output.split())
    assert "Traceback" not in output
