"""The S3 modules on a real S3 server: repeated, in check mode, with errors. One playbook shows them in Ansible itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.clock import boottime
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.decision import DecisionStore
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect

from ..support.actions import answer
from ..support.playbooks import Answer, play, task
from ..support.s3_proxy import Proxy

Options = dict[str, Any]
WORKLOAD = WorkloadRef("shop", "database")


class Tasks:
    """Tasks for one workload in one bucket."""

    def __init__(self, bucket: Options) -> None:
        self._options = bucket | WORKLOAD.identity()

    def __call__(self, module: str, *, check: bool = False, **arguments: Any) -> Answer:
        return answer(module, check=check, **self._options | arguments)

    def values(self, module: str, *names: str, check: bool = False, **arguments: Any) -> list[Any]:
        """Values of the result of a task that succeeds."""
        result = self(module, check=check, **arguments)
        assert not result.failed, result.result
        return [result.result[name] for name in names]

    def reason(self, module: str, *, check: bool = False, **arguments: Any) -> str:
        """The reason of a task that fails."""
        result = self(module, check=check, **arguments)
        assert result.failed, result.result
        return str(result.result["reason"])


@pytest.fixture
def tasks(bucket: Options) -> Tasks:
    return Tasks(bucket)


@pytest.fixture
def documents(bucket: Options) -> DocumentStore:
    return DocumentStore(connect(bucket), WORKLOAD.identity())


def test_playbook_holds_one_lease_in_all_its_tasks(bucket: Options, tmp_path: Path) -> None:
    """Each task is a process of its own; the run is the holder."""
    options = bucket | WORKLOAD.identity()
    played = play(
        tmp_path,
        [
            task("s3_lock", "preview", check=True, **options),
            task("s3_lock", "acquire", ttl=600, **options),
            task("s3_lock", "renew", ttl=600, **options),
            task("s3_state", "write", epoch=1, step="One", **options),
            task("s3_state", "fail", epoch=7, step="Two", **options),
            task("s3_lock", "release", state="released", **options),
            task("s3_coordination_check", "check", check=True, **bucket),
        ],
    )
    epochs = {name: [played.fine(name).result[key] for key in ("changed", "epoch")] for name in ("preview", "acquire", "renew", "release")}
    assert epochs == {"preview": [True, 1], "acquire": [True, 1], "renew": [False, 1], "release": [True, 1]}
    assert played["write"].changed
    assert played["fail"].result["reason"] == "Fenced"
    assert played.answers.get("check") is None or played["check"].result["skipped"]
    assert bucket["secret_key"] not in played.output


def test_lease_is_acquired_renewed_and_released(tasks: Tasks) -> None:
    assert tasks.values("s3_lock", "changed", "epoch", state="observed") == [False, 0]
    assert tasks.values("s3_lock", "changed", "epoch", check=True) == [True, 1]
    acquired = tasks.values("s3_lock", "changed", "epoch", "acting_seconds", ttl=600)
    assert acquired[:2] == [True, 1]
    assert 0 < acquired[2] <= 400
    assert tasks.values("s3_lock", "changed", "epoch", check=True) == [False, 1]
    assert tasks.values("s3_lock", "changed", "epoch", ttl=600) == [False, 1]
    for check in (False, True):
        refused = tasks("s3_lock", check=check, holder="west")
        assert refused.result["reason"] == "LeaseHeld"
        assert "under epoch 1" in refused.message
        assert "wait_timeout" in refused.message
    assert tasks.values("s3_lock", "changed", holder="west", state="released") == [False]
    assert tasks.values("s3_lock", "changed", check=True, state="released") == [True]
    assert tasks.values("s3_lock", "changed", "epoch", state="released") == [True, 1]
    assert tasks.values("s3_lock", "changed", state="released") == [False]
    assert tasks.values("s3_lock", "changed", "epoch", holder="west", wait_timeout=5) == [True, 2]
    assert tasks.values("s3_lock", "lock", state="observed")[0]["holder"] == "west"


def test_expired_term_is_not_renewed_although_no_other_holder_led(tasks: Tasks, documents: DocumentStore) -> None:
    # As a task an hour ago has left the lease.
    assert Lease(documents.store, WORKLOAD, "east", "east", 30, lambda: boottime() - 3600).try_acquire()
    assert tasks.values("s3_lock", "changed", "epoch", check=True, holder="east") == [True, 2]
    first, second, third = (tasks.values("s3_lock", "changed", "epoch", "lock", holder="east", ttl=600) for _task in range(3))
    assert first[:2] == [True, 2]
    assert second[:2] == third[:2] == [False, 2]
    # The next task knows the deadline that a renewal gained.
    assert second[2]["deadline"] > first[2]["deadline"]


def test_lease_of_a_dead_holder_is_taken_over_when_it_has_expired(tasks: Tasks, documents: DocumentStore) -> None:
    living = Lease(documents.store, WORKLOAD, "dead", "dead-1", 600)
    assert living.try_acquire()
    assert tasks.reason("s3_lock", holder="west", wait_timeout=0.5) == "LeaseHeld"
    living.release()
    dead = Lease(documents.store, WORKLOAD, "dead", "dead-2", 3)
    assert dead.try_acquire()
    assert tasks.values("s3_lock", "changed", "epoch", holder="west", wait_timeout=120) == [True, 3]
    assert not dead.acting()


def test_state_and_decision_are_written_under_the_epoch_and_once(tasks: Tasks, documents: DocumentStore) -> None:
    assert tasks.values("s3_state", "changed", "revision") == [False, 0]
    assert "epoch" in tasks("s3_state", step="One").message
    tasks.values("s3_lock", holder="east", ttl=600)
    wanted = {"epoch": 1, "intent": {"cluster": "west"}, "step": "One"}
    changed, revision, diff = tasks.values("s3_state", "changed", "revision", "diff", check=True, **wanted)
    assert (changed, revision, diff["after"]["step"]) == (True, 2, "One")
    changed, revision, diff = tasks.values("s3_state", "changed", "revision", "diff", expected_revision=1, **wanted)
    assert (changed, revision, diff["before"]["step"]) == (True, 2, "")
    assert tasks.values("s3_state", "changed", "revision", expected_revision=1, **wanted) == [False, 2]
    assert tasks.reason("s3_state", expected_revision=1, epoch=1, step="Two") == "StaleRevision"
    assert tasks.reason("s3_state", epoch=7, step="Two") == "Fenced"
    decision = {"epoch": 1, "decision": {"cluster": "west"}}
    assert tasks.values("s3_decision", "changed", "published", check=True, **decision) == [True, False]
    assert tasks.values("s3_decision", "changed", "revision", "published", step="Two", **decision) == [True, 3, True]
    assert tasks.values("s3_decision", "changed", "revision", step="Two", **decision) == [False, 3]
    assert tasks.values("s3_decision", "changed", "decision", "published") == [False, {"cluster": "west"}, True]
    history, kept = tasks.values("s3_history_info", "history", "kept", newest=2)
    assert ([entry["revision"] for entry in history], kept) == ([2, 3], 3)
    assert "nonce" not in history[0]
    tasks.values("s3_lock", holder="east", state="released")
    assert tasks.reason("s3_state", epoch=1, step="Three") == "Fenced"
    tasks.values("s3_lock", holder="west")
    assert tasks.reason("s3_decision", epoch=1, decision={"cluster": "east"}) == "Fenced"
    assert StateStore(documents, WORKLOAD).read().step == "Two"
    assert DecisionStore(documents, WORKLOAD).read().decision == {"cluster": "west"}


def test_workloads_with_the_same_key_are_distinguished(tasks: Tasks) -> None:
    tasks.values("s3_lock", namespace="a-b", name="c", holder="east")
    for module in ("s3_lock", "s3_state", "s3_decision"):
        refused = tasks(module, namespace="a", name="b-c")
        assert refused.result["reason"] == "WrongIdentity"
        assert "Rename one" in refused.message
    assert "'A/b' is not a valid name" in tasks("s3_lock", namespace="A/b", name="c").message


def test_check_of_a_store_returns_a_table(bucket: Options, faulty: tuple[Proxy, Options]) -> None:
    proxy, through = faulty
    proxy.drops_conditions = True
    passed = answer("s3_coordination_check", **bucket)
    assert not passed.failed
    assert not passed.changed
    assert all(case["passed"] for case in passed.result["cases"])
    assert "8 concurrent replaces" in passed.result["table"]
    assert answer("s3_coordination_check", check=True, **bucket).result["skipped"]
    failed = answer("s3_coordination_check", **through)
    assert failed.result["reason"] == "ConditionalWritesUnsupported"
    assert "does not honour conditional writes" in failed.message
    assert "FAILED" in failed.result["table"]
    assert answer("s3_coordination_check", **bucket | {"bucket": "absent"}).result["reason"] == "NoSuchBucket"
    assert answer("s3_coordination_check", **bucket | {"endpoint_url": "http://127.0.0.1:9"}).result["retryable"]


def test_every_task_that_writes_refuses_a_path_that_drops_conditions(tasks: Tasks, faulty: tuple[Proxy, Options]) -> None:
    proxy, options = faulty
    proxy.drops_conditions = True
    through = {"endpoint_url": options["endpoint_url"]}
    assert tasks.reason("s3_lock", **through) == "ConditionalWritesUnsupported"
    # The leader reaches the store without the proxy. That says nothing about the paths of other tasks.
    lock = tasks.values("s3_lock", "lock", holder="east", ttl=600)
    writes: list[tuple[str, Options]] = [
        ("s3_lock", {"holder": "east"}),
        ("s3_lock", {"holder": "east", "state": "released"}),
        ("s3_state", {"epoch": 1, "step": "One"}),
        ("s3_decision", {"epoch": 1, "decision": {"cluster": "west"}}),
    ]
    for module, arguments in writes:
        refused = tasks(module, **arguments, **through)
        assert refused.result["reason"] == "ConditionalWritesUnsupported"
        assert "does not honour conditional writes" in refused.message
    # A task that only reads needs no conditions.
    assert tasks.values("s3_state", "changed", check=True, epoch=1, step="One", **through) == [True]
    assert tasks.values("s3_state", "revision", **through) == [1]
    assert tasks.values("s3_decision", "decision", **through) == [{}]
    assert tasks.values("s3_lock", "lock", state="observed", **through) == lock
    assert [path for method, path, _status in proxy.requests if method != "GET" and "/drpc-" in path] == []


def test_quick_check_takes_four_requests(tasks: Tasks, faulty: tuple[Proxy, Options]) -> None:
    """A task that writes runs the quick check. A task that only reads, or finds the lease held, runs none."""
    proxy, options = faulty
    through = {"endpoint_url": options["endpoint_url"]}
    tasks.values("s3_lock", holder="east", ttl=600)
    for step in ("One", "Two"):
        tasks.values("s3_state", epoch=1, step=step, **through)
    tasks.values("s3_state", **through)
    assert tasks.reason("s3_lock", holder="west", **through) == "LeaseHeld"
    checks = [method for method, path, _status in proxy.requests if "/coordination-check/" in path]
    # The first check creates the permanent object.
    assert checks == ["PUT", "PUT", "GET", "PUT", "GET", "PUT", "GET", "PUT", "GET"]
