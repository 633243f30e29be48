"""The life of a cluster order, step by step in this process: created, changed, observed, deleted, created again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.api_proxy import ApiProxy, Request
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import COLLECTION_CRDS, load_crd
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import CONNECTIONS
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import lease_name

from ..support.orders import CREATED, GROUP, NEXT_RELEASE, OTHER_GROUP, RELEASE, Orders
from ..support.samples import FAULT


@pytest.fixture(params=[GROUP, OTHER_GROUP])
def anywhere(request: pytest.FixtureRequest, quick_hub: Access, tmp_path: Path) -> Iterator[Orders]:
    """A namespace for orders of each API group."""
    hub, group = quick_hub, request.param
    if group != GROUP:
        hub.install_crds(load_crd(COLLECTION_CRDS / "clusterorders.yaml", group))
    with fresh_namespace(hub) as namespace:
        orders = Orders(hub, namespace, tmp_path, group)
        yield orders
        orders.clean_up()


def lose_node(orders: Orders) -> None:
    orders.patch_pool({"metadata": {"annotations": {FAULT: "lose-node"}}})


def recover_node(orders: Orders) -> None:
    orders.patch_pool({"metadata": {"annotations": {FAULT: None}}})


def test_an_order_is_provisioned_changed_deleted_and_created_again(anywhere: Orders) -> None:
    orders = anywhere
    orders.apply(nodes={"fc430": 2})
    orders.provision()
    assert orders.names() == CREATED
    assert orders.pools() == {"fc430": 2}
    status = orders.status()
    assert status["nodeSets"] == [{"resourceClass": "fc430", "requested": 2, "ready": 2}]
    assert status["clusterReference"] == {
        "namespace": orders.working(),
        "hostedClusterName": "demo",
        "serviceAccountName": "",
        "roleBindingName": "",
    }
    assert status["apiURL"].startswith("https://127.0.0.1:") and "failure" not in status
    assert orders.get()["metadata"]["finalizers"] == [f"{orders.group}/finalizer", f"{orders.group}/infrastructure"]

    orders.apply(nodes={"fc430": 3, "fc640": 1})  # one more, and a class added
    orders.provision()
    assert orders.pools() == {"fc430": 3, "fc640": 1}
    orders.apply(nodes={"fc430": 1})  # fewer, and the class removed
    orders.provision()
    until(lambda: orders.pools() == {"fc430": 1}, "the NodePool of the class that was removed is deleted")

    orders.apply(nodes={"fc430": 1}, release_image=NEXT_RELEASE)
    orders.provision()
    releases = [item["spec"]["release"]["image"] for item in orders.objects() if item["kind"] in ("HostedCluster", "NodePool")]
    assert releases == [NEXT_RELEASE, NEXT_RELEASE]

    orders.remove()
    assert orders.is_deleted()
    orders.apply(nodes={"fc430": 2})
    orders.provision()
    assert orders.pools() == {"fc430": 2}
    assert orders.hosted_cluster()["spec"]["release"]["image"] == RELEASE


def test_an_order_without_nodes_gets_those_of_its_template(orders: Orders) -> None:
    orders.apply()
    orders.provision()
    assert orders.pools() == {"fc430": 2}
    assert orders.status()["nodeSets"] == [{"resourceClass": "fc430", "requested": 2, "ready": 2}]


def test_an_order_is_ready_with_its_nodes_and_degraded_without_them(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 2})
    orders.provision()
    lose_node(orders)
    orders.until_phase("Degraded")
    nodes = orders.condition("NodesReady")
    assert (nodes["status"], nodes["message"]) == ("False", "1 of 2 nodes ready")
    assert "1 of 2 nodes ready" in orders.condition("ClusterAvailable")["message"]
    recover_node(orders)
    orders.until_phase("Ready")
    assert orders.condition("NodesReady")["status"] == "True"


def test_however_many_orders_are_waited_for_none_waits_for_another(orders: Orders) -> None:
    """As many that are not Ready before their post_install as there are connections, and one behind them that soon is."""
    unfinished = orders.template("unfinished", post_install="[]\n")
    slow = [f"slow-{number}" for number in range(CONNECTIONS)]
    for name in slow:
        orders.apply(name, template=unfinished, nodes={"fc430": 1})
    orders.apply("quick", nodes={"fc430": 1})
    over = threading.Event()

    def fail_when_over(_request: Request) -> None:
        if over.is_set():
            raise ConnectionAbortedError

    with ApiProxy(orders.hub.kubeconfig, orders.folder).open() as proxy:
        proxy.before = fail_when_over
        run = orders.run("provision", *slow, "quick", kubeconfig=proxy.kubeconfig).run_templates()
        waiting = threading.Thread(target=run.finish, args=(500,))
        waiting.start()
        try:
            until(lambda: orders.status("quick").get("phase") == "Ready" and "holderIdentity" not in orders.lease("quick"), "it is done")
            assert all("holderIdentity" in orders.lease(name) for name in slow)
        finally:
            over.set()  # nothing else would end the wait for the others
            waiting.join()


def test_an_order_that_is_deleted_while_all_are_synced_is_no_failure(orders: Orders) -> None:
    orders.apply("deleted")
    orders.apply("kept")

    def delete_it(request: Request) -> None:
        if request.is_write and "/deleted/" in request.path:
            orders.ask_to_delete("deleted")

    with ApiProxy(orders.hub.kubeconfig, orders.folder).open() as proxy:
        proxy.before = delete_it
        assert not orders.sync("deleted", "kept", kubeconfig=proxy.kubeconfig).get("failed")
    assert orders.get("deleted") is None and orders.status("kept")["phase"] == "Progressing"


def test_an_order_is_not_ready_before_its_nodes_are(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 2})
    orders.provision()
    lose_node(orders)
    orders.apply(nodes={"fc430": 3})
    orders.provision(wait=0)
    orders.sync("demo")
    assert orders.status()["phase"] == "Progressing"
    assert orders.condition("NodesReady")["status"] == "False"


def test_a_second_run_changes_nothing_and_writes_only_its_lock(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 2, "fc640": 1}, ssh_public_key="ssh-ed25519 AAAA")
    orders.provision()
    before = orders.versions()
    with ApiProxy(orders.hub.kubeconfig, orders.folder).open() as proxy:
        run = orders.provision(wait=0, kubeconfig=proxy.kubeconfig)
    assert run.changed == 0
    lease = f"/apis/coordination.k8s.io/v1/namespaces/openfleet-system/leases/{lease_name(orders.namespace, 'demo')}"
    assert {request.path.partition("?")[0] for request in proxy.writes} == {lease}
    assert len(proxy.requests) <= 14, proxy.requests
    assert orders.versions() == before
    assert "holderIdentity" not in orders.lease()


def test_check_mode_predicts_what_each_step_then_does_and_writes_nothing(orders: Orders) -> None:
    """In the whole life of an order: each run is predicted first, and a second one of each changes nothing."""
    template = orders.template("finished", post_install="[]\n")

    def predicted(step: str) -> int:
        """How many tasks of this step changed something, as was predicted."""
        with ApiProxy(orders.hub.kubeconfig, orders.folder).open() as proxy:
            if step == "sync":
                counts = [orders.sync("demo", check=check, kubeconfig=proxy.kubeconfig)["changed"] for check in (True, False)]
            else:
                counts = [_changes(orders, step, check, proxy) for check in (True, False)]
        assert counts[0] == counts[1], step
        return int(counts[0])

    def until_nodes(count: int) -> None:
        orders.hub.wait("hostedcluster/demo", "-n", orders.working(), "--for=condition=Available")
        orders.hub.wait("nodepool/demo-fc430", "-n", orders.working(), f"--for=jsonpath={{.status.replicas}}={count}")
        orders.sync("demo")

    orders.apply(template=template, nodes={"fc430": 2})
    assert predicted("provision") > 0
    until_nodes(2)
    lose_node(orders)
    orders.hub.wait("nodepool/demo-fc430", "-n", orders.working(), "--for=jsonpath={.status.replicas}=1")
    assert predicted("sync") == 1
    assert predicted("sync") == 0
    assert predicted("post_install") > 0
    assert predicted("post_install") == predicted("provision") == 0
    orders.apply(template=template, nodes={"fc430": 3})
    assert predicted("provision") > 0
    until_nodes(2)
    orders.hold_cluster()  # so that nothing changes between a run and its prediction
    assert predicted("delete") > 0  # the cluster
    until(lambda: not orders.pools(), "the NodePools are deleted")
    orders.release_cluster()
    until(lambda: orders.hosted_cluster() is None, "the HostedCluster is deleted")
    assert predicted("delete") > 0  # and the namespace
    until(lambda: orders.hub.get("namespace", orders.working()) is None, "the namespace is deleted")
    assert predicted("delete") > 0  # the finalizers
    assert orders.is_deleted()
    assert predicted("delete") == 0


def _changes(orders: Orders, step: str, check: bool, proxy: ApiProxy) -> int:
    run = orders.run(step, "demo", check=check, kubeconfig=proxy.kubeconfig).complete().successful()
    assert not check or not [request for request in proxy.writes if "dryRun=All" not in request.path], (step, proxy.writes)
    return run.changed


def test_deleting_an_order_removes_the_finalizers_last(orders: Orders) -> None:
    """Whatever is still there, the order is too: nothing can be forgotten."""
    orders.apply(nodes={"fc430": 2})
    orders.provision()
    orders.hold_cluster()
    orders.remove(wait=0)
    order = orders.get()
    assert order["metadata"]["deletionTimestamp"]
    assert order["metadata"]["finalizers"] == [f"{GROUP}/finalizer", f"{GROUP}/infrastructure"]
    assert order["status"]["phase"] == "Deleting"
    assert "the cluster" in orders.condition("Deleting")["message"]
    until(lambda: not orders.pools(), "the NodePools are deleted")
    orders.release_cluster()
    orders.remove()
    assert orders.is_deleted()
    assert orders.remove().changed == 0  # deleted already, which is no failure


def test_finalizers_of_others_are_kept(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 1})
    orders.patch({"metadata": {"finalizers": ["example.com/billing"]}})
    orders.provision()
    assert orders.get()["metadata"]["finalizers"] == ["example.com/billing", f"{GROUP}/finalizer", f"{GROUP}/infrastructure"]

    def ours_are_removed() -> bool:
        orders.remove(wait=0)
        return len(orders.get()["metadata"]["finalizers"]) == 1

    until(ours_are_removed, "the cluster is deleted, and with it our finalizers")
    assert orders.hub.get("namespace", orders.working()) is None
    assert orders.get()["metadata"]["finalizers"] == ["example.com/billing"]
    orders.patch({"metadata": {"finalizers": None}})
    assert orders.get() is None


def test_an_order_that_was_refused_can_be_deleted(orders: Orders) -> None:
    orders.apply(template="no_such_template")
    assert not orders.run("provision", "demo").is_successful
    orders.remove()
    assert orders.is_deleted()


def test_a_half_created_cluster_is_deleted(orders: Orders) -> None:
    """Here the namespace is all there is, as when a run was killed early."""
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    for item in orders.objects():
        if item["kind"] != "Secret":
            orders.kube.delete(item)
    secrets = ["Secret/demo-etcd-encryption-key", "Secret/demo-pull-secret", "Secret/demo-ssh-key"]
    until(lambda: orders.names() == secrets, "the cluster is deleted")
    orders.remove()
    assert orders.is_deleted()


def test_orders_whose_namespace_is_deleted_as_a_whole_are_deleted_with_it(orders: Orders) -> None:
    """The locks are elsewhere, so that a run that is in progress completes, and the deletion waits for it."""
    names = ("demo", "other")
    for name in names:
        orders.apply(name, nodes={"fc430": 1})
        orders.provision(name)
    orders.apply(nodes={"fc430": 2})
    late = orders.run("provision", "demo")
    orders.kube.delete(orders.kube.get("v1", "Namespace", orders.namespace))
    until(lambda: all("deletionTimestamp" in orders.get(name)["metadata"] for name in names), "the orders are being deleted, too")

    assert "is held by" in orders.run("delete", "demo").messages
    late.complete().successful()
    before = orders.versions()
    assert orders.run("delete", check=True).complete().successful().changed > 0
    assert "is being deleted" in orders.run("provision", "demo").complete().successful().messages
    assert orders.versions() == before

    orders.remove("demo", wait=0)  # one by name, the other among all that need it
    until(lambda: orders.run("delete").complete().successful() and all(map(orders.is_deleted, names)), "both orders are deleted")


def test_no_account_has_permissions_in_a_working_namespace(orders: Orders) -> None:
    """Kubernetes itself creates the account default, without permissions."""
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    accounts = orders.kube.list_all("v1", "ServiceAccount", orders.working())
    assert {account["metadata"]["name"] for account in accounts} <= {"default"}
    bindings = orders.kube.list_all("rbac.authorization.k8s.io/v1", "RoleBinding", orders.working())
    # Without a namespace of the site for Agents, HyperShift looks for them here, with a permission of its own.
    assert all(binding["metadata"]["name"].startswith("cluster-api-agent-") for binding in bindings)


def test_what_was_changed_by_hand_is_repaired(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 2})
    orders.provision()
    orders.patch_pool({"spec": {"replicas": 5}})
    orders.kube.delete(orders.kube.get("v1", "Secret", "demo-pull-secret", orders.working()))
    assert orders.provision().changed > 0
    assert orders.pools() == {"fc430": 2} and orders.names() == CREATED
