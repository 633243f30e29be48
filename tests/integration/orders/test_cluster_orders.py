"""The life of a cluster order by `ansible-playbook`: made, changed, seen, deleted, made again; and what a second run costs."""

from __future__ import annotations

import base64
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import COLLECTION_CRDS, load_crd
from ansible_collections.openfleet.clusters.extensions.sandbox.door import Doorman, Request
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import CONNECTIONS

from ..support.orders import GROUP, NEXT_RELEASE, OTHER_GROUP, PULL_SECRET, RELEASE, Orders, Run
from ..support.samples import FAULT

HELD = '[{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/other"}]'
MADE = [
    "HostedCluster/demo",
    "NodePool/demo-fc430",
    "RoleBinding/cloudkit",
    "Secret/demo-pull-secret",
    "ServiceAccount/cloudkit",
]


@pytest.fixture(params=[GROUP, OTHER_GROUP])
def anywhere(request: pytest.FixtureRequest, quick_hub: Access, tmp_path: Path) -> Iterator[Orders]:
    """A namespace for orders of each API group."""
    hub, group = quick_hub, request.param
    if group != GROUP:
        hub.install_crd(load_crd(COLLECTION_CRDS / "clusterorders.yaml", group))
    with fresh_namespace(hub) as namespace:
        place = Orders(hub, namespace, tmp_path, group)
        yield place
        place.clean_up()


def test_an_order_is_carried_out_changed_deleted_and_placed_again(anywhere: Orders) -> None:
    orders = anywhere
    orders.place(nodes={"fc430": 2})
    orders.create()
    assert orders.names() == MADE
    assert orders.pools() == {"fc430": 2}
    status = orders.status()
    assert status["nodeSets"] == [{"resourceClass": "fc430", "requested": 2, "ready": 2}]
    assert status["clusterReference"] == {
        "namespace": orders.working(),
        "hostedClusterName": "demo",
        "serviceAccountName": "cloudkit",
        "roleBindingName": "cloudkit",
    }
    assert status["apiURL"].startswith("https://127.0.0.1:") and "failure" not in status
    assert orders.get()["metadata"]["finalizers"] == [f"{orders.group}/finalizer", f"{orders.group}/infrastructure"]

    orders.place(nodes={"fc430": 3, "fc640": 1})  # one more, and a class added
    orders.create()
    assert orders.pools() == {"fc430": 3, "fc640": 1}
    orders.place(nodes={"fc430": 1})  # fewer, and the class removed
    orders.create()
    until(lambda: orders.pools() == {"fc430": 1}, "the NodePool of the class that was removed is gone")

    orders.place(nodes={"fc430": 1}, release_image=NEXT_RELEASE)
    orders.create()
    releases = [item["spec"]["release"]["image"] for item in orders.objects() if item["kind"] in ("HostedCluster", "NodePool")]
    assert releases == [NEXT_RELEASE, NEXT_RELEASE]

    orders.delete()
    assert orders.is_gone()
    orders.place(nodes={"fc430": 2})
    orders.create()
    assert orders.pools() == {"fc430": 2}
    hosted_cluster = orders.hub.get("hostedcluster", "demo", "-n", orders.working())
    assert hosted_cluster["spec"]["release"]["image"] == RELEASE


def test_an_order_without_nodes_gets_those_of_its_template(orders: Orders) -> None:
    orders.place()
    orders.create()
    assert orders.pools() == {"fc430": 2}
    assert orders.status()["nodeSets"] == [{"resourceClass": "fc430", "requested": 2, "ready": 2}]


def test_an_order_is_ready_with_its_nodes_and_degraded_without_them(orders: Orders) -> None:
    orders.place(nodes={"fc430": 2})
    orders.create()
    annotate = ("annotate", "nodepool/demo-fc430", "-n", orders.working())
    orders.hub.kubectl(*annotate, f"{FAULT}=lose-node")
    orders.until_phase("Degraded")
    nodes = orders.condition("NodesReady")
    assert (nodes["status"], nodes["message"]) == ("False", "1 of 2 nodes ready")
    assert "1 of 2 nodes ready" in orders.condition("ClusterAvailable")["message"]
    orders.hub.kubectl(*annotate, f"{FAULT}-")
    orders.until_phase("Ready")
    assert orders.condition("NodesReady")["status"] == "True"


