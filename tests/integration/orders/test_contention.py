"""Several runs for one order, and runs that die or sleep: one of them works, a late one is refused, the next one goes on."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.door import Doorman, Request
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import FencedWriter

from ..support.orders import Orders

MADE = [
    "HostedCluster/demo",
    "NodePool/demo-fc430",
    "RoleBinding/cloudkit",
    "Secret/demo-pull-secret",
    "ServiceAccount/cloudkit",
]


@pytest.mark.parametrize("wait_timeout", [0, 500], ids=["leaving-it-to-the-first", "one-after-the-other"])
def test_eight_runs_at_once_make_one_cluster_and_none_fails(orders: Orders, wait_timeout: int) -> None:
    orders.place(nodes={"fc430": 2})
    started = [orders.start("create_cluster", cluster_lock_wait_timeout=wait_timeout) for _number in range(8)]
    runs = [run.end().well() for run in started]
    assert orders.names() == MADE
    assert orders.hub.get("hostedcluster", "demo", "-n", orders.working())["metadata"]["generation"] == 1
    assert "failure" not in orders.status()
    turns = orders.lease()["leaseTransitions"]
    if wait_timeout:
        assert turns == 8 and sum(run.changed > 0 for run in runs) >= 1
        assert not [run for run in runs if "is held by" in run.output]
    else:
        assert turns + sum("is held by" in run.output for run in runs) == 8
    assert "holderIdentity" not in orders.lease()
    orders.until_phase("Ready")


def test_create_and_delete_at_once_end_in_nothing(orders: Orders) -> None:
    orders.place(nodes={"fc430": 1})
    started = [orders.start(playbook, cluster_lock_wait_timeout=60) for playbook in ("create_cluster", "delete_cluster", "create_cluster")]
    for run in started:
        run.end()
    orders.delete()
    assert orders.is_gone()


def test_a_run_without_the_lock_says_so_and_leaves_it_alone(orders: Orders) -> None:
    """Nor does deleting go around the lock, nor does the end of a run free what another one holds."""
    gate, here, go_on = orders.gate()
    orders.place(nodes={"fc430": 1})
    first = orders.start("create_cluster", cluster_hooks={"pre_install": [gate]})
    until(here.exists, "the first run holds the lock")
    held, order = orders.lease(), orders.get()
    for playbook in ("create_cluster", "delete_cluster"):
        run = orders.play(playbook).well()
        assert f"is held by {held['holderIdentity']}" in run.output and run.changed == 0
    assert orders.lease()["holderIdentity"] == held["holderIdentity"]
    assert orders.lease()["leaseTransitions"] == held["leaseTransitions"]
    assert orders.get() == order
    go_on.touch()
    first.end().well()
    assert orders.names() == MADE


def test_the_lock_of_a_killed_run_is_free_within_its_duration_and_not_earlier(orders: Orders) -> None:
    gate, here, _go_on = orders.gate()
    orders.place(nodes={"fc430": 1})
    first = orders.start("create_cluster", cluster_hooks={"pre_install": [gate]})
    until(here.exists, "the first run holds the lock")
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.wait()
    until(lambda: not [pid for pid in first.processes() if "lease_renewer" in command(pid)], "whoever renews the lock ends with its run")
    first.signal(signal.SIGKILL)
    left = orders.play("create_cluster").well()
    assert "is held by" in left.output
    duration = orders.lease()["leaseDurationSeconds"]
    run = orders.create(cluster_lock_wait_timeout=duration + 2)  # renewals are dated a second late, and the server's clock a second early
    assert "is held by" not in run.output and orders.names() == MADE
    assert orders.lease()["leaseTransitions"] == 2


def test_a_run_that_was_killed_is_told_of_on_its_order_until_the_next_one_has_ended(orders: Orders) -> None:
    """By the sync of all orders, which asks for all locks at once; while a lock is live its order is left alone."""
    gate, here, _go_on = orders.gate()
    orders.place(nodes={"fc430": 1})
    orders.place("other", nodes={"fc430": 1})
    run = orders.start("create_cluster", cluster_hooks={"pre_install": [gate]}, awx_job_id=4711)
    until(here.exists, "the run holds the lock")
    orders.play("sync_status", None).well()
    assert orders.status()["phase"] == "Progressing" and "failure" not in orders.status()
    run.signal(signal.SIGKILL)
    run.process.wait()
    untouched = orders.get()
    orders.play("sync_status", None).well()
    assert orders.get() == untouched  # its lock has not run out

    orders.patch_lease({"renewTime": "2020-01-01T00:00:00.000000Z"})  # as if its time had passed
    with Doorman(orders.hub.kubeconfig, orders.folder).open() as door:
        assert orders.play("sync_status", None, "--check", kubeconfig=door.kubeconfig).well().changed == 1
        assert orders.play("sync_status", None, kubeconfig=door.kubeconfig).well().changed == 1
    assert sum("leases" in request.path for request in door.requests) == 2
    status = orders.status()
    failure = status["failure"]
    assert (status["phase"], failure["reason"], failure["retryable"]) == ("Failed", "RunLost", True)
    assert orders.lease()["holderIdentity"] in failure["message"] and "4711" in failure["message"]
    assert "failure" not in orders.status("other")
    recorded = orders.get()
    assert orders.play("sync_status").well().changed == 0
    assert orders.get() == recorded

    orders.create()
    assert "failure" not in orders.status()


def test_a_run_whose_api_server_goes_away_in_the_middle_is_told_of_too(orders: Orders) -> None:
    """It can write nothing any more, not even that it failed; what it has left behind is its lock."""
    orders.place(nodes={"fc430": 1})

    def go_away(request: Request) -> None:
        if away or (request.is_write and "hostedclusters" in request.path):
            away.append(request)
            raise ConnectionAbortedError

    away: list[Request] = []
    with Doorman(orders.hub.kubeconfig, orders.folder).open() as door:
        door.before = go_away
        run = orders.play("create_cluster", kubeconfig=door.kubeconfig)
    assert run.code != 0 and "Traceback" not in run.output
    assert orders.status()["phase"] == "Progressing" and orders.lease()["holderIdentity"]
    orders.patch_lease({"renewTime": "2020-01-01T00:00:00.000000Z"})  # as if its time had passed
    orders.play("sync_status").well()
    assert orders.status()["failure"]["reason"] == "RunLost"
    orders.create()
    assert "failure" not in orders.status()


def test_a_run_that_wakes_up_late_is_refused_and_changes_nothing(orders: Orders) -> None:
    gate, here, go_on = orders.gate()
    orders.place(nodes={"fc430": 1})
    sleeper = orders.start("create_cluster", cluster_hooks={"pre_install": [gate]})
    until(here.exists, "the first run holds the lock")
    sleeper.signal(signal.SIGSTOP)
    orders.patch_lease({"renewTime": "2020-01-01T00:00:00.000000Z"})  # as if its time had passed
    orders.place(nodes={"fc430": 3})
    orders.create()
    before = orders.versions()
    go_on.touch()
    sleeper.signal(signal.SIGCONT)
    late = sleeper.end()
    assert late.code != 0 and "Nothing was written" in late.output
    assert orders.versions() == before
    assert orders.pools() == {"fc430": 3}
    assert orders.status()["phase"] == "Ready" and "failure" not in orders.status()
    assert orders.lease()["leaseTransitions"] == 2


def test_a_lease_that_somebody_has_deleted_does_not_block_the_order(orders: Orders) -> None:
    """By hand, or because a backup has none: the tokens of earlier runs are on the cluster's objects all the same."""
    for nodes in (1, 2, 3):
        orders.place(nodes={"fc430": nodes})
        orders.create()
    assert orders.lease()["leaseTransitions"] == 3
    for nodes in (4, 5):
        orders.hub.kubectl("delete", "lease", "cluster-demo-lock", "-n", orders.namespace)
        orders.place(nodes={"fc430": nodes})
        orders.play("create_cluster", "demo", "--check").well()
        orders.create()
        assert orders.pools() == {"fc430": nodes}
    orders.delete()


