"""The modules for orders and locks: repeated, predicted, shown, given wrong input, and silent about secrets.

The life of an order and a lock that is renewed are tasks of a real ansible-playbook, at its highest verbosity; the other tasks run in
process.
"""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names

from ..support.actions import answer
from ..support.playbooks import Answer, Task, play, task

TEMPLATE = "ocp_4_17_small"
SECRET = "hunter2-do-not-show"  # noqa: S105 made up
PULL_SECRET = json.dumps({"auths": {"registry.example.com": {"auth": SECRET}}})
RELEASE = "quay.io/openshift-release-dev/ocp-release:4.17.0-multi"
TWO_NODES = [{"resourceClass": "fc430", "numberOfNodes": 2}]


@pytest.fixture
def kube(hub: Access) -> Kube:
    return Kube.connect({"kubeconfig": str(hub.kubeconfig)})


@pytest.fixture
def kubeconfig(hub: Access) -> Object:
    content: Object = yaml.safe_load(hub.kubeconfig.read_text(encoding="utf-8"))
    return content


def order(namespace: str, name: str = "demo", **spec: Any) -> Object:
    return {
        "apiVersion": "cloudkit.openshift.io/v1alpha1",
        "kind": "ClusterOrder",
        "metadata": {"name": name, "namespace": namespace, "labels": {"made-by": "kubectl"}},
        "spec": {"templateID": TEMPLATE, "templateParameters": json.dumps({"pull_secret": PULL_SECRET})} | spec,
    }


def apply_by_kubectl(hub: Access, item: Object) -> None:
    """It keeps a copy of the whole order in an annotation, secrets too; that is not shown either."""
    hub.kubectl("apply", "-f", "-", stdin=json.dumps(item))


def in_status(hub: Access, namespace: str, name: str, status: Object) -> None:
    """Create an order as another manager, with this status."""
    hub.apply(order(namespace, name))
    hub.kube.patch(order(namespace, name), {"status": status}, subresource="status", checked=False)


def is_silent(output: str, kubeconfig: Object) -> None:
    """Nothing secret was said."""
    user = kubeconfig["users"][0]["user"]
    for secret in (SECRET, *user.values()):
        assert str(secret) not in output


def shown(answers: dict[str, Answer]) -> str:
    """What Ansible would show of them, with all diffs."""
    return json.dumps([each.result for each in answers.values() if not each.result.get("_ansible_no_log")])


def fine(found: Answer) -> Answer:
    assert not found.failed, found.result
    return found


