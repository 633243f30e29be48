"""The modules of registries and the inventory of the fleet, as a user has them: with ansible-playbook, against a real hub."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.inventory import fleet as fleet_plugin
from ansible_collections.openfleet.clusters.plugins.lookup import cluster_kubeconfig

from ..support.playbooks import Played, Task, play, task
from ..support.ramen import policies
from ..support.samples import hosted_cluster, pull_secret

Object = dict[str, Any]
SECRET = "hunter2-do-not-show"  # noqa: S105
FORMS = ("ClusterRegistry", "ConfigMap")


def run(hub: Access, folder: Path, tasks: list[Task], *options: str) -> Played:
    return play(folder, tasks, *options, defaults={"kubeconfig": str(hub.kubeconfig)})


def put_secret(hub: Access, namespace: str, name: str, kubeconfig: Any) -> None:
    text = kubeconfig if isinstance(kubeconfig, str) else json.dumps(kubeconfig)
    data = {"kubeconfig": base64.b64encode(text.encode()).decode()}
    hub.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data})


def kubeconfig_of(hub: Access) -> Object:
    """The hub's own, with a certificate and something secret besides that can be looked for in output."""
    read: Object = yaml.safe_load(hub.kubeconfig.read_text())
    read["users"].append({"name": "other", "user": {"token": SECRET}})
    return read