def test_however_many_orders_are_waited_for_none_waits_for_another(orders: Orders) -> None:
    """As many that are not Ready before their post_install as the connection has places, and one behind them that soon is."""
    unfinished = orders.template("unfinished", post_install="[]\n")
    slow = [f"slow-{number}" for number in range(CONNECTIONS)]
    for name in slow:
        orders.place(name, template=unfinished, nodes={"fc430": 1})
    orders.place("quick", nodes={"fc430": 1})
    chosen = [f"{orders.namespace}/{name}" for name in [*slow, "quick"]]
    run = orders.start("create_cluster", None, cluster_orders=chosen, cluster_wait_timeout=500)

    def is_done_with() -> bool:
        return orders.status("quick").get("phase") == "Ready" and "holderIdentity" not in orders.lease("quick")

    try:
        until(is_done_with, "it is done with", 300)
        assert all("holderIdentity" in orders.lease(name) for name in slow)
    finally:
        run.signal(signal.SIGKILL)
        run.process.wait()


def test_an_order_that_goes_while_all_are_looked_at_is_no_failure(orders: Orders) -> None:
    orders.place("going")
    orders.place("staying")

    def take_away(request: Request) -> None:
        if request.is_write and "/going/" in request.path:
            orders.hub.kubectl("delete", orders.kind, "going", "-n", orders.namespace)

    with Doorman(orders.hub.kubeconfig, orders.folder).open() as door:
        door.before = take_away
        chosen = [f"{orders.namespace}/{name}" for name in ("going", "staying")]
        orders.play("sync_status", None, kubeconfig=door.kubeconfig, cluster_orders=chosen).well()
    assert orders.get("going") is None and orders.status("staying")["phase"] == "Progressing"


def test_an_order_is_not_ready_before_its_nodes_are(orders: Orders) -> None:
    orders.place(nodes={"fc430": 2})
    orders.create()
    orders.hub.kubectl("annotate", "nodepool/demo-fc430", "-n", orders.working(), f"{FAULT}=lose-node")
    orders.place(nodes={"fc430": 3})
    orders.play("create_cluster").well()
    orders.play("sync_status").well()
    assert orders.status()["phase"] == "Progressing"
    assert orders.condition("NodesReady")["status"] == "False"


def test_a_second_run_changes_nothing_and_writes_only_its_lock(orders: Orders) -> None:
    orders.place(nodes={"fc430": 2, "fc640": 1}, ssh_public_key="ssh-ed25519 AAAA")
    orders.create()
    before = orders.versions()
    with Doorman(orders.hub.kubeconfig, orders.folder).open() as door:
        run = orders.play("create_cluster", kubeconfig=door.kubeconfig).well()
    assert run.changed == 0, run.output
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{orders.namespace}/leases/cluster-demo-lock"
    assert {request.path.partition("?")[0] for request in door.writes} == {lease}
    assert len(door.requests) <= 12, door.requests
    assert orders.versions() == before
    assert "holderIdentity" not in orders.lease()