def test_order_is_created_changed_and_deleted(kube: Kube, namespace: str, kubeconfig: Object, tmp_path: Path) -> None:
    def ordered(called: str, /, *, check: bool = False, **arguments: Any) -> Task:
        return task("cluster_order", called, check=check, **{"name": "demo", "namespace": namespace} | arguments)

    def info(called: str, /, **arguments: Any) -> Task:
        return task("cluster_order_info", called, **{"name": "demo", "namespace": namespace} | arguments)

    parameters = {"pull_secret": "{{ pull_secret }}", "base_domain": "example.com"}
    first = {"template_id": TEMPLATE, "template_parameters": parameters, "node_requests": TWO_NODES, "labels": {"team": "blue", "cost": 5}}
    three = {"node_requests": [{"resourceClass": "fc430", "numberOfNodes": 3}, {"resourceClass": "fc640", "numberOfNodes": 1}]}
    other = {"template_parameters": parameters | {"pull_secret": "{{ pull_secret }} "}}
    tasks = [
        ordered("predict the creation", check=True, **first),
        info("see nothing yet"),
        ordered("apply", **first),
        ordered("apply again", **first),
        ordered("predict nothing", check=True, **first),
        ordered("name the template in full", template_id=f"openfleet.clusters.{TEMPLATE}"),
        ordered("predict three", check=True, **three),
        info("see two still"),
        ordered("scale", **three),
        ordered("scale again", **three),
        ordered("change a secret", **other),
        ordered("take a class out", node_requests=TWO_NODES),
        ordered("put on a label", labels={"stage": "test"}),
        ordered("put on an annotation", annotations={"example.com/note": "hello"}),
        info("see it"),
        info("see it by its label", name=None, label_selectors=["team in (blue, red)", "stage=test"]),
        info("see none of another label", label_selectors=["team=red"]),
        info("see none of a phase", phases=["Ready", "Failed"]),
        ordered("change the template", template_id="ocp_4_17_small_idp"),
        ordered("bad state", state="gone"),
        ordered("bad parameters", template_parameters="{{ pull_secret }} and more"),
        ordered("predict the end", check=True, state="absent"),
        info("see it still"),
        ordered("delete", state="absent", wait=True, wait_timeout=30),
        ordered("delete again", state="absent", wait=True),
        info("see it no more"),
    ]
    # The credentials are those of the group, and given by their content.
    played = play(
        tmp_path, tasks, defaults={"kubeconfig": "{{ kubeconfig }}"}, secrets={"pull_secret": PULL_SECRET, "kubeconfig": kubeconfig}
    )
    assert played.code == 0, played.output
    is_silent(played.output, kubeconfig)

    changes = {name for name, answer in played.answers.items() if answer.changed}
    assert changes == {
        "predict the creation",
        "apply",
        "predict three",
        "scale",
        "change a secret",
        "take a class out",
        "put on a label",
        "put on an annotation",
        "predict the end",
        "delete",
    }
    assert [name for name, answer in played.answers.items() if answer.failed] == ["change the template", "bad state", "bad parameters"]
    assert "cannot be changed to ocp_4_17_small_idp" in played["change the template"].message
    assert "create another order" in played["change the template"].message
    assert "value of state must be one of: present, absent" in played["bad state"].message
    assert "template_parameters" in played["bad parameters"].message
    for name in ("bad state", "bad parameters"):
        assert "\n" not in played[name].message.strip(), name
        assert "Traceback" not in json.dumps(played[name].result), name

    assert played["see nothing yet"].result["orders"] == []
    assert played["predict the creation"].result["order"]["spec"] == played["apply"].result["order"]["spec"]
    assert played["see two still"].result["orders"][0]["spec"]["nodeRequests"] == TWO_NODES
    assert played["predict three"].result["order"]["spec"]["nodeRequests"] == three["node_requests"]
    (seen,) = played["see it"].result["orders"]
    assert seen["spec"] == {"templateID": TEMPLATE, "templateParameters": ["base_domain", "pull_secret"], "nodeRequests": TWO_NODES}
    assert seen["metadata"]["labels"] == {"team": "blue", "cost": "5", "stage": "test"}
    assert seen["next_action"] == "provision"
    assert played["see it by its label"].result["orders"] == [seen]
    for name in ("see none of another label", "see none of a phase", "see it no more"):
        assert played[name].result["orders"] == []
    assert played["see it still"].result["orders"] == [seen]

    scaled = played["scale"].result["diff"]
    assert scaled["before_header"] == f"ClusterOrder {namespace}/demo"
    assert '"numberOfNodes": 2' in scaled["before"]
    assert '"numberOfNodes": 3' in scaled["after"]
    assert '-        "numberOfNodes": 2' not in scaled["after"]
    changed = json.loads(played["change a secret"].result["diff"]["after"])["spec"]["templateParameters"]
    assert changed == {"base_domain": "(hidden)", "pull_secret": "(hidden, changed)"}
    assert '+      "pull_secret": "(hidden, changed)"' in played.output
    assert played["delete"].result["diff"]["after"] == ""
    assert kube.find("cloudkit.openshift.io/v1alpha1", "ClusterOrder", "demo", namespace) is None


