"""The cluster lock on a real API server: one holder, tokens that only grow, expiry by the server's clock, and the renewer's life."""

from __future__ import annotations

import datetime
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Conflict
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import Lock, LockExpired, LockHeld, LockLost
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.renewer import Renewer
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.run_process import (
    RunEnded,
    RunProcess,
    engine_identity,
    run_identity,
)

ORDER = "demo"
SITE = lease.SITE_NAMESPACE
ROUNDS = 20
SHORT = 3


@pytest.fixture
def options(hub: Access) -> dict[str, Any]:
    return {"kubeconfig": str(hub.kubeconfig)}


@pytest.fixture
def kube(options: dict[str, Any]) -> Kube:
    return Kube.connect(options)


@pytest.fixture
def the_lease(kube: Kube, namespace: str) -> Callable[[], Object]:
    return lambda: kube.get(lease.API_VERSION, "Lease", lease.lease_name(namespace, ORDER), SITE)


class Timeless(Kube):
    """A connection on whose way the Date header is lost."""

    def server_time(self) -> None:
        return None


class Clock:
    """A monotonic clock that advances only in `sleep`, and calls `meanwhile` then."""

    def __init__(self, meanwhile: Callable[[float], None] = lambda _now: None) -> None:
        self.now = 1000.0
        self._meanwhile = meanwhile

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self._meanwhile(self.now)


def server_now(kube: Kube) -> datetime.datetime:
    kube.get("v1", "Namespace", "default")
    now = kube.server_time()
    assert now is not None
    return now


def latest_now(kube: Kube) -> datetime.datetime:
    """A time that the server has not passed yet. `server_now` is behind by as long as this process stalls before it reads the answer."""
    server_now(kube)
    now = kube.latest_server_time()
    assert now is not None
    return now


def age(kube: Kube, item: Object, seconds: float) -> Object:
    """Set the renewTime of a Lease to that long ago by the server's clock."""
    then = server_now(kube) - datetime.timedelta(seconds=seconds)
    return kube.patch(item, {"spec": {"renewTime": then.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}}, checked=False)


# One holder


def test_a_lock_that_was_never_taken_is_free(kube: Kube, namespace: str) -> None:
    state = lease.read(kube, namespace, ORDER)
    assert (state.holder, state.token, state.is_free(None)) == ("", 0, True)


def test_a_second_holder_is_refused_until_the_lease_expires(kube: Kube, namespace: str) -> None:
    before = server_now(kube)
    first = lease.acquire(kube, namespace, ORDER, "first", duration=SHORT)
    while True:
        try:
            second = lease.acquire(kube, namespace, ORDER, "second", duration=SHORT)
            break
        except LockHeld as held:
            assert held.state.holder == "first"
            time.sleep(0.1)
    assert (server_now(kube) - before).total_seconds() >= SHORT - 1, "the Date header has full seconds only"
    assert second.token == first.token + 1
    assert lease.read(kube, namespace, ORDER).holder == "second"


def test_the_refusal_names_order_and_holder_and_is_no_failure_of_the_order(kube: Kube, namespace: str) -> None:
    lease.acquire(kube, namespace, ORDER, "job 7 on runner-a")
    with pytest.raises(LockHeld) as caught:
        lease.acquire(kube, namespace, ORDER, "other")
    assert str(caught.value) == f"The lock of {namespace}/{ORDER} is held by job 7 on runner-a; it is released when that run ends."
    assert caught.value.retryable
    assert (caught.value.state.holder, caught.value.state.token) == ("job 7 on runner-a", 1)


def test_being_refused_changes_nothing(kube: Kube, namespace: str, the_lease: Callable[[], Object]) -> None:
    lease.acquire(kube, namespace, ORDER, "first")
    before = the_lease()
    with pytest.raises(LockHeld):
        lease.acquire(kube, namespace, ORDER, "second")
    assert the_lease() == before


def test_orders_do_not_share_a_lock(kube: Kube, namespace: str) -> None:
    assert lease.acquire(kube, namespace, "one", "first").token == 1
    assert lease.acquire(kube, namespace, "two", "second").token == 1


def test_a_site_namespace_that_is_missing_is_named_with_what_to_do(kube: Kube, namespace: str) -> None:
    with pytest.raises(lease.NoSiteNamespace, match="nowhere for the locks of orders does not exist: create it, or set site_namespace"):
        lease.acquire(kube, namespace, ORDER, "first", site="nowhere")


# Release


