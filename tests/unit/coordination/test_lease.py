"""The rules of the lease, one by one, on a store in memory and a clock that the test sets."""

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.clock import boottime
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import (
    RESTORED,
    Lease,
    end_term,
    read_lock,
    verify_epoch,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3 import errors as s3_errors
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore

from ..s3.memory_bucket import MemoryBucket
from .conftest import Clock
from .simulation import LOCK, POLL, WORKLOAD, Rules, Scenario, Simulation


def contender(documents: DocumentStore, clock: Clock, name: str, ttl: float = 30) -> Lease:
    return Lease(documents.store, WORKLOAD, name, f"{name}-1", ttl, clock)


def test_second_contender_acquires_only_after_the_same_etag_for_a_whole_ttl(documents: DocumentStore, clock: Clock) -> None:
    east, west = contender(documents, clock, "east"), contender(documents, clock, "west")
    assert east.try_acquire()
    clock.now += 7
    assert not west.try_acquire()
    clock.now += 10
    assert east.renew()
    assert not west.try_acquire()  # the wait starts again
    clock.now += 29.9
    assert not west.try_acquire()
    clock.now += 0.1
    assert west.try_acquire()
    assert (east.epoch, west.epoch) == (1, 2)
    assert not east.acting()
    assert not east.renew()


def test_leader_stops_acting_a_third_of_the_ttl_before_the_lease_expires(documents: DocumentStore, clock: Clock) -> None:
    east = contender(documents, clock, "east")
    east.try_acquire()
    assert east.renew_interval == 15
    clock.now += 19.9
    assert east.acting()
    clock.now += 0.1
    assert not east.acting()
    # The term stays over. The same contender acquires a new term at once, with a new epoch.
    assert not east.renew()
    assert east.try_acquire()
    assert east.epoch == 2


def test_deadline_counts_from_before_the_write_was_sent(clock: Clock) -> None:
    class Slow(MemoryBucket):
        def write(self, key: str, body: bytes, match: str | None) -> str:
            clock.now += 4
            return super().write(key, body, match)

    documents = DocumentStore(ObjectStore(Slow()), WORKLOAD.identity())
    east = contender(documents, clock, "east")
    assert east.try_acquire()
    assert (east.acting_seconds(), east.renewal_in()) == (pytest.approx(16), pytest.approx(11))
    assert east.renew()
    assert east.acting_seconds() == pytest.approx(16)


def test_release_clears_the_holder_and_keeps_the_epoch(documents: DocumentStore, clock: Clock) -> None:
    east, west = contender(documents, clock, "east"), contender(documents, clock, "west")
    east.try_acquire()
    assert not west.release()
    assert east.release()
    assert not east.acting()
    lock = read_lock(documents, WORKLOAD)
    assert (lock.holder, lock.instance, lock.epoch) == ("", "", 1)
    assert west.try_acquire()
    assert west.epoch == 2
    assert not east.release()


def test_next_process_of_the_same_instance_resumes_only_until_the_deadline(documents: DocumentStore, clock: Clock) -> None:
    def process(boot_id: str) -> Lease:
        return Lease(documents.store, WORKLOAD, "east", "east-1", 30, clock, boot_id)

    assert not process("here").resume()  # there is no term
    assert process("here").try_acquire()
    clock.now += 19.9
    for elsewhere in ("there", ""):
        assert not process(elsewhere).resume()
    second = process("here")
    assert second.resume()
    assert second.acting_seconds() == pytest.approx(0.1)
    assert second.renew()
    assert (second.epoch, second.acting_seconds()) == (1, 20)
    # Only the next renewal stores the gained deadline: the first one may have arrived too late for its sender.
    clock.now += 0.1
    assert not process("here").resume()
    assert second.renew()
    clock.now += 19.8
    assert process("here").resume()
    clock.now += 0.2
    third = process("here")
    assert not third.resume()
    assert third.try_acquire()
    assert third.epoch == 2
    third.release()
    assert not process("here").resume()


def test_lock_without_a_deadline_is_not_resumed(bucket: MemoryBucket, documents: DocumentStore, clock: Clock) -> None:
    for boot_id in ("", "here"):
        assert Lease(documents.store, WORKLOAD, "east", "east-1", 30, clock, boot_id).try_acquire()
        lock = json.loads(bucket.objects[LOCK])
        bucket.objects[LOCK] = json.dumps({name: value for name, value in lock.items() if name != "deadline"}).encode()
        assert not Lease(documents.store, WORKLOAD, "east", "east-1", 30, clock, boot_id).resume()


def test_the_ttl_of_the_holder_counts(documents: DocumentStore, clock: Clock) -> None:
    east, west = contender(documents, clock, "east", ttl=60), contender(documents, clock, "west", ttl=30)
    east.try_acquire()
    assert not west.try_acquire()
    clock.now += 59
    assert not west.try_acquire()
    clock.now += 1
    assert west.try_acquire()


def test_deleted_lock_is_restored_and_must_expire(bucket: MemoryBucket, documents: DocumentStore, states: StateStore, clock: Clock) -> None:
    east, west = contender(documents, clock, "east"), contender(documents, clock, "west")
    east.try_acquire()
    states.seal(1)
    bucket.delete(LOCK)
    assert not west.try_acquire()
    lock = read_lock(documents, WORKLOAD)
    assert (lock.holder, lock.epoch) == (RESTORED, 1)
    assert not west.try_acquire()
    assert not east.renew()  # it notices the restored lock
    clock.now += 30
    assert west.try_acquire()
    assert west.epoch == 2


def test_restored_lock_never_reuses_an_epoch_that_was_sealed_since(
    bucket: MemoryBucket, documents: DocumentStore, states: StateStore, clock: Clock
) -> None:
    east, west = contender(documents, clock, "east"), contender(documents, clock, "west")
    east.try_acquire()
    states.seal(1)
    clock.now += 20
    assert east.try_acquire()
    # Deleted just before the new leader seals, so the lock is restored with the previous epoch.
    bucket.delete(LOCK)
    west.try_acquire()
    assert read_lock(documents, WORKLOAD).epoch == 1
    assert states.seal(east.epoch).epoch == 2
    # After a restart, the same instance must not take its own seal of that epoch for one of the new term.
    restarted = contender(documents, clock, "east")
    restarted.try_acquire()
    clock.now += 30
    assert restarted.try_acquire()
    assert restarted.epoch == 3


def test_epoch_is_current_only_while_its_leader_holds_the_lock(documents: DocumentStore, clock: Clock) -> None:
    with pytest.raises(s3_errors.Fenced, match="no holder leads"):
        verify_epoch(documents, WORKLOAD, 0)
    east = contender(documents, clock, "east")
    east.try_acquire()
    assert verify_epoch(documents, WORKLOAD, 1).holder == "east"
    with pytest.raises(s3_errors.Fenced, match="east leads under epoch 1"):
        verify_epoch(documents, WORKLOAD, 2)
    east.release()
    with pytest.raises(s3_errors.Fenced, match="the last epoch was 1"):
        verify_epoch(documents, WORKLOAD, 1)


def test_term_that_is_ended_is_followed_by_an_epoch_after_the_given_one(documents: DocumentStore, clock: Clock) -> None:
    east, west = contender(documents, clock, "east"), contender(documents, clock, "west")
    east.try_acquire()
    with pytest.raises(s3_errors.Fenced):
        end_term(documents, WORKLOAD, 2, 7)
    end_term(documents, WORKLOAD, 1, 7)
    with pytest.raises(s3_errors.Fenced):
        verify_epoch(documents, WORKLOAD, 1)
    assert not east.renew()
    assert west.try_acquire() and west.epoch == 8


@pytest.mark.parametrize(("ttl", "holder"), [(2.9, "east"), (30, "")])
def test_invalid_lease_is_refused(documents: DocumentStore, ttl: float, holder: str) -> None:
    with pytest.raises(s3_errors.BadOptions):
        Lease(documents.store, WORKLOAD, holder, "x", ttl)


def test_each_write_has_a_nonce_of_its_own(bucket: MemoryBucket, documents: DocumentStore, clock: Clock) -> None:
    east = contender(documents, clock, "east")
    east.try_acquire()
    bodies = {bucket.objects[LOCK]}
    for _renewal in range(3):
        east.renew()
        bodies.add(bucket.objects[LOCK])
    assert len({json.loads(body)["nonce"] for body in bodies}) == 4


def test_clock_includes_time_asleep() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= boottime() <= time.clock_gettime(time.CLOCK_BOOTTIME)


def takeover_seconds(killed_at: float | None, released_at: float | None) -> float:
    """Time from the end of the first contender until the second leads, on the virtual clock with the default ttl."""

    class Ending(Simulation):
        second_leads_at = 0.0

        def record_leader(self, epoch: int, instance: str) -> None:
            super().record_leader(epoch, instance)
            if epoch == 2:
                self.second_leads_at = self.now

    simulation = Ending(Scenario(b"", 256, (1.0, 1.0), (30.0, 30.0)), Rules())
    first = simulation.contenders[0]
    ended = killed_at or released_at or 0.0

    def end() -> None:
        first.running = False
        if released_at:
            simulation.start(lambda: first.lease.release() and None)

    simulation.after(ended, end)
    simulation.run()
    assert simulation.leaders[2].startswith("1-")
    return simulation.second_leads_at - ended


@pytest.mark.parametrize("moment", [20.0, 23.1, 26.7, 31.3, 34.9, 40.0])
def test_next_leader_takes_over_within_36_seconds_of_a_kill_and_6_of_a_release(moment: float) -> None:
    assert 30 - 15 < takeover_seconds(moment, None) <= 36
    assert takeover_seconds(None, moment) <= 6
    assert POLL == 5.0