def test_order_that_another_manager_has_made(
    hub: Access, kube: Kube, namespace: str, kubeconfig: Object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K8S_AUTH_KUBECONFIG", str(hub.kubeconfig))
    other = order(namespace, nodeRequests=[{"resourceClass": "fc640", "numberOfNodes": 1}, *TWO_NODES])
    hub.kubectl("apply", "-f", "-", stdin=json.dumps(other))
    same = {"template_id": TEMPLATE, "template_parameters": {"pull_secret": PULL_SECRET}}
    more = {"node_requests": [{"resourceClass": "fc430", "numberOfNodes": 4}]}

    def ordered(**arguments: Any) -> Answer:
        return answer("cluster_order", name="demo", namespace=namespace, **arguments)

    answers = {
        "ask for what is there": ordered(**same),
        "meet the other": ordered(**more),
        "meet the other's class": ordered(node_requests=TWO_NODES),
        "predict to take over": ordered(**more, force=True, check=True),
        "take over": ordered(**more, force=True),
        "take over again": ordered(**more, force=True),
        "change what is ours now": ordered(node_requests=TWO_NODES),
        "list": answer("cluster_order_info", name="demo", namespace=namespace),
    }
    is_silent(shown(answers), kubeconfig)
    assert not fine(answers["ask for what is there"]).changed
    assert "kubectl-client-side-apply owns .spec.nodeRequests" in answers["meet the other"].message
    assert "force=true" in answers["meet the other"].message
    assert "fc640" in answers["meet the other's class"].message
    predicted, taken = fine(answers["predict to take over"]), fine(answers["take over"])
    assert predicted.changed
    assert taken.changed
    assert predicted.result["order"]["spec"] == taken.result["order"]["spec"]
    assert taken.result["order"]["spec"]["nodeRequests"] == more["node_requests"]
    assert not fine(answers["take over again"]).changed
    assert fine(answers["change what is ours now"]).changed
    (listed,) = answers["list"].result["orders"]
    assert listed["spec"] == {"templateID": TEMPLATE, "templateParameters": ["pull_secret"], "nodeRequests": TWO_NODES}
    assert "annotations" not in listed["metadata"] or listed["metadata"]["annotations"] == {}
    stored = kube.get("cloudkit.openshift.io/v1alpha1", "ClusterOrder", "demo", namespace)
    assert json.loads(stored["spec"]["templateParameters"]) == {"pull_secret": PULL_SECRET}


def test_waiting_ends_with_the_order_and_mistakes_with_one_message(hub: Access, namespace: str, kubeconfig: Object) -> None:
    failure = {"reason": "UnknownTemplate", "message": "There is no template nowhere.", "task": "prepare the order", "attempts": 1}
    failed = {"phase": "Failed", "observedGeneration": 1}
    in_status(hub, namespace, "fine", {"phase": "Ready", "observedGeneration": 1})
    in_status(hub, namespace, "stuck", failed | {"failure": failure | {"retryable": False}})
    in_status(hub, namespace, "trying", failed | {"failure": failure | {"retryable": True}})
    in_status(hub, namespace, "changed", {"phase": "Ready", "observedGeneration": 0})
    hub.apply(order(namespace, "new"))

    answers: dict[str, Answer] = {}

    def done(module: str, called: str, /, **arguments: Any) -> None:
        answers[called] = answer(module, **{"kubeconfig": str(hub.kubeconfig)} | arguments)

    def ordered(called: str, /, **arguments: Any) -> None:
        done("cluster_order", called, **{"namespace": namespace, "wait": True, "wait_timeout": 1} | arguments)

    ordered("fine", name="fine")
    ordered("stuck", name="stuck", wait_timeout=600)
    ordered("trying", name="trying")
    ordered("changed", name="changed")
    ordered("new", name="new")
    ordered("no wait in check mode", name="new", check=True, wait_timeout=600)
    ordered("no template", name="none")
    ordered("no name")
    ordered("bad state", name="demo", state="gone")
    ordered("bad name", name="Under_score", template_id=TEMPLATE)
    ordered("way out", name="../../secrets", template_id=TEMPLATE)
    ordered("bad namespace", name="demo", namespace="nowhere", template_id=TEMPLATE)
    ordered("bad template", name="demo", template_id="what is this")
    ordered("bad count", name="demo", template_id=TEMPLATE, node_requests=[{"resourceClass": "fc430", "numberOfNodes": 0}])
    ordered("bad class", name="demo", template_id=TEMPLATE, node_requests=[{"resourceClass": "fc430"}])
    ordered("twice", name="demo", template_id=TEMPLATE, node_requests=TWO_NODES * 2)
    ordered("bad parameters", name="demo", template_id=TEMPLATE, template_parameters=f"{PULL_SECRET} and more")
    ordered("too much", name="demo", template_id=TEMPLATE, template_parameters={"pull_secret": PULL_SECRET * 4000})
    ordered("a date", name="demo", template_id=TEMPLATE, template_parameters={"until": datetime.date(2025, 1, 1)})
    ordered("no number", name="demo", template_id=TEMPLATE, template_parameters={"share": math.nan})
    ordered("bad group", name="demo", template_id=TEMPLATE, api_group="example.com")
    ordered("bad kubeconfig", name="demo", template_id=TEMPLATE, kubeconfig="/nowhere")
    done("cluster_order_info", "name alone", name="demo")
    done("cluster_order_info", "bad phase", phases=["Done"])
    done("cluster_order_info", "bad selector", label_selectors=["==="])
    done("cluster_order_status", "status of a name alone", name="demo")
    done("cluster_order_prepare", "bad step", step="begin", name="demo", namespace=namespace)
    done("cluster_order_prepare", "no namespace", step="provision", name="demo")
    done("cluster_order_finish", "no orders", step="provision")
    done("cluster", "no pull secret", name="x", namespace=namespace, provider="hypershift", version=RELEASE)
    done("cluster", "bad setting", name="x", namespace=namespace, provider="hypershift", settings={"bse_domain": "a"})
    done("cluster", "bad provider", name="x", namespace=namespace, provider="hypershft")
    done("cluster", "provider not installed", name="x", namespace=namespace, provider="acme.absent.rack")
    done("cluster", "no provider", name="x", namespace=namespace)
    done("cluster_info", "no kubeconfig", name="x", namespace=namespace, provider="hypershift", with_kubeconfig=True)
    done("cluster_node_set", "no cluster", name="x", namespace=namespace, provider="hypershift", resource_class="a", nodes=1)
    done("cluster_node_set", "fewer than none", name="x", namespace=namespace, provider="hypershift", resource_class="a", nodes=-1)
    done("cloud_provider_info", "no clouds", name="x", namespace=namespace, provider="hypershift")
    done("cluster_identity_provider", "no type", name="x", namespace=namespace, provider="hypershift", identity_provider="a")
    done("cluster_lock", "no order")
    done("cluster_lock", "no reference", name="demo")
    done("cluster_lock", "bad order", orders=["demo"])
    done("cluster_lock", "too short", name="demo", namespace=namespace, duration=1)
    done("cluster_lock", "bad number", name="demo", namespace=namespace, duration="long")
    done("cluster_lock_info", "bad reference", orders=["a/b/c"])
    done("cluster_order_info", "all that are there", namespace=namespace)
    is_silent(shown(answers), kubeconfig)
    assert not fine(answers["fine"]).changed
    assert not fine(answers["no wait in check mode"]).changed
    said = {
        "stuck": "is Failed (UnknownTemplate): prepare the order: There is no template nowhere.",
        "trying": "is not Ready after 1 seconds: it is Failed. There is no template nowhere.",
        "changed": "is not Ready after 1 seconds: it is Ready",
        "new": "no run has prepared it yet",
        "no template": "to create it, set template_id",
        "no name": "missing required arguments: name",
        "bad state": "value of state must be one of: present, absent",
        "bad name": "metadata.name",
        "way out": "cannot be the name or the namespace",
        "bad namespace": 'namespaces "nowhere" not found',
        "bad template": "spec.templateID",
        "bad count": "numberOfNodes",
        "bad class": "missing required arguments: numberOfNodes",
        "twice": "duplicate",
        "bad parameters": "template_parameters",
        "too much": "an order holds 262144 at most",
        "a date": "template_parameters",
        "no number": "JSON does not have",
        "bad group": "does not serve the kind ClusterOrder in example.com",
        "bad kubeconfig": "/nowhere",
        "name alone": "namespace",
        "bad phase": "Done",
        "bad selector": "check the label selector '==='",
        "status of a name alone": "give both",
        "bad step": "value of step must be one of: provision, post_install, delete",
        "no namespace": "give both",
        "no orders": "missing required arguments: orders",
        "no pull secret": "parameter secrets.pull_secret is required",
        "bad setting": "base_domain",
        "bad provider": "did you mean hypershift",
        "provider not installed": "install its collection",
        "no provider": "provider",
        "no kubeconfig": "There is no HostedCluster",
        "no cluster": "There is no HostedCluster",
        "fewer than none": "0 to remove the resource class",
        "no clouds": "The provider hypershift does not support cloud providers.",
        "no type": "type",
        "no order": "give name and namespace, or orders",
        "no reference": "give both",
        "bad order": "<namespace>/<name>",
        "too short": "3 seconds at least",
        "bad number": "duration",
        "bad reference": "<namespace>/<name>",
    }
    for name, text in said.items():
        message = answers[name].message
        assert text in message, (name, message)
        assert "\n" not in message.strip(), (name, message)
        assert "Traceback" not in json.dumps(answers[name].result), name
    there = [found["metadata"]["name"] for found in answers["all that are there"].result["orders"]]
    assert there == ["changed", "fine", "new", "stuck", "trying"]


def test_lock_is_held_by_one_for_as_long_as_its_run(kube: Kube, namespace: str, kubeconfig: Object, tmp_path: Path) -> None:
    lease.acquire(kube, namespace, "taken", "another-run", duration=600)

    def locked(called: str, /, *, check: bool = False, **arguments: Any) -> Task:
        return task("cluster_lock", called, check=check, **{"name": "demo", "namespace": namespace, "duration": 12} | arguments)

    def info(called: str, /, **arguments: Any) -> Task:
        return task("cluster_lock_info", called, **{"name": "demo", "namespace": namespace} | arguments)

    both = {"name": None, "namespace": None, "orders": [f"{namespace}/taken", {"namespace": namespace, "name": "another"}]}
    tasks = [
        info("see that it is free"),
        locked("predict", check=True),
        info("see that it is free still"),
        locked("take"),
        locked("take again"),
        locked("predict nothing", check=True),
        info("see who has it") | {"register": "before"},
        locked("another is refused", holder="another"),
        locked("another is refused in check mode", holder="another", check=True),
        locked("another waits in vain", holder="another", wait_timeout=1),
        locked("another releases nothing", holder="another", state="released"),
        locked("all or none", **both),
        info("see that none was taken", name="another"),
        info("see that it is renewed")
        | {"register": "after", "until": "after.locks[0].expires > before.locks[0].expires", "retries": 60, "delay": 1},
        locked("predict the release", state="released", check=True),
        locked("release", state="released"),
        locked("release again", state="released"),
        info("see that it is free again"),
        locked("take once more"),
        info("see all", name=None),
    ]
    played = play(tmp_path, tasks, defaults={"kubeconfig": "{{ kubeconfig }}"}, secrets={"kubeconfig": kubeconfig})
    assert played.code == 0, played.output
    is_silent(played.output, kubeconfig)
    assert {name for name, answer in played.answers.items() if answer.changed} == {
        "predict",
        "take",
        "predict the release",
        "release",
        "take once more",
    }
    refused = ("another is refused", "another is refused in check mode", "another waits in vain")
    assert {name for name, answer in played.answers.items() if answer.failed} == {*refused, "all or none"}
    taken = played["take"].result
    for name in refused:
        assert f"The lock of {namespace}/demo is held by {taken['holder']}" in played[name].message
    assert "is held by another-run" in played["all or none"].message

    def reported(name: str) -> Object:
        (lock,) = played[name].result["locks"]
        return dict(lock)

    assert taken["token"] == taken["lock"]["token"] == played["predict"].result["token"] == 1
    assert played["take again"].result["token"] == 1
    assert played["take once more"].result["token"] == 2
    assert reported("see who has it")["holder"] == taken["holder"]
    for name in ("see that it is free", "see that it is free still", "see that it is free again", "see that none was taken"):
        assert reported(name)["free"], name
        assert reported(name)["expires"] is None
    assert not reported("see that it is renewed")["free"]
    assert reported("see that it is renewed")["holder"] == taken["holder"]
    assert played["release"].result["released"] == [f"{namespace}/demo"]
    everything = {lock["order"]: lock["free"] for lock in played["see all"].result["locks"]}
    assert everything == {"another": True, "demo": False, "taken": False}
    # The run has ended without a release, and no process renews its lock any more.
    until(lambda: lease.read(kube, namespace, "demo").is_free(kube.server_time()), "the lock of a run that ended is free")


def test_steps_of_a_run_are_repeatable_and_silent(hub: Access, kube: Kube, namespace: str, kubeconfig: Object) -> None:
    apply_by_kubectl(hub, order(namespace, nodeRequests=TWO_NODES))
    named = {"name": "demo", "namespace": namespace}
    of_event = {"ansible_eda": {"event": {"payload": {"metadata": named}}}}
    answers: dict[str, Answer] = {}

    def done(module: str, called: str, /, *, check: bool = False, **arguments: Any) -> Answer:
        answers[called] = answer(module, check=check, kubeconfig=str(hub.kubeconfig), **arguments)
        return answers[called]

    def prepared(called: str, /, *, check: bool = False, step: str = "provision") -> list[Object]:
        orders: list[Object] = done("cluster_order_prepare", called, check=check, step=step, **named).result["orders"]
        return orders

    def cluster(called: str, of: list[Object], /, *, check: bool = False, **arguments: Any) -> None:
        wanted = {
            "cluster_order": of[0]["cluster_order"],
            "provider": of[0]["cluster_provider"],
            "lock": of[0]["cluster_lock"],
            "version": RELEASE,
            "secrets": {"pull_secret": PULL_SECRET, "extra": {"demo-extra": {"password": SECRET}}},
            "node_requests": of[0]["node_requests"],
        }
        done("cluster", called, check=check, **wanted | arguments)

    def finished(called: str, of: list[Object], /, *, check: bool = False, **arguments: Any) -> None:
        done("cluster_order_finish", called, check=check, **{"step": "provision", "orders": of} | arguments)

    four = [{"resourceClass": "fc430", "numberOfNodes": 4}]
    prepared("predict", check=True)
    done("cluster_lock_info", "lock is free", **named)
    first = prepared("prepare")
    prepared("prepare in between")
    cluster("predict the cluster", first, check=True)
    cluster("make the cluster", first)
    cluster("make it again", first)
    cluster("predict nothing", first, check=True)
    cluster("predict more nodes", first, check=True, node_requests=four)
    finished("predict the finish", first, check=True)
    finished("finish", first)
    done("cluster_lock_info", "lock is free after it", **named)
    second = prepared("prepare a second time")
    cluster("nothing to do the second time", second)
    cluster("a late writer", first, node_requests=four)
    finished("finish with a failure", second, failure={"task": "Do it", "error": "It broke."})
    done("cluster_order_info", "see the failure", **named)
    done("cluster_order_status", "predict the status", check=True, **named)
    answers["nothing new of all"] = answer("cluster_order_status", kubeconfig=str(hub.kubeconfig), variables=of_event)
    third = prepared("prepare the end", step="delete")
    cluster("predict the end", third, check=True, state="absent")
    cluster("end", third, state="absent")
    finished("finish the end", third, step="delete", wait_timeout=300)
    done("cluster_order_status", "no order any more", **named)

    is_silent(shown(answers), kubeconfig)
    censored = {"predict", "prepare", "prepare a second time", "prepare the end"}
    assert {name for name, found in answers.items() if found.result.get("_ansible_no_log")} == censored
    assert {name for name, found in answers.items() if found.failed} == {"a late writer", "finish with a failure"}
    for name in ("make it again", "predict nothing", "nothing to do the second time", "prepare in between", "prepare a second time"):
        assert not answers[name].changed, name
    for name in ("predict", "prepare", "predict the cluster", "make the cluster", "predict more nodes", "predict the end", "end"):
        assert answers[name].changed, name
    for name in ("lock is free", "lock is free after it"):
        assert answers[name].result["locks"][0]["free"], name
    made = [(item["kind"], item["action"]) for item in answers["make the cluster"].result["objects"]]
    assert made == [*[("Secret", "created")] * 3, ("HostedCluster", "created"), ("NodePool", "created")]
    assert [tuple(item.values()) for item in answers["predict the cluster"].result["objects"]] == [
        tuple(item.values()) for item in answers["make the cluster"].result["objects"]
    ]
    diffs = {part["after_header"].partition(" ")[0]: part["after"] for part in answers["make the cluster"].result["diff"]}
    assert '"password": "(hidden)"' in diffs["Secret"] or '".dockerconfigjson": "(hidden)"' in diffs["Secret"]
    assert RELEASE in diffs["HostedCluster"]
    (nodes,) = answers["predict more nodes"].result["diff"]
    assert '"replicas": 2' in nodes["before"]
    assert '"replicas": 4' in nodes["after"]
    assert "later run" in answers["a late writer"].message or "is lost" in answers["a late writer"].message
    assert answers["finish with a failure"].message == "Do it: It broke."
    (failed,) = answers["see the failure"].result["orders"]
    assert failed["status"]["failure"]["message"] == "It broke."
    assert answers["finish the end"].result["orders"][0]["phase"] == "Deleted"
    assert answers["no order any more"].result["orders"] == []
    assert kube.find("v1", "Namespace", Names().working_namespace(namespace, "demo")) is None


def test_tenant_who_may_only_read_orders_gets_them(hub: Access, namespace: str) -> None:
    apply_by_kubectl(hub, order(namespace))
    hub.kubectl("create", "role", "tenant", "-n", namespace, "--verb=get,list", "--resource=clusterorders.cloudkit.openshift.io")
    hub.kubectl("create", "rolebinding", "tenant", "-n", namespace, "--role=tenant", "--user=tenant")
    tenant = {"kubeconfig": str(hub.kubeconfig), "impersonate_user": "tenant"}
    (listed,) = fine(answer("cluster_order_info", namespace=namespace, **tenant)).result["orders"]
    assert listed["spec"]["templateParameters"] == ["pull_secret"]
    assert "next_action" not in listed
    everywhere = answer("cluster_order_info", **tenant)
    applied = answer("cluster_order", name="other", namespace=namespace, template_id=TEMPLATE, **tenant)
    for refused in (everywhere, applied):
        assert "grant the verb" in refused.message
