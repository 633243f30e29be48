"""The modules for a cluster without an order: created, read, scaled, equipped and deleted by a real ansible-playbook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE, lease_name
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names

from ..support.ocm_site import standing_in
from ..support.ocm_standin import OFFLINE_TOKEN, TOKEN_PATH
from ..support.playbooks import Task, play, task
from .test_examples import examples

HIDDEN = "hunter2-do-not-show"
PULL_SECRET = json.dumps({"auths": {"registry.example.com": {"auth": HIDDEN}}})
RELEASE = "quay.io/openshift-release-dev/ocp-release:4.17.0-multi"
NODES = [{"resourceClass": "fc430", "numberOfNodes": 2}]


@pytest.fixture
def lab(quick_hub: Access) -> Any:
    """The namespace of the examples, for one test."""
    quick_hub.kubectl("create", "namespace", "clusters")
    yield quick_hub
    quick_hub.kubectl("delete", "namespace", "clusters", "--wait=true")


def on_lab(module: str, called: str, /, *, check: bool = False, **arguments: Any) -> Task:
    return task(module, called, check=check, name="lab", namespace="clusters", provider="hypershift", **arguments)


def cluster(called: str, /, *, check: bool = False, **arguments: Any) -> Task:
    wanted = {"version": RELEASE, "node_requests": NODES, "secrets": {"pull_secret": "{{ pull_secret }}"}}
    arguments["settings"] = {"platform": {"type": "KubeVirt"}} | arguments.get("settings", {})
    return on_lab("cluster", called, check=check, **wanted | arguments)


def providers(hub: Access) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = hub.get("hostedcluster", "lab", "-n", "clusters")["spec"]["configuration"]["oauth"]["identityProviders"]
    return found


def test_cluster_without_an_order_is_created_read_and_deleted(lab: Access, tmp_path: Path) -> None:
    tasks = [
        cluster("predict it", check=True),
        on_lab("cluster_info", "there is none"),
        cluster("make it", wait=True, wait_timeout=300),
        cluster("make it again"),
        on_lab("cluster_info", "see it"),
        on_lab("cluster_info", "get the kubeconfig", with_kubeconfig=True) | {"register": "access"},
        on_lab("cluster_node_set", "predict a third node", check=True, resource_class="fc430", nodes=3),
        on_lab("cluster_node_set", "have a third node", resource_class="fc430", nodes=3),
        on_lab("cluster_node_set", "have it still", resource_class="fc430", nodes=3),
        on_lab("cluster_node_set", "have another class", resource_class="fc640", nodes=1),
        on_lab("cluster_node_set", "have it no longer", resource_class="fc640", nodes=0),
        cluster("as it was", check=True),
        task("cluster_lock_info", "the lock is free", name="lab", namespace="clusters"),
        cluster("predict the end", check=True, state="absent"),
        cluster("remove it", state="absent", wait=True, wait_timeout=300),
        cluster("remove it again", state="absent"),
    ]
    played = play(tmp_path, tasks, defaults={"kubeconfig": str(lab.kubeconfig)}, secrets={"pull_secret": PULL_SECRET})
    assert played.code == 0, played.output
    assert {name for name, answer in played.answers.items() if answer.failed} == set()
    assert HIDDEN not in played.output
    for name in ("make it again", "have it still", "remove it again"):
        assert not played[name].changed, name
    for name in ("predict it", "make it", "predict a third node", "have a third node", "have it no longer", "as it was", "remove it"):
        assert played[name].changed, name
    assert not played["there is none"].result["exists"]
    made = played["make it"].result["cluster"]
    assert (made["status"], made["provider"]) == ("ready", "hypershift")
    assert made["node_sets"][0] | {"name": ""} == {
        "name": "",
        "resource_class": "fc430",
        "requested": 2,
        "ready": 2,
        "outdated": False,
        "updating": False,
        "deleting": False,
        "preexisting": False,
        "counted": True,
    }
    predicted, done = (
        [(item["kind"], item["name"], item["action"]) for item in played[name].result["objects"]] for name in ("predict it", "make it")
    )
    assert predicted == done
    assert "censored" in played["get the kubeconfig"].result
    assert played["the lock is free"].result["locks"][0]["free"]
    assert played["remove it"].result["gone"]
    assert lab.get("secret", "lab-pull-secret", "-n", "clusters") is None
    assert lab.get("nodepools", "-n", "clusters")["items"] == []


def test_identity_providers_are_merged_and_survive_a_change_of_the_cluster(lab: Access, tmp_path: Path) -> None:
    own = {"oauth": {"identityProviders": [{"name": "own", "mappingMethod": "claim", "type": "Google", "google": {"clientID": "x"}}]}}
    company = {"identity_provider": "company", "type": "OpenID", "settings": {"issuer": "https://sso.example.com", "clientID": "lab"}}
    secret = {"secrets": {"clientSecret": "{{ client_secret }}"}}
    tasks = [
        cluster("make it", settings={"configuration": own}),
        on_lab("cluster_identity_provider", "predict", check=True, **company, **secret),
        on_lab("cluster_identity_provider", "add", **company, **secret),
        on_lab("cluster_identity_provider", "add again", **company, **secret),
        cluster("change it", settings={"configuration": own, "base_domain": "example.com"}),
        cluster("nothing to change", settings={"configuration": own, "base_domain": "example.com"}),
        on_lab("cluster_identity_provider", "unknown type", identity_provider="x", type="Telepathy"),
        on_lab(
            "cluster_identity_provider", "wrong secret", identity_provider="x", type="Google", secrets={"password": "{{ client_secret }}"}
        ),
    ]
    secrets = {"pull_secret": PULL_SECRET, "client_secret": HIDDEN}
    played = play(tmp_path, tasks, defaults={"kubeconfig": str(lab.kubeconfig)}, secrets=secrets)
    assert HIDDEN not in played.output
    assert [played[name].changed for name in ("predict", "add", "add again", "change it", "nothing to change")] == [
        True,
        True,
        False,
        True,
        False,
    ]
    assert [item["name"] for item in providers(lab)] == ["own", "company"]
    assert providers(lab)[1]["openID"]["clientSecret"] == {"name": "lab-idp-company"}
    assert "one of GitHub" in played["unknown type"].message
    assert "one secret, clientSecret" in played["wrong secret"].message
    names = ("remove", "remove again")
    removal = [on_lab("cluster_identity_provider", name, state="absent", identity_provider="company") for name in names]
    played = play(tmp_path, removal, defaults={"kubeconfig": str(lab.kubeconfig)})
    assert [played.fine(name).changed for name in names] == [True, False]
    assert [item["name"] for item in providers(lab)] == ["own"]
    assert lab.get("secret", "lab-idp-company", "-n", "clusters") is None


def test_second_task_on_a_cluster_is_refused_while_a_run_holds_its_lock(lab: Access, tmp_path: Path) -> None:
    tasks = [
        task("cluster_lock", "take", name="lab", namespace="clusters", holder="runner-b", duration=600),
        cluster("too late"),
        cluster("too late to predict", check=True),
        task("cluster_lock", "release", name="lab", namespace="clusters", holder="runner-b", state="released"),
    ]
    played = play(tmp_path, tasks, defaults={"kubeconfig": str(lab.kubeconfig)}, secrets={"pull_secret": PULL_SECRET})
    for name in ("too late", "too late to predict"):
        assert "runner-b" in played[name].message
    assert lab.get("hostedclusters", "-n", "clusters")["items"] == []


def test_task_on_the_cluster_of_an_order_takes_the_lock_of_the_order(quick_hub: Access, tmp_path: Path) -> None:
    """It neither works beside a run of the playbooks, nor has its token from another count than they."""
    of_order = {"name": "lab", "namespace": "labs"}
    order = {"metadata": {**of_order, "uid": "1"}, "spec": {"templateID": "x"}, "status": {"provider": {"type": "hypershift"}}}
    wanted = {"version": RELEASE, "node_requests": NODES, "secrets": {"pull_secret": "{{ pull_secret }}"}}
    working, labels = Names().working_namespace("labs", "lab"), ClusterOrder.from_object(order).labels
    for namespace in ("labs", working):
        quick_hub.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}})
    try:
        tasks = [
            task("cluster_lock", "take", **of_order, holder="a run", duration=600) | {"register": "taken"},
            task("cluster", "too early", cluster_order=order, **wanted),
            task("cluster", "too early to predict", check=True, cluster_order=order, **wanted),
            task("cluster", "in the run", cluster_order=order, lock="{{ taken.lock }}", **wanted),
            task("cluster_node_set", "beside the run", cluster_order=order, resource_class="fc430", nodes=3),
            task("cluster_lock", "release", **of_order, holder="a run", state="released"),
            task("cluster_node_set", "after the run", cluster_order=order, resource_class="fc430", nodes=3),
        ]
        played = play(tmp_path, tasks, defaults={"kubeconfig": str(quick_hub.kubeconfig)}, secrets={"pull_secret": PULL_SECRET})
        for name in ("too early", "too early to predict", "beside the run"):
            assert "The lock of labs/lab is held by a run" in played[name].message
        assert played.fine("in the run").changed
        assert played.fine("after the run").changed
        assert quick_hub.get("leases", "-n", working)["items"] == []
        assert quick_hub.get("lease", lease_name("labs", "lab"), "-n", SITE_NAMESPACE)["spec"]["leaseTransitions"] == 2
        written = quick_hub.get("nodepool", "lab-fc430", "-n", working)["metadata"]["annotations"]
        assert written["cloudkit.openshift.io/lock-token"] == "2"
    finally:
        quick_hub.kubectl("delete", "hostedclusters,nodepools", "--all", "-n", working, "--wait=true")
        quick_hub.kubectl("delete", "namespace", "labs", working, "--wait=false")


def test_examples_of_resources_in_a_real_cluster(hub: Access, tmp_path: Path) -> None:
    """Here an API server runs behind the HostedCluster."""
    hub.kubectl("create", "namespace", "clusters")
    try:
        made = cluster("make it", wait=True, wait_timeout=400)
        have, remove = examples("cluster_resources")
        again = {**have, "name": "again"}
        predicted = {**have, "name": "predict", "check_mode": True}
        removed = {**remove, "name": "removed", "until": "result.gone", "retries": 30, "delay": 1, "register": "result"}
        secrets = {"pull_secret": PULL_SECRET}
        played = play(
            tmp_path, [made, predicted, have, again, remove, removed], defaults={"kubeconfig": str(hub.kubeconfig)}, secrets=secrets
        )
        assert played.code == 0, played.output
        names = ("predict", "Apply a quota", "again", "Delete the quota")
        assert [played.fine(name).changed for name in names] == [True, True, False, True]
        assert {item["kind"] for item in played["Apply a quota"].result["objects"]} >= {"ResourceQuota"}
    finally:
        hub.kubectl("delete", "hostedclusters,nodepools", "--all", "-n", "clusters", "--wait=true")
        hub.kubectl("delete", "namespace", "clusters", "--wait=false")


def test_examples_of_cloud_providers(lab: Access, tmp_path: Path) -> None:
    with standing_in() as service:
        settings = {"url": service.url, "token_url": f"{service.url}{TOKEN_PATH}"}
        where = {"cloud_provider": "aws", "region": "us-east-1", "node_requests": [{"resourceClass": "m5.xlarge", "numberOfNodes": 2}]}
        with_token = {"settings": settings, "secrets": {"token": "{{ token }}"}, "version": "4.18.1"}
        made = task("cluster", "make it", name="lab", namespace="clusters", provider="ocm", **where, **with_token)
        removed = task("cluster", "remove it", name="lab", namespace="clusters", provider="ocm", state="absent")
        defaults = {"kubeconfig": str(lab.kubeconfig)}
        played = play(tmp_path, [made, *examples("cloud_provider_info"), removed], defaults=defaults, secrets={"token": OFFLINE_TOKEN})
        assert played.code == 0, played.output
        assert OFFLINE_TOKEN not in played.output
        (cloud,) = played["List the regions of AWS"].result["cloud_providers"]
        assert (cloud["id"], "us-east-1" in [region["id"] for region in cloud["regions"]]) == ("aws", True)
        service.advance()
        assert not play(tmp_path, [removed], defaults=defaults)["remove it"].failed


def test_examples(lab: Access, tmp_path: Path) -> None:
    order = {
        "metadata": {"name": "lab", "namespace": "labs", "uid": "1"},
        "spec": {"templateID": "x"},
        "status": {"provider": {"type": "hypershift"}},
    }
    given = {"cluster_order": order, "cluster_provider": "hypershift"}
    tasks = [
        examples("cluster")[2],
        examples("cluster_node_set")[0],
        *examples("cluster_identity_provider"),
        *({**task, "vars": given} for task in examples("cluster_info")),
    ]
    environment = {"CLIENT_SECRET": HIDDEN}
    lab.kubectl("create", "secret", "generic", "lab-users", "-n", "clusters", f"--from-literal=htpasswd=ann:{HIDDEN}")
    played = play(tmp_path, tasks, defaults={"kubeconfig": str(lab.kubeconfig)}, environment=environment)
    assert played.code == 0, played.output
    assert HIDDEN not in played.output
    assert played["Show its status"].result["msg"] == "absent: "