def test_a_released_lock_is_free_at_once_and_kept_empty(kube: Kube, namespace: str, the_lease: Callable[[], Object]) -> None:
    first = lease.acquire(kube, namespace, ORDER, "first")
    assert lease.release(kube, first)
    assert the_lease()["spec"] == {"leaseDurationSeconds": lease.DURATION, "leaseTransitions": 1}
    assert lease.acquire(kube, namespace, ORDER, "second").token == 2


def test_release_by_another_changes_nothing(kube: Kube, namespace: str, the_lease: Callable[[], Object]) -> None:
    held = lease.acquire(kube, namespace, ORDER, "first")
    before = the_lease()
    for version in ("", "1"):
        for wrong in (replace(held, holder="second"), replace(held, token=held.token + 1), replace(held, token=held.token - 1)):
            assert not lease.release(kube, replace(wrong, version=version))
            with pytest.raises(LockLost):
                lease.renew(kube, replace(wrong, version=version))
            assert the_lease() == before


def test_release_by_a_former_holder_changes_nothing(kube: Kube, namespace: str, the_lease: Callable[[], Object]) -> None:
    late = lease.acquire(kube, namespace, ORDER, "first", duration=SHORT)
    age(kube, the_lease(), 60)
    new = lease.acquire(kube, namespace, ORDER, "second")
    before = the_lease()
    assert not lease.release(kube, late)
    assert the_lease() == before
    assert lease.verify(kube, new).holder == "second"


def test_the_second_release_releases_nothing(kube: Kube, namespace: str, the_lease: Callable[[], Object]) -> None:
    held = lease.acquire(kube, namespace, ORDER, "first")
    assert lease.release(kube, held)
    before = the_lease()
    assert not lease.release(kube, held)
    assert the_lease() == before


def test_release_works_with_a_version_that_renewals_have_outdated(kube: Kube, namespace: str) -> None:
    held = lease.acquire(kube, namespace, ORDER, "first")
    lease.renew(kube, lease.renew(kube, held))
    assert lease.release(kube, held)
    assert lease.read(kube, namespace, ORDER).holder == ""


# The token


def test_the_token_only_grows(kube: Kube, namespace: str, the_lease: Callable[[], Object]) -> None:
    tokens = []
    for number in range(3):
        held = lease.acquire(kube, namespace, ORDER, f"released-{number}")
        tokens.append(held.token)
        tokens.append(lease.renew(kube, held).token)
        lease.release(kube, held)
        tokens.append(lease.read(kube, namespace, ORDER).token)
        held = lease.acquire(kube, namespace, ORDER, f"expired-{number}", duration=1)
        tokens.append(held.token)
        age(kube, the_lease(), 60)
    assert tokens == [1, 1, 1, 2, 3, 3, 3, 4, 5, 5, 5, 6]


def test_taking_it_twice_keeps_the_token_and_is_a_renewal(kube: Kube, namespace: str, the_lease: Callable[[], Object]) -> None:
    first = lease.acquire(kube, namespace, ORDER, "first", duration=10)
    age(kube, the_lease(), 9)
    before = server_now(kube)
    again = lease.acquire(kube, namespace, ORDER, "first", duration=10)
    assert (again.token, again.acquired) == (first.token, first.acquired)
    renewed = lease.read(kube, namespace, ORDER).renewed
    assert renewed and renewed >= before
    age(kube, the_lease(), 60)
    expired = lease.acquire(kube, namespace, ORDER, "first", duration=10)
    assert expired.token == first.token, "no other holder had it in between"
    with pytest.raises(LockHeld):
        lease.acquire(kube, namespace, ORDER, "second")


# Renewing and asking whether it is still ours


def test_a_renewal_keeps_acquire_time_and_moves_the_expiry(kube: Kube, namespace: str, the_lease: Callable[[], Object]) -> None:
    held = lease.acquire(kube, namespace, ORDER, "first", duration=10)
    age(kube, the_lease(), 5)
    before = the_lease()["spec"]
    lease.renew(kube, held)
    after = the_lease()["spec"]
    assert after["renewTime"] > before["renewTime"]
    assert {**after, "renewTime": ""} == {**before, "renewTime": ""}


def test_a_renewal_counts_from_when_it_is_made_and_not_from_the_last_answer(
    kube: Kube, namespace: str, the_lease: Callable[[], Object]
) -> None:
    """A renewer asks nothing between two renewals, so the last Date it knows is an old one."""
    held = lease.acquire(kube, namespace, ORDER, "first", duration=10)
    time.sleep(2.5)
    other = Kube(kube.target)
    before = server_now(other)
    lease.renew(kube, held)
    renewed = datetime.datetime.fromisoformat(the_lease()["spec"]["renewTime"])
    assert renewed >= before
    assert renewed <= latest_now(other) + lease.SECOND