def test_check_mode_predicts_what_each_playbook_then_does_and_writes_nothing(orders: Orders) -> None:
    """In the whole life of an order: each run is predicted first, and a second one of each changes nothing."""
    template = orders.template("finished", post_install="- name: Look inside\n  ansible.builtin.debug:\n    msg: inside\n")

    def foreseen(playbook: str) -> Run:
        with Doorman(orders.hub.kubeconfig, orders.folder).open() as door:
            predicted = orders.play(playbook, "demo", "--check", "--diff", kubeconfig=door.kubeconfig).well()
        assert not [request for request in door.writes if "dryRun=All" not in request.path], (playbook, door.writes)
        run = orders.play(playbook, "demo", "--diff").well()
        assert predicted.recap == run.recap, (playbook, predicted.output, run.output)
        return run

    def until_nodes(count: int) -> None:
        orders.hub.wait("hostedcluster/demo", "-n", orders.working(), "--for=condition=Available")
        orders.hub.wait("nodepool/demo-fc430", "-n", orders.working(), f"--for=jsonpath={{.status.replicas}}={count}")
        orders.play("sync_status").well()

    orders.place(template=template, nodes={"fc430": 2})
    assert foreseen("create_cluster").changed > 0
    until_nodes(2)
    orders.hub.kubectl("annotate", "nodepool/demo-fc430", "-n", orders.working(), f"{FAULT}=lose-node")
    orders.hub.wait("nodepool/demo-fc430", "-n", orders.working(), "--for=jsonpath={.status.replicas}=1")
    assert foreseen("sync_status").changed == 1
    assert foreseen("sync_status").changed == 0
    assert foreseen("post_install").changed > 0
    assert foreseen("post_install").changed == foreseen("create_cluster").changed == 0
    orders.place(template=template, nodes={"fc430": 3})
    assert foreseen("create_cluster").changed > 0
    until_nodes(2)
    cluster = ("hostedcluster/demo", "-n", orders.working())
    orders.hub.kubectl("patch", *cluster, "--type=json", "-p", HELD)  # so that nothing goes on between a run and its prediction
    assert foreseen("delete_cluster").changed > 0  # the cluster
    until(lambda: not orders.pools(), "the NodePools are gone")
    orders.hub.kubectl("patch", *cluster, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    assert f"Secret {orders.working()}/demo-pull-secret" in foreseen("delete_cluster").output  # and the namespace
    until(lambda: orders.hub.get("namespace", orders.working()) is None, "the namespace is gone")
    assert foreseen("delete_cluster").changed > 0  # the finalizers
    assert orders.is_gone()
    assert foreseen("delete_cluster").changed == 0


def test_diff_shows_the_hosted_cluster_and_no_secret(orders: Orders) -> None:
    orders.place(nodes={"fc430": 2})
    for options in (("--check", "--diff"), ("--diff",)):
        output = orders.play("create_cluster", "demo", *options).well().output
        assert f"HostedCluster {orders.working()}/demo" in output
        assert RELEASE in output and '"replicas": 2' in output
        assert f"Secret {orders.working()}/demo-pull-secret" in output and "(hidden)" in output
        assert "c2VjcmV0" not in output and base64.b64encode(PULL_SECRET.encode()).decode() not in output
    orders.place(nodes={"fc430": 3})
    output = orders.play("create_cluster", "demo", "--diff").well().output
    assert '-    "replicas": 2' in output and '+    "replicas": 3' in output
    assert "Secret" not in output


def test_deleting_an_order_removes_the_finalizers_last(orders: Orders) -> None:
    """Whatever is still there, the order is too: nothing can be forgotten."""
    orders.place(nodes={"fc430": 2})
    orders.create()
    orders.hub.kubectl("patch", "hostedcluster/demo", "-n", orders.working(), "--type=json", "-p", HELD)
    orders.play("delete_cluster").well()
    order = orders.get()
    assert order["metadata"]["deletionTimestamp"]
    assert order["metadata"]["finalizers"] == [f"{GROUP}/finalizer", f"{GROUP}/infrastructure"]
    assert order["status"]["phase"] == "Deleting"
    assert "the cluster" in orders.condition("Deleting")["message"]
    until(lambda: not orders.pools(), "the NodePools are gone")
    orders.hub.kubectl("patch", "hostedcluster/demo", "-n", orders.working(), "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    orders.delete()
    assert orders.is_gone()
    assert orders.play("delete_cluster").well().changed == 0  # gone already, and that is no failure


def test_finalizers_of_others_are_kept(orders: Orders) -> None:
    orders.place(nodes={"fc430": 1})
    orders.patch({"metadata": {"finalizers": ["example.com/billing"]}})
    orders.create()
    assert orders.get()["metadata"]["finalizers"] == ["example.com/billing", f"{GROUP}/finalizer", f"{GROUP}/infrastructure"]

    def ours_are_gone() -> bool:
        orders.play("delete_cluster").well()
        return len(orders.get()["metadata"]["finalizers"]) == 1

    until(ours_are_gone, "the cluster is gone, and with it our finalizers")
    assert orders.hub.get("namespace", orders.working()) is None
    assert orders.get()["metadata"]["finalizers"] == ["example.com/billing"]
    orders.patch({"metadata": {"finalizers": None}})
    assert orders.get() is None


def test_an_order_that_was_refused_can_be_deleted(orders: Orders) -> None:
    orders.place(template="no_such_template")
    assert orders.play("create_cluster").code != 0
    orders.delete()
    assert orders.is_gone()


def test_a_half_made_cluster_is_deleted(orders: Orders) -> None:
    """Here the namespace is all there is, as when a run was killed early."""
    orders.place(nodes={"fc430": 1})
    orders.create()
    orders.hub.kubectl("delete", "hostedcluster/demo", "nodepool/demo-fc430", "-n", orders.working(), check=False)
    orders.hub.kubectl("delete", "rolebinding,serviceaccount", "cloudkit", "-n", orders.working())
    orders.delete()
    assert orders.is_gone()


def test_orders_whose_namespace_is_deleted_whole_are_taken_down_with_it(orders: Orders) -> None:
    """No lock can be taken there any more. A deletion needs none, and whoever still makes a cluster there is refused."""
    names = ("demo", "other")
    for name in names:
        orders.place(name, nodes={"fc430": 1})
        orders.create(name)
    gate, here, go_on = orders.gate()
    orders.place(nodes={"fc430": 2})
    maker = orders.start("create_cluster", cluster_hooks={"pre_install": [gate]})
    until(here.exists, "a run that changes the cluster is on its way")
    orders.hub.kubectl("delete", "namespace", orders.namespace, "--wait=false")
    until(lambda: not orders.hub.get("leases", "-n", orders.namespace)["items"], "the Leases went with their namespace")
    until(lambda: all("deletionTimestamp" in orders.get(name)["metadata"] for name in names), "the orders are to go, too")

    before = orders.versions()
    assert orders.play("delete_cluster", None, "--check").well().changed > 0
    left = orders.play("create_cluster").well()
    assert "is being deleted" in left.output and "grant the verb" not in left.output
    go_on.touch()
    late = maker.end()
    assert late.code != 0 and "Nothing was written" in late.output
    assert orders.versions() == before and orders.pools() == {"fc430": 1}

    orders.play("delete_cluster", "demo").well()  # one by name, the other among all that need it
    until(lambda: orders.play("delete_cluster", None).well() and all(map(orders.is_gone, names)), "both orders are gone")
    until(lambda: orders.hub.get("namespace", orders.namespace) is None, "the namespace is gone")


def test_the_account_of_an_order_may_work_in_its_namespace_only(orders: Orders) -> None:
    orders.place(nodes={"fc430": 1})
    orders.create()
    account = f"--as=system:serviceaccount:{orders.working()}:cloudkit"
    assert orders.hub.kubectl("auth", "can-i", "create", "pods", "-n", orders.working(), account).stdout.strip() == "yes"
    for question in (("create", "pods", "-n", orders.namespace), ("get", "secrets", "-A"), ("create", "namespaces"), ("*", "*", "-A")):
        assert orders.hub.kubectl("auth", "can-i", *question, account, check=False).stdout.strip() == "no", question


def test_what_somebody_changed_by_hand_is_mended(orders: Orders) -> None:
    orders.place(nodes={"fc430": 2})
    orders.create()
    orders.hub.kubectl("scale", "nodepool/demo-fc430", "-n", orders.working(), "--replicas=5")
    orders.hub.kubectl("delete", "secret/demo-pull-secret", "-n", orders.working())
    assert orders.create().changed > 0
    assert orders.pools() == {"fc430": 2} and orders.names() == MADE


def test_a_real_cluster_is_ordered_finished_inside_scaled_and_deleted(hub: Access, namespace: str, tmp_path: Path) -> None:
    """Here a real API server runs behind the HostedCluster: the kubeconfig that a template is given opens it."""
    orders = Orders(hub, namespace, tmp_path)
    tasks = f"""
- name: Keep how to reach the new cluster
  ansible.builtin.copy:
    content: "{{{{ cluster_kubeconfig | to_json }}}}"
    dest: {tmp_path / "inside"}
    mode: "0600"
  no_log: true
"""
    orders.place(template=orders.template("finished", post_install=tasks), nodes={"fc430": 2})
    orders.play("create_cluster").well()
    assert orders.status()["phase"] == "Progressing"
    hub.wait("hostedcluster/demo", "-n", orders.working(), "--for=condition=Available")
    orders.play("post_install", cluster_wait_timeout=120).well()
    assert orders.status()["phase"] == "Ready"
    inside = Access(tmp_path / "inside")
    assert inside.kubectl("get", "nodes", "--no-headers").stdout.count(" Ready ") == 2
    assert orders.status()["apiURL"] in inside.kubectl("cluster-info").stdout

    orders.place(template="acme.site.finished", nodes={"fc430": 3})
    orders.play("create_cluster").well()
    orders.play("post_install", cluster_wait_timeout=120).well()
    assert orders.status()["phase"] == "Ready"
    assert inside.kubectl("get", "nodes", "--no-headers").stdout.count(" Ready ") == 3

    orders.delete(cluster_wait_timeout=120)
    assert orders.is_gone()
    assert "refused" in inside.kubectl("get", "nodes", check=False).stderr
