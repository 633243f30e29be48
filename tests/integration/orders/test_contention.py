"""Several runs for one order, and runs that die or sleep: one of them works, a late one is refused, the next one continues."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.api_proxy import ApiProxy, Request
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import FencedWriter

from ..support import mortal
from ..support.in_process import InProcessRun
from ..support.orders import CREATED, Orders

RUNS = 8


def at_once(orders: Orders, *steps: str, wait_timeout: int = 0) -> list[InProcessRun]:
    """Runs of these steps for one order, each in a thread of its own."""
    with ThreadPoolExecutor(len(steps)) as threads:
        return list(threads.map(lambda step: orders.run(step, "demo", wait_timeout=wait_timeout).complete(), steps))


@pytest.mark.soak
@pytest.mark.parametrize("wait_timeout", [0, 500], ids=["skipped-by-all-but-the-first", "one-after-the-other"])
def test_eight_runs_at_once_create_one_cluster_and_none_fails(orders: Orders, wait_timeout: int) -> None:
    orders.apply(nodes={"fc430": 2})
    runs = [run.successful() for run in at_once(orders, *["provision"] * RUNS, wait_timeout=wait_timeout)]
    assert orders.names() == CREATED
    assert orders.hosted_cluster()["metadata"]["generation"] <= 2  # the stand-in fills in the ids once
    assert "failure" not in orders.status()
    turns, refused = orders.lease()["leaseTransitions"], sum("is held by" in run.messages for run in runs)
    if wait_timeout:
        assert (turns, refused) == (RUNS, 0) and sum(run.changed > 0 for run in runs) >= 1
    else:
        assert turns + refused == RUNS
    assert "holderIdentity" not in orders.lease()
    orders.until_phase("Ready")


@pytest.mark.soak
def test_create_and_delete_at_once_end_in_nothing(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 1})
    at_once(orders, "provision", "delete", "provision", wait_timeout=60)
    orders.remove()
    assert orders.is_deleted()


def test_a_run_without_the_lock_says_so_and_does_not_touch_it(orders: Orders) -> None:
    """Nor does a deletion work without the lock, nor does the end of a run release what another one holds."""
    orders.apply(nodes={"fc430": 1})
    first = orders.run("provision", "demo")
    held, order = orders.lease(), orders.get()
    for step in ("provision", "delete"):
        run = orders.run(step, "demo").complete().successful()
        assert f"is held by {held['holderIdentity']}" in run.messages and run.changed == 0
    assert orders.lease() == held
    assert orders.get() == order
    first.complete().successful()
    assert orders.names() == CREATED


def test_a_lost_run_is_reported_on_its_order_until_the_next_one_has_ended(orders: Orders) -> None:
    """By the sync of all orders, which reads all locks at once; while a lock is live its order is not judged."""
    orders.apply(nodes={"fc430": 1})
    orders.apply("other", nodes={"fc430": 1})
    orders.run("provision", "demo", job_id="4711")  # and nothing more is heard of it
    orders.sync()
    assert orders.status()["phase"] == "Progressing" and "failure" not in orders.status()
    untouched = orders.get()
    orders.sync()
    assert orders.get() == untouched  # its lock has not expired

    orders.expire_lock()
    with ApiProxy(orders.hub.kubeconfig, orders.folder).open() as proxy:
        assert orders.sync(check=True, kubeconfig=proxy.kubeconfig)["changed"]
        assert orders.sync(kubeconfig=proxy.kubeconfig)["changed"]
    assert sum("leases" in request.path for request in proxy.requests) == 2
    status = orders.status()
    failure = status["failure"]
    assert (status["phase"], failure["reason"], failure["retryable"]) == ("Failed", "RunLost", True)
    assert orders.lease()["holderIdentity"] in failure["message"] and "4711" in failure["message"]
    assert "failure" not in orders.status("other")
    recorded = orders.get()
    assert not orders.sync("demo")["changed"]
    assert orders.get() == recorded

    orders.provision()
    assert "failure" not in orders.status()


def test_a_run_whose_api_server_breaks_down_in_the_middle_is_reported_too(orders: Orders) -> None:
    """It can write nothing any more, not even that it failed; what it has left behind is its lock."""
    orders.apply(nodes={"fc430": 1})
    broken: list[Request] = []

    def break_down(request: Request) -> None:
        if broken or (request.is_write and "hostedclusters" in request.path):
            broken.append(request)
            raise ConnectionAbortedError

    with ApiProxy(orders.hub.kubeconfig, orders.folder).open() as proxy:
        proxy.before = break_down
        run = orders.run("provision", "demo", kubeconfig=proxy.kubeconfig).complete()
    assert not run.is_successful and "does not answer" in run.messages
    assert orders.status()["phase"] == "Progressing" and orders.lease()["holderIdentity"]
    orders.expire_lock()
    orders.sync("demo")
    assert orders.status()["failure"]["reason"] == "RunLost"
    orders.provision()
    assert "failure" not in orders.status()


def test_a_run_that_wakes_up_late_is_refused_and_changes_nothing(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 1})
    sleeper = orders.run("provision", "demo")
    orders.expire_lock()
    orders.apply(nodes={"fc430": 3})
    orders.provision()
    before = orders.versions()
    sleeper.complete()
    assert not sleeper.is_successful and "Nothing was written" in sleeper.messages
    assert orders.versions() == before
    assert orders.pools() == {"fc430": 3}
    assert orders.status()["phase"] == "Ready" and "failure" not in orders.status()
    assert orders.lease()["leaseTransitions"] == 2


def test_a_deleted_lease_does_not_block_the_order(orders: Orders) -> None:
    """Deleted by hand, or missing in a backup: the tokens of earlier runs are on the cluster's objects all the same."""
    for nodes in (1, 2, 3):
        orders.apply(nodes={"fc430": nodes})
        orders.provision()
    assert orders.lease()["leaseTransitions"] == 3
    for nodes in (4, 5):
        orders.kube.delete(orders.kube.get(lease.API_VERSION, "Lease", lease.lease_name(orders.namespace, "demo"), lease.SITE_NAMESPACE))
        orders.apply(nodes={"fc430": nodes})
        orders.run("provision", "demo", check=True).complete().successful()
        orders.provision()
        assert orders.pools() == {"fc430": nodes}
    orders.remove()