def test_labels_that_others_put_on_the_lease_stay(kube: Kube, namespace: str, the_lease: Callable[[], Object]) -> None:
    held = lease.acquire(kube, namespace, ORDER, "first")
    kube.patch(the_lease(), {"metadata": {"labels": {"team": "a"}}})
    lease.release(kube, lease.renew(kube, held))
    lease.acquire(kube, namespace, ORDER, "second")
    assert the_lease()["metadata"]["labels"] == {"team": "a", "openfleet.clusters/lock": "order"}


def test_after_a_loss_nothing_works_and_everything_says_so(kube: Kube, namespace: str, the_lease: Callable[[], Object]) -> None:
    lost = lease.acquire(kube, namespace, ORDER, "first")
    assert lease.verify(kube, lost).token == 1
    age(kube, the_lease(), 3600)
    with pytest.raises(LockExpired, match="has expired or is about to"):
        lease.verify(kube, lost)  # although no other holder has acquired it
    lease.acquire(kube, namespace, ORDER, "second")
    before = the_lease()
    for work in (lease.renew, lease.verify):
        with pytest.raises(LockLost, match=f"{namespace}/{ORDER} is lost: it has token 2, holder second") as caught:
            work(kube, lost)
        assert not caught.value.retryable
    assert not lease.release(kube, lost)
    assert the_lease() == before


def test_a_holder_of_the_same_name_with_an_old_token_has_lost_it(kube: Kube, namespace: str) -> None:
    old = lease.acquire(kube, namespace, ORDER, "first")
    lease.release(kube, old)
    new = lease.acquire(kube, namespace, ORDER, "first")
    assert new.token == 2
    with pytest.raises(LockLost):
        lease.verify(kube, old)
    assert not lease.release(kube, old)
    assert lease.verify(kube, new)


def test_a_deleted_lease_is_not_ours_any_more_and_stays_deleted(kube: Kube, namespace: str, the_lease: Callable[[], Object]) -> None:
    held = lease.acquire(kube, namespace, ORDER, "first")
    kube.delete(the_lease())
    for work in (lease.renew, lease.verify):
        with pytest.raises(LockLost, match="holder none"):
            work(kube, held)
    assert not lease.release(kube, held)
    with pytest.raises(LockLost):
        lease.renew(kube, replace(held, version=""))
    assert kube.find(lease.API_VERSION, "Lease", lease.lease_name(namespace, ORDER), SITE) is None
    lease.acquire(kube, namespace, ORDER, "second")
    assert not lease.release(kube, held)
    assert lease.read(kube, namespace, ORDER).holder == "second"


def test_a_lease_deleted_while_it_is_acquired_is_created_again(kube: Kube, namespace: str) -> None:
    lease.release(kube, lease.acquire(kube, namespace, ORDER, "first"))

    class DeletedInBetween(Kube):
        def patch(self, item: Object, *arguments: Any, **options: Any) -> Object:
            self.delete(item)
            return super().patch(item, *arguments, **options)

    assert lease.acquire(DeletedInBetween(kube.target), namespace, ORDER, "second").holder == "second"
    assert lease.read(kube, namespace, ORDER).holder == "second"


def test_a_lock_is_the_same_after_a_round_trip_through_variables(kube: Kube, namespace: str) -> None:
    held = lease.acquire(kube, namespace, ORDER, "first")
    assert Lock(**json.loads(json.dumps(held.as_dict()))) == held


# Whose clock counts


