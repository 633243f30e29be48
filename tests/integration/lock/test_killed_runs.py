"""A lock lives exactly as long as its run, whenever that is killed; and a run writes no longer than it holds the lock."""

from __future__ import annotations

import datetime
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.action import cluster_order_prepare
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease, renewer
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import FencedWriter

from ..support import killed_runs
from ..support.in_process import act
from ..support.orders import Orders

MOMENTS = 8
MUTE = "#!/bin/sh\nexec sleep 60\n"  # a program that confirms nothing


def killed(module: str, arguments: dict[str, Any], names: list[str]) -> tuple[int, dict[str, datetime.datetime]]:
    """How many lines the task has, and when the run of each name was killed: at its begin, then at moments spread over the task."""
    moments = [(number + random.random()) / (len(names) - 1) for number in range(len(names) - 1)]  # noqa: S311 - keeps no secret
    moments[0] = 0.0  # no other is certain to be before the lock is taken
    work = {"module": module, "arguments": arguments, "names": names, "moments": moments}
    command = [sys.executable, "-m", killed_runs.__name__]
    done = subprocess.run(command, input=json.dumps(work), capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"after {moments} a process of a killed run has not ended: {done.stderr}"
    answer = json.loads(done.stdout.splitlines()[-1])
    times = [datetime.datetime.fromtimestamp(ended, datetime.UTC) for ended in answer["deaths"]]
    return answer["lines"], dict(zip(names, times, strict=True))


def assert_not_held_after(kube: Kube, namespace: str, deaths: dict[str, datetime.datetime]) -> int:
    """Each lock is free, or was taken before its run was killed and never renewed. Returns how many were taken."""
    held = 0
    for name, died in deaths.items():
        state = lease.read(kube, namespace, name)
        if state.holder:
            acquired = datetime.datetime.fromisoformat(state.acquired)
            assert acquired <= died, f"{name} was locked by a run that had ended"
            assert state.renewed == acquired + lease.SECOND, f"the lock of {name} was renewed"
            held += 1
    return held


@pytest.mark.parametrize(("module", "more"), [("cluster_lock", {"duration": 600}), ("cluster_order_prepare", {"step": "provision"})])
def test_no_process_keeps_the_lock_of_a_run_that_was_killed(orders: Orders, module: str, more: dict[str, Any], soak: int) -> None:
    names = [f"order-{number}" for number in range(MOMENTS * soak + 1)]
    for name in names:
        orders.apply(name, nodes={"fc430": 1})
    lines, deaths = killed(module, {"kubeconfig": str(orders.hub.kubeconfig), "namespace": orders.namespace, **more}, names)
    assert lines > 100
    held = assert_not_held_after(orders.kube, orders.namespace, deaths)
    assert 1 <= held < len(names), "of a run that was killed before it acquired the lock, the lock is free"


# A renewer that cannot start


@pytest.mark.parametrize(
    ("python", "said"), [("/nowhere/python", "does not start"), ("/bin/false", "ended with status 1"), (MUTE, "does not answer")]
)
@pytest.mark.parametrize("module", ["cluster_lock", "cluster_order_prepare"])
def test_a_run_whose_locks_cannot_be_renewed_fails_and_holds_none(
    orders: Orders, module: str, python: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if python == MUTE:
        script = tmp_path / "python"
        script.write_text(MUTE)
        script.chmod(0o755)
        python = str(script)
        monkeypatch.setattr(renewer, "START_SECONDS", 0.5)
    monkeypatch.setattr(cluster_order_prepare, "Renewer", renewer.Renewer)
    monkeypatch.setattr(renewer.sys, "executable", python)
    orders.apply(nodes={"fc430": 1})
    more = {"step": "provision"} if module == "cluster_order_prepare" else {}
    answer = act(module, {"kubeconfig": str(orders.hub.kubeconfig), "namespace": orders.namespace, "name": "demo", **more})
    skipped = answer.get("skipped_orders") or [{"failed": answer.get("failed"), "reason": answer.get("reason"), "message": answer["msg"]}]
    assert [(entry["failed"], entry["reason"]) for entry in skipped] == [(True, "RenewerFailed")]
    assert said in skipped[0]["message"]
    assert not answer.get("orders") and not answer.get("locks")
    assert lease.read(orders.kube, orders.namespace, "demo").holder == ""
    was_taken = lease.read(orders.kube, orders.namespace, "demo").token > 0
    assert was_taken or said != "does not answer", "such a process is noticed only after the lock was taken"
    if was_taken and module == "cluster_order_prepare":
        assert said in orders.status()["failure"]["message"], "the order says so"


# A run whose renewals fail


def test_a_run_stops_writing_before_a_lease_ends_that_is_not_renewed(hub: Access, namespace: str) -> None:
    kube = Kube.connect({"kubeconfig": str(hub.kubeconfig)})
    held = lease.acquire(kube, namespace, "demo", "run", duration=8)  # in which also a busy machine writes twice
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo", "namespace": namespace}}
    expires = lease.read(kube, namespace, "demo").expires()
    writer = FencedWriter(kube, held, "example.com/token")
    writers, last, number = [writer, writer.on(Kube(kube.target))], datetime.datetime.now(datetime.UTC), 0
    while writers:
        number += 1
        try:
            began = datetime.datetime.now(datetime.UTC)
            writers[0].apply([item | {"data": {"number": str(number)}}])
            last = began  # the machine may stall before the answer
            writers.append(writers.pop(0))
        except lease.LockExpired:
            writers.pop(0)
    assert number > 3
    assert expires and last < expires
    assert lease.read(kube, namespace, "demo").holder == "run", "no other run has taken it"


# A write that arrives late


@pytest.mark.parametrize("late", ["create", "change", "create again", "delete"])
def test_a_write_that_was_stopped_after_its_check_changes_nothing_of_the_next_run(hub: Access, namespace: str, late: str) -> None:
    kube = Kube.connect({"kubeconfig": str(hub.kubeconfig)})
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo", "namespace": namespace}, "data": {"by": "next"}}
    held = lease.acquire(kube, namespace, "demo", "first")
    if late != "create":
        FencedWriter(kube, held, "example.com/token").apply([item])

    class Stopped(Kube):
        """Before the write of the first run is sent, the next run acquires the lock and writes."""

        def _send(self, sent: Any, method: str, *arguments: Any, **options: Any) -> Any:
            if method in ("PATCH", "DELETE") and sent["kind"] == "ConfigMap" and lease.release(kube, held):
                writer = FencedWriter(kube, lease.acquire(kube, namespace, "demo", "next"), "example.com/token")
                if late == "create again":
                    writer.delete([item])
                else:
                    writer.apply([item | {"data": {"by": "next run"}}])
            return super()._send(sent, method, *arguments, **options)

    stopped = FencedWriter(Stopped(kube.target), held, "example.com/token")
    stopped._held_until = float("inf")  # noqa: SLF001 - it has checked its lock
    with pytest.raises(lease.LockLost):
        stopped.delete([item]) if late == "delete" else stopped.apply([item | {"data": {"by": "first"}}])
    found = kube.find("v1", "ConfigMap", "demo", namespace)
    assert (found or {}).get("data") == (None if late == "create again" else {"by": "next run"})