def test_a_run_that_sleeps_between_two_writes_finds_the_lock_gone(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    """The objects that it has yet to write are as they were: they still carry its token, and the next run left them alone."""
    kube = Kube.connect({"kubeconfig": str(orders.hub.kubeconfig)})
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": orders.namespace}} for name in "ab"]
    writer = FencedWriter(kube, lease.acquire(kube, orders.namespace, "demo", "sleeper"), "example.com/token")
    writer.apply(items)
    orders.patch_lease({"renewTime": "2020-01-01T00:00:00.000000Z"})
    lease.acquire(kube, orders.namespace, "demo", "another")
    slept = time.monotonic() + lease.DURATION + 1
    monkeypatch.setattr(time, "monotonic", lambda: slept)
    with pytest.raises(lease.LockLost):
        writer.apply([item | {"data": {"late": "yes"}} for item in items])
    with pytest.raises(lease.LockLost):
        writer.delete(items)
    assert [kube.get("v1", "ConfigMap", name, orders.namespace).get("data") for name in "ab"] == [None, None]


def test_a_deletion_that_wakes_up_late_does_not_touch_the_next_order_of_that_name(orders: Orders) -> None:
    gate, here, go_on = orders.gate()
    orders.place(nodes={"fc430": 1})
    orders.create()
    sleeper = orders.start("delete_cluster", cluster_hooks={"pre_delete": [gate]})
    until(here.exists, "the deletion holds the lock")
    sleeper.signal(signal.SIGSTOP)
    orders.free_lock()
    orders.delete()
    assert orders.is_gone()
    orders.place(nodes={"fc430": 2})
    orders.create()
    before = orders.versions()
    go_on.touch()
    sleeper.signal(signal.SIGCONT)
    sleeper.end()
    assert orders.versions() == before and orders.status()["phase"] == "Ready"


KILLED_AT_MOST = 20


@pytest.mark.parametrize("playbook", ["create_cluster", "delete_cluster"])
def test_a_run_that_was_killed_at_any_task_is_simply_run_again(orders: Orders, playbook: str) -> None:
    def is_killed(name: str, task: int) -> bool:
        return orders.play(playbook, name, environment=orders.killer(task)).code == -signal.SIGKILL

    assert len(kill_each_time(orders, playbook, is_killed)) >= 5


@pytest.mark.parametrize("playbook", ["create_cluster", "delete_cluster"])
def test_a_run_that_was_killed_at_any_write_is_simply_run_again(orders: Orders, playbook: str) -> None:
    assert len(kill_each_time(orders, playbook, lambda name, number: killed_at_write(orders, playbook, name, number))) >= 8


def kill_each_time(orders: Orders, playbook: str, is_killed: Callable[[str, int], bool]) -> list[str]:
    """Kill runs of the playbook one moment later each time, until one comes to its end; run all again, and look at the result."""
    names = [f"at-{number}" for number in range(1, KILLED_AT_MOST + 1)]
    for name in names:
        orders.place(name, nodes={"fc430": 1})
    if playbook == "delete_cluster":
        orders.play("create_cluster", None, cluster_orders=[f"{orders.namespace}/{name}" for name in names]).well()
    killed = list(itertools.takewhile(lambda name: is_killed(name, names.index(name) + 1), names))
    assert len(killed) < KILLED_AT_MOST
    run_again(orders, playbook, killed)
    return killed


def killed_at_write(orders: Orders, playbook: str, name: str, number: int) -> bool:
    """Run the playbook, and kill all its processes when it asks for this write, which is not made."""
    with Doorman(orders.hub.kubeconfig, orders.folder).open() as door:
        run = orders.start(playbook, name, kubeconfig=door.kubeconfig, cluster_wait_timeout=200)

        def kill(_request: Request) -> None:
            if len(door.writes) >= number:
                run.signal(signal.SIGKILL)
                raise ConnectionAbortedError

        door.before = kill
        return run.end().code == -signal.SIGKILL


def run_again(orders: Orders, playbook: str, names: list[str]) -> None:
    """All in one run, after their locks would have expired."""
    for name in names:
        if orders.lease(name):
            orders.free_lock(name)
    chosen = [f"{orders.namespace}/{name}" for name in names]
    orders.play(playbook, None, cluster_orders=chosen, cluster_wait_timeout=200).well()
    for name in names:
        if playbook == "delete_cluster":
            assert orders.is_gone(name), name
            continue
        assert orders.names(name) == [entry.replace("demo", name) for entry in MADE], name
        assert orders.pools(name) == {"fc430": 1}, name
        status = orders.status(name)
        assert status["phase"] == "Ready" and "failure" not in status, name
        assert orders.get(name)["metadata"]["finalizers"] == [f"{orders.group}/finalizer", f"{orders.group}/infrastructure"], name


def command(pid: int) -> str:
    """What the process was started as; nothing if it has ended meanwhile."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    return ""