def silent(hub: Access) -> Object:
    made = kubeconfig_of(hub)
    made["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{free_port()}"
    return made


@pytest.mark.parametrize("kind", FORMS)
def test_register_check_and_take_out_each_once(hub: Access, namespace: str, tmp_path: Path, kind: str) -> None:
    put_secret(hub, namespace, "east-kubeconfig", kubeconfig_of(hub))
    put_secret(hub, namespace, "west-admin", silent(hub))
    names = {"name": "peers", "namespace": namespace, "kind": kind}
    east, west = {"name": "east", "region": "eu-east"}, {"name": "west", "kubeconfig_secret": "west-admin"}
    address = kubeconfig_of(hub)["clusters"][0]["cluster"]["server"]
    played = run(
        hub,
        tmp_path,
        [
            task("cluster_registry", "predicted", check=True, clusters=[east, west], **names),
            task("cluster_registry_info", "none yet", **{key: names[key] for key in names}),
            task("cluster_registry", "registered", clusters=[east, west], **names),
            task("cluster_registry", "again", clusters=[west, east], **names),
            task("cluster_registry", "one more thing", clusters=[{"name": "east", "endpoint": address}], **names),
            task("cluster_registry", "check predicted", check=True, state="checked", **names),
            task("cluster_registry_info", "never looked at", **names),
            task("cluster_registry", "checked", state="checked", **names),
            task("cluster_registry", "checked again", state="checked", **names),
            task("cluster_registry_info", "told", namespace=namespace, kind=kind),
            task("cluster_registry", "out predicted", check=True, state="absent", clusters=[{"name": "west"}], **names),
            task("cluster_registry", "out", state="absent", clusters=[{"name": "west"}], **names),
            task("cluster_registry", "out again", state="absent", clusters=[{"name": "west"}], **names),
            task("cluster_registry", "checked after", state="checked", **names),
            task("cluster_registry", "nothing out", state="absent", clusters=[], **names),
            task("cluster_registry", "removal predicted", check=True, state="absent", **names),
            task("cluster_registry", "removed", state="absent", **names),
            task("cluster_registry", "removed again", state="absent", **names),
        ],
    )
    changed = {name: answer.changed for name, answer in played.answers.items() if not answer.failed}
    assert changed == {
        "predicted": True,
        "none yet": False,
        "registered": True,
        "again": False,
        "one more thing": True,
        "check predicted": True,
        "never looked at": False,
        "checked": True,
        "checked again": False,
        "told": False,
        "out predicted": True,
        "out": True,
        "out again": False,
        "checked after": True,
        "nothing out": False,
        "removal predicted": True,
        "removed": True,
        "removed again": False,
    }, played.output
    assert played["none yet"].result["registries"] == []
    assert played["predicted"].result["registry"] == played["registered"].result["registry"]
    assert "+- name: east" in played.output
    (told,) = played["told"].result["registries"]
    assert told == played["checked again"].result["registry"]
    found = {cluster["name"]: cluster for cluster in told["clusters"]}
    assert found["east"]["endpoint"] == address
    assert (found["east"]["healthy"], found["east"]["reason"], found["east"]["region"]) == (True, "Healthy", "eu-east")
    assert found["east"]["last_seen"]
    assert found["east"]["credentials_expire"]
    assert (found["west"]["healthy"], found["west"]["reason"], found["west"]["last_seen"]) == (False, "Unreachable", None)
    assert played["checked"].result["unhealthy"] == ["west"]
    assert [cluster["healthy"] for cluster in played["never looked at"].result["registries"][0]["clusters"]] == [None, None]
    assert [cluster["name"] for cluster in played["checked after"].result["registry"]["clusters"]] == ["east"]
    assert hub.get("secret", "east-kubeconfig", "-n", namespace)
    assert SECRET not in played.output


def test_columns_tell_how_many_are_well(hub: Access, namespace: str, tmp_path: Path) -> None:
    put_secret(hub, namespace, "east-kubeconfig", kubeconfig_of(hub))
    names = {"name": "peers", "namespace": namespace}
    clusters = [{"name": "east"}, {"name": "missing"}]
    tasks = [
        task("cluster_registry", "registered", clusters=clusters, **names),
        task("cluster_registry", "checked", state="checked", **names),
    ]
    run(hub, tmp_path, tasks).fine("checked")
    shown = hub.kubectl("get", "creg", "-n", namespace).stdout
    assert [word.strip() for word in shown.splitlines()[0].split("  ") if word.strip()] == ["NAME", "HEALTHY", "CLUSTERS", "AGE"]
    assert "peers   False     1 of 2 healthy; SecretNotFound: missing" in shown


def test_credentials_that_expire_soon_are_warned_about(hub: Access, namespace: str, tmp_path: Path) -> None:
    hub.kubectl("create", "serviceaccount", "ramen", "-n", namespace)
    binding = f"{namespace}-ramen"
    hub.kubectl("create", "clusterrolebinding", binding, "--clusterrole=view", f"--serviceaccount={namespace}:ramen")
    made = kubeconfig_of(hub)
    made["users"][0]["user"] = {"token": hub.kubectl("create", "token", "ramen", "-n", namespace, "--duration=48h").stdout.strip()}
    put_secret(hub, namespace, "east-kubeconfig", made)
    names = {"name": "peers", "namespace": namespace}
    tasks = [
        task("cluster_registry", "registered", clusters=[{"name": "east"}], **names),
        task("cluster_registry", "checked", state="checked", **names),
    ]
    played = run(hub, tmp_path, tasks)
    assert played["checked"].result["unhealthy"] == []
    assert "[WARNING]: Cluster east: The token expires on" in " ".join(played.output.split())
    hub.kubectl("delete", "clusterrolebinding", binding)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"clusters": [{"name": "East"}]}, "'East' cannot be a cluster's name"),
        ({"clusters": [{"name": "a"}, {"name": "a"}]}, "named twice"),
        ({"clusters": [{"name": "a", "endpoint": "http://a"}]}, "endpoint of cluster a"),
        ({"clusters": [{"region": "a"}]}, "missing required arguments: name"),
        ({"state": "checked"}, "There is no ClusterRegistry"),
        ({"state": "checked", "clusters": []}, "leave clusters out"),
        ({"state": "absent", "dr_policy": "metro"}, "dr_policy is for state=present"),
        ({"state": "checked", "timeout": 0}, "one second at least"),
        ({"dr_policy": "no-such-policy"}, "DRPolicy"),
        ({"namespace": "no-such-namespace", "clusters": [{"name": "a"}]}, "no-such-namespace"),
        ({"name": "../x", "clusters": [{"name": "a"}]}, "cannot be the name"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(
    hub: Access, namespace: str, bad_input: dict[str, str], arguments: Object, said: str
) -> None:
    assert said in bad_input[json.dumps(arguments)]
    assert hub.get("clusterregistries", "-n", namespace)["items"] == []


@pytest.fixture(scope="module")
def bad_input(hub: Access, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said to each of the cases of the test above, from one run for all."""
    (marker,) = (mark for mark in test_bad_input_is_one_sentence_and_changes_nothing.pytestmark if mark.name == "parametrize")
    cases = [arguments for arguments, _said in marker.args[1]]
    tasks = [task("cluster_registry", json.dumps(case), **({"name": "peers", "namespace": "default"} | case)) for case in cases]
    played = run(hub, tmp_path_factory.mktemp("bad"), tasks)
    return {json.dumps(case): played[json.dumps(case)].message for case in cases}


def test_config_map_of_somebody_else_is_left_alone(hub: Access, namespace: str, tmp_path: Path) -> None:
    data = {"clusters": "[]", "setting": "1"}
    hub.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": namespace}, "data": data})
    names = {"name": "theirs", "namespace": namespace, "kind": "ConfigMap"}
    tasks = [
        task("cluster_registry", "add", clusters=[{"name": "a"}], **names),
        task("cluster_registry", "check", state="checked", **names),
        task("cluster_registry", "remove", state="absent", **names),
    ]
    played = run(hub, tmp_path, tasks)
    assert all("lacks the label" in played[name].message for name in ("add", "check", "remove"))
    assert hub.get("configmap", "theirs", "-n", namespace)["data"] == data


def test_clusters_of_a_policy_are_registered_with_their_regions(hub: Access, namespace: str, tmp_path: Path) -> None:
    names = {"name": "peers", "namespace": namespace}
    tasks = [
        task("cluster_registry", "found", dr_policy="metro", clusters=[{"name": "dr2", "kubeconfig_secret": "special"}], **names),
        task("cluster_registry", "again", dr_policy="metro", **names),
        task("cluster_registry", "half", dr_policy="broken", **names),
    ]
    with policies(hub):
        played = run(hub, tmp_path, tasks)
    clusters = played.fine("found").result["registry"]["clusters"]
    assert [(item["name"], item["region"], item["kubeconfig_secret"]) for item in clusters] == [
        ("dr1", "north", "dr1-kubeconfig"),
        ("dr2", "south", "special"),
    ]
    assert not played.fine("again").changed
    assert "names the cluster dr3, of which there is no DRCluster" in played["half"].message


# ------------------------------------------------------------------------------------------------------------------- the fleet


@pytest.fixture(scope="module")
def fleet(quick_hub: Access) -> Iterator[str]:
    """A namespace of the hub with two orders, one of them carried out, and a registry of two clusters, one of them ordered too."""
    namespace, api = "dr", "cloudkit.openshift.io/v1alpha1"
    quick_hub.kubectl("create", "namespace", namespace)
    quick_hub.kubectl("create", "namespace", f"{namespace}-demo")
    for name, phase, extra in (
        ("demo", "Ready", {"apiURL": "https://demo:6443"}),
        ("new", "", {}),
        ("odd", "Failed", {"provider": {"type": "acme.cloud.metal"}}),
    ):
        labels = {"topology.kubernetes.io/region": "eu-west"} if name == "demo" else {}
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        template = "acme.cloud.big" if name == "odd" else "openfleet.clusters.ocp_4_17_small"
        spec = {"templateID": template, "templateParameters": json.dumps({"pull_secret": SECRET})}
        quick_hub.apply({"apiVersion": api, "kind": "ClusterOrder", "metadata": metadata, "spec": spec})
        if phase:
            status = json.dumps({"status": {"phase": phase} | extra})
            quick_hub.kubectl("patch", "cord", name, "-n", namespace, "--subresource=status", "--type=merge", "-p", status)
    quick_hub.apply(pull_secret(f"{namespace}-demo"), hosted_cluster(f"{namespace}-demo", "demo"))
    put_secret(quick_hub, namespace, "east-kubeconfig", kubeconfig_of(quick_hub))
    clusters = [{"name": "east", "region": "eu-east", "kubeconfigSecret": {"name": "east-kubeconfig"}}]
    clusters.append({"name": "odd", "region": "moon", "kubeconfigSecret": {"name": "missing"}})
    registry = {"apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "ClusterRegistry", "spec": {"clusters": clusters}}
    quick_hub.apply(registry | {"metadata": {"name": "peers", "namespace": namespace}})
    health = [{"name": "east", "reason": "Healthy", "reachable": True, "authenticated": True, "version": "v1.36.3"}]
    status = json.dumps({"status": {"clusters": health}})
    quick_hub.kubectl("patch", "creg", "peers", "-n", namespace, "--subresource=status", "--type=merge", "-p", status)
    until(lambda: quick_hub.get("secret", "demo-admin-kubeconfig", "-n", f"{namespace}-demo"), "the stand-in has written its kubeconfig")
    until(
        lambda: quick_hub.get("hostedcluster", "demo", "-n", f"{namespace}-demo").get("status", {}).get("kubeconfig"),
        "the stand-in has named its kubeconfig",
    )
    yield namespace
    for name in (namespace, f"{namespace}-demo"):
        quick_hub.kubectl("delete", "namespace", name, "--wait=false")


class Ansible:
    """The commands of Ansible with an inventory of the fleet in a folder of their own."""

    def __init__(self, folder: Path, hub: Access, **config: Any) -> None:
        self.folder = folder
        self.said = ""
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))} | {
            "HOME": str(folder),
            "ANSIBLE_COLLECTIONS_PATH": str(Path(sys.prefix) / "collections"),
            "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",
            "ANSIBLE_NOCOLOR": "1",
        }
        self.write({"kubeconfig": str(hub.kubeconfig)} | config)

    def write(self, config: Object) -> None:
        (self.folder / "fleet.yml").write_text(yaml.safe_dump({"plugin": "openfleet.clusters.fleet"} | config))

    def __call__(self, command: str, *arguments: str, ok: bool = True) -> str:
        done = subprocess.run(
            [str(Path(sys.executable).parent / command), *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        self.said = done.stdout + done.stderr
        assert (done.returncode == 0) == ok, self.said
        return done.stdout if ok else self.said

    def listed(self) -> Object:
        told: Object = json.loads(self("ansible-inventory", "-i", "fleet.yml", "--list"), object_hook=_plain)
        return told


def _plain(value: Object) -> Any:
    """What comes from a hub is no template, and Ansible marks it so."""
    return value.get("__ansible_unsafe", value)


def test_every_cluster_is_a_host_with_its_groups(quick_hub: Access, fleet: str, tmp_path: Path) -> None:
    told = Ansible(tmp_path, quick_hub, namespace=fleet).listed()
    hosts = told.pop("_meta")["hostvars"]
    members = {name: group["hosts"] for name, group in told.items() if "hosts" in group}
    assert members == {
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
    demo, registered = hosts["demo.dr"], hosts["east.dr"]
    assert (demo["fleet_name"], demo["fleet_namespace"], demo["fleet_api_url"]) == ("demo", "dr", "https://demo:6443")
    assert demo["fleet_hub"] == {"kubeconfig": str(quick_hub.kubeconfig)}
    assert (registered["fleet_healthy"], registered["fleet_version"], registered["fleet_registry"]) == (True, "v1.36.3", "peers")
    assert hosts["odd.dr"]["fleet_kubeconfig_source"]["secret"] == "missing"  # noqa: S105


def test_play_gets_kubeconfigs_and_neither_list_nor_cache_has_a_secret(quick_hub: Access, fleet: str, tmp_path: Path) -> None:
    inline = kubeconfig_of(quick_hub)
    (tmp_path / "cache").mkdir()
    cached = {"cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_connection": str(tmp_path / "cache")}
    ansible = Ansible(tmp_path, quick_hub, namespace=fleet, **cached)
    listed = ansible("ansible-inventory", "-i", "fleet.yml", "--list", "-vvvv")
    examples = yaml.safe_load(cluster_kubeconfig.EXAMPLES)
    of_demo = "{{ lookup('openfleet.clusters.cluster_kubeconfig', 'demo.dr').clusters | length }}"
    book = {
        "hosts": "east.dr",
        "gather_facts": False,
        "vars": {"scratch": str(tmp_path)},
        "tasks": [
            {**examples[0], "register": "asked"},
            {"name": "Count", "ansible.builtin.debug": {"msg": "orders {{ asked.orders | length }}"}},
            *examples[1:],
            {"name": "That of an order", "ansible.builtin.debug": {"msg": f"clusters {of_demo}"}},
            {
                "name": "Name one that is none",
                "ansible.builtin.debug": {"msg": "{{ lookup('openfleet.clusters.cluster_kubeconfig', 'nobody') }}"},
                "ignore_errors": True,
            },
        ],
    }
    (tmp_path / "play.yml").write_text(yaml.safe_dump([book]))
    ansible("ansible-playbook", "-i", "fleet.yml", "play.yml", "-vvvv")
    played = ansible.said
    assert "orders 3" in played
    assert "clusters 1" in played
    assert "nobody is no host of the inventory" in " ".join(played.split()), played
    written = tmp_path / "east.kubeconfig"
    assert yaml.safe_load(written.read_text()) == inline
    assert written.stat().st_mode & 0o777 == 0o600
    files = [file.read_text() for file in (tmp_path / "cache").iterdir()]
    assert len(files) == 1
    key = inline["users"][0]["user"]["client-key-data"]
    for text in (listed, played, *files):
        assert SECRET not in text
        assert key not in text
    # The same with the hub's credentials in the file itself.
    ansible.write({"kubeconfig": inline, "namespace": fleet} | cached)
    told = ansible.listed()
    assert told["_meta"]["hostvars"]["east.dr"]["fleet_hub"] == {}
    for text in (json.dumps(told), *(file.read_text() for file in (tmp_path / "cache").iterdir())):
        assert SECRET not in text
        assert key not in text


def test_cache_spares_the_hub_and_is_left_aside_for_another(quick_hub: Access, hub: Access, fleet: str, tmp_path: Path) -> None:
    private = tmp_path / "kubeconfig"
    private.write_bytes(quick_hub.kubeconfig.read_bytes())
    cached = {"cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_connection": str(tmp_path / "cache"), "namespace": fleet}
    ansible = Ansible(tmp_path, Access(private), **cached)
    first = ansible.listed()
    # The same hub without credentials: only what is cached can be told.
    powerless = yaml.safe_load(private.read_text())
    powerless["users"][0]["user"] = {"token": "wrong"}
    private.write_text(yaml.safe_dump(powerless))
    assert ansible.listed() == first
    assert "does not accept the credentials" in ansible("ansible-inventory", "-i", "fleet.yml", "--list", "--flush-cache", ok=False)
    ansible.write({"kubeconfig": str(hub.kubeconfig)} | cached)
    assert "demo.dr" not in ansible.listed()["_meta"]["hostvars"]
    ansible.write({"kubeconfig": str(quick_hub.kubeconfig), **cached, "sources": ["registries"]})
    assert set(ansible.listed()["_meta"]["hostvars"]) == {"east.dr", "odd.dr"}


def test_example_constructs_variables_and_groups(quick_hub: Access, fleet: str, tmp_path: Path) -> None:
    config = yaml.safe_load(fleet_plugin.EXAMPLES) | {"namespace": fleet, "cache": False}
    ansible = Ansible(tmp_path, quick_hub, **config)
    told = ansible.listed()
    assert told["needs_attention"]["hosts"] == ["odd.dr"]
    assert told["version_v1_36_3"]["hosts"] == ["east.dr"]
    assert told["_meta"]["hostvars"]["new.dr"]["site"] == "nowhere"
    ansible.write({"kubeconfig": str(quick_hub.kubeconfig), **config, "compose": {"site": "no_such_variable"}})
    assert "Could not set site for host" in ansible("ansible-inventory", "-i", "fleet.yml", "--list", ok=False)


def test_registries_that_cannot_be_read_hide_no_other(quick_hub: Access, tmp_path: Path) -> None:
    good = yaml.safe_dump([{"name": "east", "kubeconfigSecret": {"name": "east-kubeconfig"}}])
    broken = {"no-yaml": "- name: [", "no-secret": "- name: east", "no-list": "east"}
    with fresh_namespace(quick_hub) as theirs, fresh_namespace(quick_hub) as ours:
        for namespace, name, clusters in ((ours, "peers", good), *((theirs, name, text) for name, text in broken.items())):
            metadata = {"name": name, "namespace": namespace, "labels": {"ramendr.openshift.io/cluster-registry": "true"}}
            quick_hub.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"clusters": clusters}})
        one = {"name": "no-yaml", "namespace": theirs, "kind": "ConfigMap"}
        tasks = [
            task("cluster_registry_info", "all", kind="ConfigMap"),
            task("cluster_registry_info", "one", **one),
            task("cluster_registry", "write to it", clusters=[{"name": "west"}], **one),
        ]
        played = run(quick_hub, tmp_path, tasks)
        ansible = Ansible(tmp_path, quick_hub, registry_kind="ConfigMap", sources=["registries"])
        assert set(ansible.listed()["_meta"]["hostvars"]) == {f"east.{ours}"}
        assert quick_hub.get("configmap", "no-yaml", "-n", theirs)["data"] == {"clusters": broken["no-yaml"]}
    told = played.fine("all").result
    assert [registry["namespace"] for registry in told["registries"]] == [ours]
    for name in broken:
        for said in (ansible.said, played.output):
            assert f"A registry is left out: ConfigMap {theirs}/{name} " in " ".join(said.split())
    for name in ("one", "write to it"):
        assert f"ConfigMap {theirs}/no-yaml has below clusters what is no YAML" in played[name].message


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"namspace": "a"}, "There is no option namspace (did you mean namespace?)"),
        ({"sources": ["order"]}, "order"),
        ({"kubeconfig": "/no/such/file"}, "The kubeconfig /no/such/file cannot be read"),
        ({"host": "https://127.0.0.1:1", "api_key": "x"}, "https://127.0.0.1:1 does not answer"),
    ],
)
def test_bad_inventory_is_one_message(quick_hub: Access, tmp_path: Path, config: Object, said: str) -> None:
    told = Ansible(tmp_path, quick_hub, **config)("ansible-inventory", "-i", "fleet.yml", "--list", ok=False)
    assert said in " ".join(told.split())
    assert "Traceback" not in told