@pytest.mark.parametrize("year", [1999, 2099])
def test_a_wrong_clock_of_ours_makes_no_difference(
    year: int, kube: Kube, namespace: str, the_lease: Callable[[], Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return cls(year, 1, 1, tzinfo=tz)

    before = server_now(kube)
    monkeypatch.setattr(lease.datetime, "datetime", Wrong)
    monkeypatch.setattr(time, "time", lambda: Wrong.now(datetime.UTC).timestamp())
    held = lease.renew(kube, lease.acquire(kube, namespace, ORDER, "first", duration=30))
    with pytest.raises(LockHeld):
        lease.acquire(kube, namespace, ORDER, "second")
    spec = the_lease()["spec"]
    for name in ("acquireTime", "renewTime"):
        written = Wrong.fromisoformat(spec[name])
        assert before - datetime.timedelta(seconds=1) <= written <= latest_now(kube), "by the clock of the hub"
    age(kube, the_lease(), 38)
    assert lease.acquire(kube, namespace, ORDER, "second").token == held.token + 1


@pytest.mark.parametrize(("past", "free"), [(-5, False), (0, False), (4.9, False), (5, False), (5.001, True), (60, True)])
def test_a_lease_is_free_when_it_has_expired_by_every_clock_of_the_hub(past: float, free: bool) -> None:
    renewed = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
    state = lease.LockState("n", ORDER, holder="first", duration=60, renewed=renewed)
    assert state.is_free(renewed + datetime.timedelta(seconds=60 + past)) == free
    assert not state.is_free(None), "no clock, no expiry"


def test_without_a_date_only_a_lease_unchanged_for_its_whole_duration_is_taken(kube: Kube, namespace: str) -> None:
    lease.acquire(kube, namespace, ORDER, "first", duration=10)
    clock = Clock()
    blind = Timeless(kube.target)
    with pytest.raises(LockHeld):
        lease.acquire(blind, namespace, ORDER, "second", wait_timeout=9.5, clock=clock, sleep=clock.sleep)
    clock = Clock()
    taken = lease.acquire(blind, namespace, ORDER, "second", wait_timeout=30, clock=clock, sleep=clock.sleep)
    assert taken.token == 2
    assert 10 < clock.now - 1000 <= 12


def test_without_a_date_each_renewal_restarts_the_wait(kube: Kube, namespace: str) -> None:
    held = [lease.acquire(kube, namespace, ORDER, "first", duration=10)]
    renewals: list[float] = []

    def renew_until(now: float) -> None:
        if now < 1025 and (not renewals or now - renewals[-1] > 3):
            renewals.append(now)
            held[0] = lease.renew(kube, held[0])

    clock = Clock(renew_until)
    taken = lease.acquire(Timeless(kube.target), namespace, ORDER, "second", wait_timeout=120, clock=clock, sleep=clock.sleep)
    assert taken.token == 2
    assert len(renewals) >= 5
    assert clock.now - renewals[-1] > 10


def test_without_a_date_a_free_lock_is_taken_at_once(kube: Kube, namespace: str) -> None:
    blind = Timeless(kube.target)
    lease.release(blind, lease.acquire(blind, namespace, ORDER, "first"))
    assert lease.acquire(blind, namespace, ORDER, "second").token == 2


# Waiting


def test_waiting_gets_the_lock_when_it_is_released(kube: Kube, namespace: str) -> None:
    held = lease.acquire(kube, namespace, ORDER, "first", duration=600)
    releaser = threading.Timer(1.5, lambda: lease.release(kube, held))
    releaser.start()
    assert lease.acquire(Kube(kube.target), namespace, ORDER, "second", wait_timeout=60).token == 2
    releaser.join()


def test_waiting_gets_the_lock_when_it_expires(kube: Kube, namespace: str) -> None:
    before = server_now(kube)
    lease.acquire(kube, namespace, ORDER, "first", duration=1)
    assert lease.acquire(kube, namespace, ORDER, "second", wait_timeout=60).token == 2
    assert (server_now(kube) - before).total_seconds() >= 0.5


def test_waiting_in_vain_ends_when_it_should(kube: Kube, namespace: str) -> None:
    lease.acquire(kube, namespace, ORDER, "first", duration=600)
    clock, asked = Clock(), kube.requests
    with pytest.raises(LockHeld):
        lease.acquire(kube, namespace, ORDER, "second", wait_timeout=20, clock=clock, sleep=clock.sleep)
    assert 19.9 <= clock.now - 1000 <= 20.1
    assert kube.requests - asked < 120, "it asks about once a second"


# Many at once


def test_one_of_16_threads_wins_each_round(kube: Kube, namespace: str, soak: int) -> None:
    """First for a Lease that is not there, then for an empty one, then for an expired one."""
    contenders = 16
    for number in range(1, ROUNDS * soak + 1):
        gate = threading.Barrier(contenders)

        def contend_once(name: int, number: int = number, gate: threading.Barrier = gate) -> Lock | None:
            gate.wait(60)
            try:
                return lease.acquire(kube, namespace, ORDER, f"contender-{name}-of-{number}")
            except LockHeld:
                return None

        with ThreadPoolExecutor(contenders) as threads:
            winners = [lock for lock in threads.map(contend_once, range(contenders)) if lock]
        assert len(winners) == 1
        assert winners[0].token == number
        assert lease.read(kube, namespace, ORDER).holder == winners[0].holder
        if number % 2:
            age(kube, kube.get(lease.API_VERSION, "Lease", lease.lease_name(namespace, ORDER), SITE), 3600)
        else:
            assert lease.release(kube, winners[0])


CONTENDER = """
import json, sys
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube

kube = Kube.connect({"kubeconfig": sys.argv[1]})
kube.server_time()
print("ready", flush=True)
for line in sys.stdin:
    try:
        won = lease.acquire(kube, sys.argv[2], line.strip(), sys.argv[3]).token
    except lease.LockHeld:
        won = 0
    print(won, flush=True)
"""


def test_one_of_8_processes_wins_each_round(hub: Access, namespace: str, soak: int) -> None:
    def process(number: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", CONTENDER, str(hub.kubeconfig), namespace, f"process-{number}"]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    contenders = [process(number) for number in range(8)]
    try:
        assert {contender.stdout.readline() for contender in contenders if contender.stdout} == {"ready\n"}
        for number in range(ROUNDS * soak):
            for contender in contenders:
                assert contender.stdin
                contender.stdin.write(f"round-{number}\n")
            tokens = [int(contender.stdout.readline()) for contender in contenders if contender.stdout]
            assert sorted(tokens) == [0, 0, 0, 0, 0, 0, 0, 1]
    finally:
        for contender in contenders:
            contender.kill()
            contender.communicate()


def test_a_conflict_while_acquiring_reads_the_lease_again(kube: Kube, namespace: str) -> None:
    """Between our read and our write another holder acquires it, and releases it before our next read."""

    class Slow(Kube):
        passed = 0

        def create(self, item: Object) -> Object:
            self.passed += 1
            other = lease.acquire(kube, namespace, ORDER, "quicker")
            with pytest.raises(Conflict):
                super().create(item)
            lease.release(kube, other)
            raise Conflict("already exists")

    slow = Slow(kube.target)
    assert lease.acquire(slow, namespace, ORDER, "slow").token == 2
    assert slow.passed == 1


# Several at once


def test_locks_of_several_orders_are_acquired_in_the_same_order_each_once(kube: Kube, namespace: str) -> None:
    orders = [(namespace, "c"), (namespace, "a"), (namespace, "b"), (namespace, "a")]
    locks = lease.acquire_all(kube, orders, "me")
    assert [lock.order for lock in locks] == ["a", "b", "c"]
    assert {lock.order: lock.holder for lock in lease.read_all(kube) if lock.namespace == namespace} == dict.fromkeys("abc", "me")
    assert [lock.token for lock in lease.acquire_all(kube, orders, "me")] == [1, 1, 1]


def test_of_several_locks_all_are_taken_or_none_but_what_one_had_before_is_kept(kube: Kube, namespace: str) -> None:
    lease.acquire(kube, namespace, "a", "me")
    lease.acquire(kube, namespace, "c", "another")
    with pytest.raises(LockHeld, match="is held by another"):
        lease.acquire_all(kube, [(namespace, name) for name in "abc"], "me")
    assert {state.order: state.holder for state in lease.read_all(kube) if state.namespace == namespace} == {
        "a": "me",
        "b": "",
        "c": "another",
    }


def test_those_taken_already_are_renewed_while_another_is_waited_for(kube: Kube, namespace: str) -> None:
    lease.acquire(kube, namespace, "b", "another", duration=60)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(lease.acquire_all, kube, [(namespace, "a"), (namespace, "b")], "me", SHORT, 30)
        until(lambda: lease.read(kube, namespace, "a").holder == "me", "the first of them is taken")
        first = lease.read(kube, namespace, "a").renewed
        until(lambda: lease.read(kube, namespace, "a").renewed != first, "it is renewed")
        assert lease.release_held(kube, namespace, "b", "another")
        assert [lock.holder for lock in waiting.result()] == ["me", "me"]


def test_all_locks_are_read_in_one_request(hub: Access, kube: Kube, namespace: str) -> None:
    for name in ("a", "b-lock"):
        lease.acquire(kube, namespace, name, f"holder of {name}")
    hub.kubectl("create", "-n", SITE, "-f", "-", stdin=json.dumps(FOREIGN_LEASE | {"metadata": {"name": f"leader-{namespace}"}}))
    before = kube.requests
    found = lease.read_all(kube)
    assert kube.requests == before + 1
    assert sorted((state.order, state.holder) for state in found if state.namespace == namespace) == [
        ("a", "holder of a"),
        ("b-lock", "holder of b-lock"),
    ]
    assert "" not in {state.order for state in found}


FOREIGN_LEASE = {"apiVersion": lease.API_VERSION, "kind": "Lease", "metadata": {"name": "leader"}, "spec": {"holderIdentity": "x"}}


def test_a_lock_is_released_by_its_holders_name_and_by_no_other(kube: Kube, namespace: str, the_lease: Callable[[], Object]) -> None:
    assert not lease.release_held(kube, namespace, ORDER, "me")
    assert kube.find(lease.API_VERSION, "Lease", lease.lease_name(namespace, ORDER), SITE) is None
    lease.acquire(kube, namespace, ORDER, "me")
    before = the_lease()
    assert not lease.release_held(kube, namespace, ORDER, "another")
    assert not lease.release_held(kube, namespace, ORDER, "")
    assert the_lease() == before
    assert lease.release_held(kube, namespace, ORDER, "me")
    assert not lease.release_held(kube, namespace, ORDER, "me")
    assert lease.read(kube, namespace, ORDER).token == 1


@pytest.mark.parametrize("wait_timeout", [0, 1])
@pytest.mark.parametrize("earlier", ["", "another", "another, overdue", "me"])
def test_what_is_predicted_is_what_taking_it_gives(kube: Kube, namespace: str, earlier: str, wait_timeout: int) -> None:
    holder = earlier.partition(",")[0]
    if holder:
        lease.acquire(kube, namespace, ORDER, holder)
    if "overdue" in earlier:
        age(kube, kube.get(lease.API_VERSION, "Lease", lease.lease_name(namespace, ORDER), SITE), 100)
    before = lease.read(kube, namespace, ORDER)
    try:
        predicted = lease.predict(before, "me", lease.DURATION, kube.server_time(), wait_timeout)
    except LockHeld as held:
        assert (held.state, earlier, wait_timeout) == (before, "another", 0)
    else:
        assert lease.read(kube, namespace, ORDER) == before
        if earlier == "another":  # whom it would wait for is taken to end in time
            lease.release_held(kube, namespace, ORDER, "another")
        taken = lease.acquire(kube, namespace, ORDER, "me")
        assert (predicted.holder, predicted.token, predicted.duration) == (taken.holder, taken.token, taken.duration)


def test_a_run_is_called_the_same_in_all_its_tasks_and_different_from_every_other() -> None:
    other = subprocess.Popen(["sleep", "60"])
    try:
        names = [run_identity(os.getpid()), run_identity(other.pid)]
        assert run_identity(os.getpid()) == names[0]
        names.append(run_identity(os.getpid(), "orders/demo"))
        assert len(set(names)) == 3
        assert names[0].startswith(f"local-{os.getpid()}-") and names[1].startswith(f"local-{other.pid}-")
    finally:
        other.kill()
        other.wait()


def test_a_later_process_with_the_same_id_is_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.read_text
    started = {"at": 100}

    def read_text(path: Path, **options: Any) -> str:
        if path.name == "stat":
            return f"4711 (a (very) odd name) S {' '.join(['0'] * 18)} {started['at']} 0 0"
        return real(path, **options)

    monkeypatch.setattr(Path, "read_text", read_text)
    first = run_identity(4711)
    assert run_identity(4711) == first
    started["at"] = 101
    assert run_identity(4711) != first


# As other clients read it


def test_kubectl_reads_the_lease(hub: Access, kube: Kube, namespace: str) -> None:
    held = lease.acquire(kube, namespace, ORDER, "job-7")
    name = lease.lease_name(namespace, ORDER)
    listed = hub.kubectl("get", "lease", name, "-n", SITE).stdout.split()
    assert listed[3:5] == [name, "job-7"]
    spec = hub.get("lease", name, "-n", SITE)["spec"]
    assert set(spec) == {"holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"}
    assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (60, held.token)
    assert "Holder Identity:" in hub.kubectl("describe", "lease", name, "-n", SITE).stdout
    lease.release(kube, held)
    hub.kubectl("get", "lease", name, "-n", SITE)


# The renewer


class Gate:
    """A way to the API server that can be closed for a while, or forget its connections, which then hang for ever."""

    def __init__(self, far: tuple[str, int]) -> None:
        self._far = far
        self._open = threading.Event()
        self._open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._generation = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def forget(self) -> None:
        """As a firewall does: new connections work, old ones hang without an error."""
        self._generation += 1

    def end(self) -> None:
        self._open.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                near, _address = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._far)
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._forward, args=(*ends, self._generation), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, generation: int) -> None:
        with source, sink:
            try:
                while data := source.recv(65536):
                    self._open.wait()
                    if generation == self._generation:
                        sink.sendall(data)
            except OSError:
                return


@pytest.fixture
def gate(hub: Access) -> Iterator[Gate]:
    content = yaml.safe_load(hub.kubeconfig.read_text())
    host, _colon, port = content["clusters"][0]["cluster"]["server"].removeprefix("https://").partition(":")
    gate = Gate((host, int(port)))
    yield gate
    gate.end()


@pytest.fixture
def playbook() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for a run of a playbook."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def renewers() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(options: dict[str, Any], playbook: subprocess.Popen[bytes], renewers: list[subprocess.Popen[bytes]]) -> Start:
    """Start a renewer for the stand-in playbook."""

    def start_one(*locks: Lock, seconds: float = 600, ends_run: bool = False, engine: str = "", **more: Any) -> subprocess.Popen[bytes]:
        with Renewer(options | more, RunProcess(playbook.pid, engine), seconds, ends_run=ends_run) as renewer:
            renewers.append(renewer.process)
            renewer.keep_all(locks)
        return renewer.process

    return start_one


def renewals_after(kube: Kube, namespace: str, order: str, count: int) -> None:
    """Wait until the lease was written that many times from now."""
    versions = {lease.read(kube, namespace, order).version}
    until(lambda: versions.add(lease.read(kube, namespace, order).version) or len(versions) > count, f"{count} renewals of {order}")


def test_a_lock_is_renewed_for_as_long_as_the_playbook_lives(kube: Kube, namespace: str, start: Start) -> None:
    duration = 30  # so that a renewal may be 20 seconds late
    held = lease.acquire(kube, namespace, ORDER, "playbook", duration=duration)
    second = lease.acquire(kube, namespace, "second", "playbook", duration=duration)
    renewer = start(held, second)
    begun = server_now(kube)
    while (server_now(kube) - begun).total_seconds() < duration + 3:
        for order in (ORDER, "second"):
            with pytest.raises(LockHeld):
                lease.acquire(kube, namespace, order, "other")
        time.sleep(0.3)
    assert lease.verify(kube, held).token == held.token
    assert renewer.poll() is None


def test_after_the_playbook_was_killed_the_lock_expires_within_one_duration_and_not_earlier(
    kube: Kube, namespace: str, start: Start, playbook: subprocess.Popen[bytes]
) -> None:
    renewer = start(lease.acquire(kube, namespace, ORDER, "playbook", duration=SHORT))
    renewals_after(kube, namespace, ORDER, 2)
    playbook.send_signal(signal.SIGKILL)
    assert renewer.wait(60) == 0
    last = lease.read(kube, namespace, ORDER)
    ended = latest_now(kube)
    assert last.holder == "playbook", "it is not released: what the run had started may still be writing"
    assert last.renewed is not None
    assert last.renewed <= ended + lease.SECOND, "nothing was renewed in advance"
    taken = lease.acquire(kube, namespace, ORDER, "next", wait_timeout=60)
    now = server_now(kube)
    assert taken.token == last.token + 1
    assert now >= last.renewed + datetime.timedelta(seconds=SHORT), "not earlier than a duration after the last renewal"
    assert datetime.datetime.fromisoformat(taken.acquired) > last.renewed + datetime.timedelta(seconds=SHORT)


def test_the_renewer_ends_at_once_with_the_playbook_however_long_the_duration(
    kube: Kube, namespace: str, start: Start, playbook: subprocess.Popen[bytes]
) -> None:
    renewer = start(lease.acquire(kube, namespace, ORDER, "playbook", duration=3600))
    time.sleep(1)
    assert renewer.poll() is None
    playbook.send_signal(signal.SIGKILL)
    assert renewer.wait(60) == 0, "the next renewal would be due in 20 minutes"


def test_a_renewer_whose_playbook_has_ended_already_ends_too(
    kube: Kube, namespace: str, options: dict[str, Any], playbook: subprocess.Popen[bytes]
) -> None:
    held, run = lease.acquire(kube, namespace, ORDER, "playbook", duration=3600), RunProcess(playbook.pid)
    playbook.kill()
    playbook.wait()
    with Renewer(options, run) as renewer:
        with pytest.raises(RunEnded):
            renewer.keep(held)
        assert renewer.process.wait(60) == 0


# A run that hangs


def test_a_run_that_still_has_a_lock_at_its_deadline_is_ended(
    kube: Kube, namespace: str, start: Start, playbook: subprocess.Popen[bytes]
) -> None:
    renewer = start(lease.acquire(kube, namespace, ORDER, "playbook"), seconds=0.5, ends_run=True)
    assert playbook.wait(60) == -signal.SIGTERM
    assert renewer.wait(60) == 0
    assert lease.read(kube, namespace, ORDER).holder == "playbook", "it expires, which shows that its run was lost"


@pytest.mark.parametrize("released", [True, False])
def test_a_run_that_has_released_its_locks_or_whose_locks_a_task_took_goes_on_after_the_deadline(
    kube: Kube, namespace: str, start: Start, playbook: subprocess.Popen[bytes], released: bool
) -> None:
    held = lease.acquire(kube, namespace, ORDER, "playbook", duration=3600)
    if released:
        lease.release(kube, held)
    assert start(held, seconds=0.5, ends_run=released).wait(60) == 0
    time.sleep(0.2)
    assert playbook.poll() is None


@pytest.mark.parametrize("ends_run", [True, False])
def test_a_run_is_not_renewed_and_ended_once_the_engine_that_started_it_is_killed(
    kube: Kube, namespace: str, start: Start, playbook: subprocess.Popen[bytes], ends_run: bool
) -> None:
    engine = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        held = lease.acquire(kube, namespace, ORDER, "playbook", duration=SHORT)
        renewer = start(held, ends_run=ends_run, engine=engine_identity(engine.pid))
        renewals_after(kube, namespace, ORDER, 2)
    finally:
        engine.kill()
        engine.wait()
    assert renewer.wait(60) == 0
    if ends_run:
        assert playbook.wait(60) == -signal.SIGTERM
    assert (playbook.poll() is None) == (not ends_run)
    assert lease.acquire(kube, namespace, ORDER, "next", wait_timeout=60).token == held.token + 1


@pytest.mark.parametrize("seconds", [1.5, 8])
def test_a_renewer_continues_after_the_api_server_was_unreachable(
    seconds: float, kube: Kube, namespace: str, start: Start, gate: Gate
) -> None:
    """Also after longer than the duration, if no other holder has acquired the lock meanwhile."""
    held = lease.acquire(kube, namespace, ORDER, "playbook", duration=SHORT)
    renewer = start(held, host=f"https://127.0.0.1:{gate.port}")
    renewals_after(kube, namespace, ORDER, 1)
    gate.close()
    time.sleep(seconds)
    assert renewer.poll() is None
    gate.open()
    renewals_after(kube, namespace, ORDER, 3)
    assert lease.verify(kube, held).token == held.token
    assert renewer.poll() is None


def test_a_connection_that_hangs_for_good_is_replaced_before_the_lock_expires(kube: Kube, namespace: str, start: Start, gate: Gate) -> None:
    start(lease.acquire(kube, namespace, ORDER, "playbook", duration=24), host=f"https://127.0.0.1:{gate.port}")
    renewals_after(kube, namespace, ORDER, 1)
    gate.forget()
    with pytest.raises(LockHeld):
        lease.acquire(kube, namespace, ORDER, "other", wait_timeout=30)


def test_a_renewer_ends_when_its_locks_are_released_or_lost(kube: Kube, namespace: str, start: Start) -> None:
    released = lease.acquire(kube, namespace, "released", "playbook", duration=SHORT)
    lost = lease.acquire(kube, namespace, "lost", "playbook", duration=SHORT)
    renewer = start(released, lost)
    renewals_after(kube, namespace, "lost", 1)
    assert lease.release(kube, released)
    renewals_after(kube, namespace, "lost", 2)
    assert renewer.poll() is None, "it still has one to renew"
    while True:
        taken = kube.get(lease.API_VERSION, "Lease", lease.lease_name(namespace, "lost"), SITE)
        taken["spec"] |= {"holderIdentity": "thief", "leaseTransitions": 7}
        try:
            kube.replace(taken)
            break
        except Conflict:
            continue
    assert renewer.wait(60) == 0
    assert lease.read(kube, namespace, "released").holder == ""
    assert lease.read(kube, namespace, "lost").holder == "thief"


def test_secrets_are_not_on_the_renewers_command_line_or_in_its_environment(hub: Access, kube: Kube, namespace: str, start: Start) -> None:
    content = yaml.safe_load(hub.kubeconfig.read_text())
    key = content["users"][0]["user"]["client-key-data"]
    held = lease.acquire(kube, namespace, ORDER, "playbook", duration=SHORT)
    renewer = start(held, kubeconfig=content)
    renewals_after(kube, namespace, ORDER, 1)
    for name in ("cmdline", "environ"):
        shown = Path(f"/proc/{renewer.pid}/{name}").read_bytes().decode(errors="replace")
        assert key not in shown
        assert held.holder not in shown
    assert os.getsid(renewer.pid) == renewer.pid, "the terminal's signals do not reach it"


def test_the_renewer_takes_no_module_from_the_folder_the_run_was_started_in(
    tmp_path: Path, kube: Kube, namespace: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("yaml", "urllib3", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(7)\n")
    monkeypatch.chdir(tmp_path)
    renewer = start(lease.acquire(kube, namespace, ORDER, "playbook", duration=SHORT))
    renewals_after(kube, namespace, ORDER, 2)
    assert renewer.poll() is None
