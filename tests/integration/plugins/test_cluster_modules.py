"""The modules for a cluster without an order: created, read, scaled, equipped and deleted.

The whole life of a cluster and the examples are tasks of a real ansible-playbook; the other tasks run in process.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE, lease_name
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names

from ..support.actions import answer
from ..support.ocm_site import standing_in
from ..support.ocm_standin import OFFLINE_TOKEN, TOKEN_PATH
from ..support.playbooks import Answer, Task, play, task
from .test_examples import examples

HIDDEN = "hunter2-do-not-show"
PULL_SECRET = json.dumps({"auths": {"registry.example.com": {"auth": HIDDEN}}})
RELEASE = "quay.io/openshift-release-dev/ocp-release:4.17.0-multi"
NODES = [{"resourceClass": "fc430", "numberOfNodes": 2}]


@pytest.fixture(scope="module")
def clusters(quick_hub: Access) -> Iterator[Access]:
    """The hub with the namespace of the examples, for all tests: a hub takes seconds to delete one."""
    until(lambda: quick_hub.get("namespace", "clusters") is None, "the namespace of earlier tests is deleted")
    quick_hub.kubectl("create", "namespace", "clusters")
    yield quick_hub
    quick_hub.kubectl("delete", "namespace", "clusters", "--wait=false")


@pytest.fixture
def lab(clusters: Access) -> Iterator[Access]:
    """The hub, with nothing of another test in the namespace of the examples."""
    yield clusters
    clusters.kubectl("delete", "hostedclusters,nodepools,secrets", "--all", "-n", "clusters", "--wait=true")


def on_lab(module: str, called: str, /, *, check: bool = False, **arguments: Any) -> Task:
    return task(module, called, check=check, name="lab", namespace="clusters", provider="hypershift", **arguments)


def cluster(called: str, /, *, check: bool = False, **arguments: Any) -> Task:
    return on_lab("cluster", called, check=check, **wanted("{{ pull_secret }}", **arguments))


def wanted(pull_secret: str, **arguments: Any) -> dict[str, Any]:
    platform = {"platform": {"type": "KubeVirt"}}
    given = {"version": RELEASE, "node_requests": NODES, "secrets": {"pull_secret": pull_secret}}
    return given | arguments | {"settings": platform | arguments.get("settings", {})}


def answer_on_lab(hub: Access, module: str, **arguments: Any) -> Answer:
    return answer(module, kubeconfig=str(hub.kubeconfig), name="lab", namespace="clusters", provider="hypershift", **arguments)


@contextlib.contextmanager
def held(hub: Access, namespace: str, holder: str) -> Iterator[dict[str, Any]]:
    """The lock of `lab`, as a run passes it to its tasks."""
    lock = lease.acquire(hub.kube, namespace, "lab", holder, duration=600)
    yield lock.as_dict()
    lease.release(hub.kube, lock)


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
    assert played["remove it"].result["deleted"]
    assert lab.get("secret", "lab-pull-secret", "-n", "clusters") is None
    assert lab.get("nodepools", "-n", "clusters")["items"] == []


def test_identity_providers_are_merged_and_survive_a_change_of_the_cluster(lab: Access) -> None:
    def done(module: str, **arguments: Any) -> Answer:
        answers.append(answer_on_lab(lab, module, **arguments))
        return answers[-1]

    answers: list[Answer] = []
    own = {"oauth": {"identityProviders": [{"name": "own", "mappingMethod": "claim", "type": "Google", "google": {"clientID": "x"}}]}}
    company = {"identity_provider": "company", "type": "OpenID", "settings": {"issuer": "https://sso.example.com", "clientID": "lab"}}
    added = company | {"secrets": {"clientSecret": HIDDEN}}
    removed = {"state": "absent", "identity_provider": "company"}
    changed = wanted(PULL_SECRET, settings={"configuration": own, "base_domain": "example.com"})
    assert done("cluster", **wanted(PULL_SECRET, settings={"configuration": own})).changed
    assert done("cluster_identity_provider", check=True, **added).changed
    assert done("cluster_identity_provider", **added).changed
    assert not done("cluster_identity_provider", **added).changed
    assert done("cluster", **changed).changed
    assert not done("cluster", **changed).changed
    assert [item["name"] for item in providers(lab)] == ["own", "company"]
    assert providers(lab)[1]["openID"]["clientSecret"] == {"name": "lab-idp-company"}
    unknown_type = done("cluster_identity_provider", identity_provider="x", type="Telepathy")
    assert "one of GitHub" in unknown_type.message
    wrong_secret = done("cluster_identity_provider", identity_provider="x", type="Google", secrets={"password": HIDDEN})
    assert "one secret, clientSecret" in wrong_secret.message
    assert done("cluster_identity_provider", **removed).changed
    assert not done("cluster_identity_provider", **removed).changed
    assert [item["name"] for item in providers(lab)] == ["own"]
    assert lab.get("secret", "lab-idp-company", "-n", "clusters") is None
    assert HIDDEN not in json.dumps([each.result for each in answers])
    assert [each for each in answers if each.failed] == [unknown_type, wrong_secret]


def test_second_task_on_a_cluster_is_refused_while_a_run_holds_its_lock(lab: Access) -> None:
    with held(lab, "clusters", "runner-b"):
        for check in (False, True):
            assert "runner-b" in answer_on_lab(lab, "cluster", check=check, **wanted(PULL_SECRET)).message
    assert lab.get("hostedclusters", "-n", "clusters")["items"] == []


def test_task_on_the_cluster_of_an_order_takes_the_lock_of_the_order(quick_hub: Access) -> None:
    """It neither works beside a run of the playbooks, nor has its token from another count than they."""

    def on_order(module: str, *, check: bool = False, **arguments: Any) -> Answer:
        return answer(module, check=check, kubeconfig=str(quick_hub.kubeconfig), cluster_order=order, **arguments)

    order = {
        "metadata": {"name": "lab", "namespace": "labs", "uid": "1"},
        "spec": {"templateID": "x"},
        "status": {"provider": {"type": "hypershift"}},
    }
    given = {"version": RELEASE, "node_requests": NODES, "secrets": {"pull_secret": PULL_SECRET}}
    three = {"resource_class": "fc430", "nodes": 3}
    working, labels = Names().working_namespace("labs", "lab"), ClusterOrder.from_object(order).labels
    for namespace in ("labs", working):
        quick_hub.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}})
    try:
        with held(quick_hub, "labs", "a run") as lock:
            too_early = [on_order("cluster", check=check, **given) for check in (False, True)]
            in_the_run = on_order("cluster", lock=lock, **given)
            beside_the_run = on_order("cluster_node_set", **three)
        after_the_run = on_order("cluster_node_set", **three)
        for refused in (*too_early, beside_the_run):
            assert "The lock of labs/lab is held by a run" in refused.message
        for done in (in_the_run, after_the_run):
            assert not done.failed, done.result
            assert done.changed
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
        removed = {**remove, "name": "removed", "until": "result.deleted", "retries": 30, "delay": 1, "register": "result"}
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
        ended = answer("cluster", name="lab", namespace="clusters", provider="ocm", state="absent", **defaults)
        assert ended.result["deleted"]


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
