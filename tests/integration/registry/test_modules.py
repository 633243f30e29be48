"""The modules of registries on a real hub: repeated, in check mode, with errors. One playbook shows them in Ansible itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.model import API_VERSION, LABEL

from ..support.actions import answer
from ..support.kubeconfigs import create_account, create_token, kubeconfig, put_kubeconfig, with_server, with_user
from ..support.playbooks import Answer, play, task
from ..support.ramen import policies

Task = Callable[..., Answer]
SECRET = "hunter2-do-not-show"  # noqa: S105
FORMS = ("ClusterRegistry", "ConfigMap")


@pytest.fixture
def run(hub: Access) -> Task:
    """Runs a task on the hub."""

    def run_task(module: str, *, check: bool = False, **arguments: Any) -> Answer:
        return answer(module, check=check, kubeconfig=str(hub.kubeconfig), **arguments)

    return run_task


def closed_port(hub: Access) -> Object:
    """The kubeconfig of a cluster that does not answer."""
    return with_server(hub, f"https://127.0.0.1:{free_port()}")


def test_playbook_shows_diff_and_warnings_and_no_secret(hub: Access, namespace: str, tmp_path: Path) -> None:
    create_account(hub.kube, namespace, "ramen")
    expiring = with_user(hub, token=create_token(hub.kube, namespace, "ramen", hours=48))
    expiring["users"].append({"name": "other", "user": {"token": SECRET}})
    put_kubeconfig(hub.kube, namespace, "east-kubeconfig", expiring)
    names = {"name": "peers", "namespace": namespace}
    tasks = [
        task("cluster_registry", "register", clusters=[{"name": "east"}, {"name": "missing"}], **names),
        task("cluster_registry", "check", state="checked", **names),
        task("cluster_registry_info", "read", **names),
    ]
    played = play(tmp_path, tasks, defaults={"kubeconfig": str(hub.kubeconfig)})
    assert "+- name: east" in played.output
    assert played.fine("check").result["unhealthy"] == ["missing"]
    assert "[WARNING]: Cluster east: The token expires on" in " ".join(played.output.split())
    assert played.fine("read").result["registries"] == [played["check"].result["registry"]]
    assert SECRET not in played.output
    assert expiring["users"][0]["user"]["token"] not in played.output
    shown = hub.kubectl("get", "creg", "-n", namespace).stdout
    assert [word.strip() for word in shown.splitlines()[0].split("  ") if word.strip()] == ["NAME", "HEALTHY", "CLUSTERS", "AGE"]
    assert "peers   False     1 of 2 healthy; CredentialsExpiring: east; SecretNotFound: missing" in shown


@pytest.mark.parametrize("kind", FORMS)
def test_clusters_are_registered_checked_and_removed_once(hub: Access, run: Task, namespace: str, kind: str) -> None:
    put_kubeconfig(hub.kube, namespace, "east-kubeconfig", kubeconfig(hub))
    put_kubeconfig(hub.kube, namespace, "west-admin", closed_port(hub))
    address = kubeconfig(hub)["clusters"][0]["cluster"]["server"]

    def changed(module: str, *, check: bool = False, **arguments: Any) -> tuple[bool, Object]:
        done = run(module, check=check, name="peers", namespace=namespace, kind=kind, **arguments)
        assert not done.failed, done.result
        return done.changed, done.result

    east, west = {"name": "east", "region": "eu-east"}, {"name": "west", "kubeconfig_secret": "west-admin"}
    predicted = changed("cluster_registry", check=True, clusters=[east, west])
    assert changed("cluster_registry_info")[1]["registries"] == []
    registered = changed("cluster_registry", clusters=[east, west])
    assert registered[0]
    assert registered[1]["registry"] == predicted[1]["registry"]
    assert not changed("cluster_registry", clusters=[west, east])[0]
    assert changed("cluster_registry", clusters=[{"name": "east", "endpoint": address}])[0]

    assert changed("cluster_registry", check=True, state="checked")[0]
    unchecked = changed("cluster_registry_info")[1]["registries"][0]
    assert [cluster["healthy"] for cluster in unchecked["clusters"]] == [None, None]
    first = changed("cluster_registry", state="checked")
    assert (first[0], first[1]["unhealthy"]) == (True, ["west"])
    again = changed("cluster_registry", state="checked")
    assert not again[0]
    (listed,) = run("cluster_registry_info", namespace=namespace, kind=kind).result["registries"]
    assert listed == again[1]["registry"]
    health = {cluster["name"]: cluster for cluster in listed["clusters"]}
    assert health["east"]["endpoint"] == address
    assert (health["east"]["healthy"], health["east"]["reason"], health["east"]["region"]) == (True, "Healthy", "eu-east")
    assert health["east"]["last_seen"]
    assert health["east"]["credentials_expire"]
    assert (health["west"]["healthy"], health["west"]["reason"], health["west"]["last_seen"]) == (False, "Unreachable", None)

    removal = {"state": "absent", "clusters": [{"name": "west"}]}
    assert changed("cluster_registry", check=True, **removal)[0]
    assert changed("cluster_registry", **removal)[0]
    assert not changed("cluster_registry", **removal)[0]
    checked = changed("cluster_registry", state="checked")
    assert checked[0]
    assert [cluster["name"] for cluster in checked[1]["registry"]["clusters"]] == ["east"]
    assert not changed("cluster_registry", state="absent", clusters=[])[0]
    assert changed("cluster_registry", check=True, state="absent")[0]
    assert changed("cluster_registry", state="absent")[0]
    assert not changed("cluster_registry", state="absent")[0]
    assert hub.get("secret", "east-kubeconfig", "-n", namespace)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"clusters": [{"name": "East"}]}, "'East' is not a valid cluster name"),
        ({"clusters": [{"name": "a"}, {"name": "a"}]}, "named twice"),
        ({"clusters": [{"name": "a", "endpoint": "http://a"}]}, "endpoint of cluster a"),
        ({"clusters": [{"region": "a"}]}, "missing required arguments: name"),
        ({"state": "checked"}, "peers does not exist"),
        ({"state": "checked", "clusters": []}, "remove clusters"),
        ({"state": "absent", "dr_policy": "metro"}, "dr_policy needs state=present"),
        ({"state": "checked", "timeout": 0}, "at least 1 second"),
        ({"dr_policy": "no-such-policy"}, "DRPolicy"),
        ({"namespace": "no-such-namespace", "clusters": [{"name": "a"}]}, "no-such-namespace"),
        ({"name": "../x", "clusters": [{"name": "a"}]}, "cannot be the name"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(hub: Access, run: Task, namespace: str, arguments: Object, message: str) -> None:
    assert message in run("cluster_registry", **{"name": "peers", "namespace": namespace} | arguments).message
    assert hub.kube.list_all(API_VERSION, "ClusterRegistry", namespace) == []


def config_map(namespace: str, name: str, data: dict[str, str], **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, "labels": labels}, "data": data}


def test_config_map_without_the_label_is_not_changed(hub: Access, run: Task, namespace: str) -> None:
    data = {"clusters": "[]", "setting": "1"}
    hub.kube.create(config_map(namespace, "theirs", data))
    names = {"name": "theirs", "namespace": namespace, "kind": "ConfigMap"}
    for arguments in ({"clusters": [{"name": "a"}]}, {"state": "checked"}, {"state": "absent"}):
        assert "lacks the label" in run("cluster_registry", **names, **arguments).message
    assert hub.kube.get("v1", "ConfigMap", "theirs", namespace)["data"] == data


def test_clusters_of_a_policy_are_registered_with_their_regions(hub: Access, run: Task, namespace: str) -> None:
    names = {"name": "peers", "namespace": namespace}
    with policies(hub):
        first = run("cluster_registry", dr_policy="metro", clusters=[{"name": "dr2", "kubeconfig_secret": "special"}], **names)
        again = run("cluster_registry", dr_policy="metro", **names)
        broken = run("cluster_registry", dr_policy="broken", **names)
    assert [(item["name"], item["region"], item["kubeconfig_secret"]) for item in first.result["registry"]["clusters"]] == [
        ("dr1", "north", "dr1-kubeconfig"),
        ("dr2", "south", "special"),
    ]
    assert (again.failed, again.changed) == (False, False)
    assert "names the cluster dr3, which has no DRCluster" in broken.message


def test_invalid_registry_hides_no_other(hub: Access, run: Task) -> None:
    invalid = {"no-yaml": "- name: [", "no-secret": "- name: east", "no-list": "east"}
    valid = "[{name: east, kubeconfigSecret: {name: east-kubeconfig}}]"
    with fresh_namespace(hub) as theirs, fresh_namespace(hub) as ours:
        hub.kube.create(config_map(ours, "peers", {"clusters": valid}, **{LABEL: "true"}))
        for name, clusters in invalid.items():
            hub.kube.create(config_map(theirs, name, {"clusters": clusters}, **{LABEL: "true"}))
        listed = run("cluster_registry_info", kind="ConfigMap").result
        one = {"name": "no-yaml", "namespace": theirs, "kind": "ConfigMap"}
        for refused in (run("cluster_registry_info", **one), run("cluster_registry", clusters=[{"name": "west"}], **one)):
            assert f"ConfigMap {theirs}/no-yaml has invalid YAML under the key clusters" in refused.message
        assert hub.kube.get("v1", "ConfigMap", "no-yaml", theirs)["data"] == {"clusters": invalid["no-yaml"]}
    assert ours in [registry["namespace"] for registry in listed["registries"]]
    assert theirs not in [registry["namespace"] for registry in listed["registries"]]
    for name in invalid:
        assert any(f"Skipped an invalid registry: ConfigMap {theirs}/{name} " in warning for warning in listed["warnings"])