def test_a_run_that_sleeps_between_two_writes_finds_its_lock_lost(orders: Orders) -> None:
    """The objects that it has yet to write still have its token, because the next run did not need to change them."""
    kube = Kube.connect({"kubeconfig": str(orders.hub.kubeconfig)})
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": orders.namespace}} for name in "ab"]
    now = [1000.0]
    held = lease.acquire(kube, orders.namespace, "demo", "sleeper")
    writer = FencedWriter(kube, held, "example.com/token", clock=lambda: now[0])
    writer.apply(items)
    orders.expire_lock()
    lease.acquire(kube, orders.namespace, "demo", "another")
    now[0] += lease.DURATION + 1
    with pytest.raises(lease.LockLost):
        writer.apply([item | {"data": {"late": "yes"}} for item in items])
    with pytest.raises(lease.LockLost):
        writer.delete(items)
    assert [kube.get("v1", "ConfigMap", name, orders.namespace).get("data") for name in "ab"] == [None, None]


def test_a_deletion_that_wakes_up_late_does_not_touch_the_next_order_of_that_name(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    sleeper = orders.run("delete", "demo")
    orders.free_lock()
    orders.remove()
    assert orders.is_deleted()
    orders.apply(nodes={"fc430": 2})
    orders.provision()
    before = orders.versions()
    sleeper.complete()
    assert orders.versions() == before and orders.status()["phase"] == "Ready"


# What a run makes at least, and more than it makes at most: it writes once more for each state of its cluster that it
# meets.
LEAST_WRITES, WRITES = 8, 20


@pytest.mark.parametrize("step", ["provision", "delete"])
def test_a_run_that_dies_at_any_write_is_simply_run_again(orders: Orders, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """One run dies at its first write, the next at its second, and so on; all that died are run again."""
    names = [f"at-{number}" for number in range(1, WRITES + 1)]
    for name in names:
        orders.apply(name, nodes={"fc430": 1})
    if step == "delete":
        orders.run("provision", *names).complete(wait=200).successful()
    monkeypatch.setattr(Kube, "connect", mortal.connect)
    with ThreadPoolExecutor(WRITES) as threads:
        died = threads.map(
            lambda number, name: mortal.dies_at(number, lambda: orders.run(step, name).complete(60)), range(1, WRITES + 1), names
        )
        killed = [name for name, is_killed in zip(names, died, strict=True) if is_killed]
    assert killed[:LEAST_WRITES] == names[:LEAST_WRITES] and len(killed) < WRITES
    for name in killed:
        if orders.lease(name):
            orders.free_lock(name)
    orders.run(step, *killed).complete(wait=600).successful()
    for name in killed:
        assert_complete(orders, step, name)


def assert_complete(orders: Orders, step: str, name: str) -> None:
    if step == "delete":
        assert orders.is_deleted(name), name
        return
    assert orders.names(name) == [entry.replace("demo", name) for entry in CREATED], name
    assert orders.pools(name) == {"fc430": 1}, name
    status = orders.status(name)
    assert status["phase"] == "Ready" and "failure" not in status, name
    assert orders.get(name)["metadata"]["finalizers"] == [f"{orders.group}/finalizer", f"{orders.group}/infrastructure"], name
