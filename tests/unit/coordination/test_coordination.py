"""The rules of S3 coordination, one by one, on a store in memory with S3's rules and a clock that the test owns."""

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import Documents, Place, awake
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.health import ClusterHealth, clusters
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import RESTORED, Lease, read_lock, verify
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import PRUNE_EVERY, Decision, History, StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3 import errors as s3_errors
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store_check import STANDING, prove, prove_way, require

from .s3_simulation import LOCK, PLACE, POLL, STATE, MemoryBucket, Rules, Simulation, Story


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bucket() -> MemoryBucket:
    return MemoryBucket()


@pytest.fixture
def documents(bucket: MemoryBucket) -> Documents:
    return Documents(ObjectStore(bucket), PLACE.identity())


@pytest.fixture
def states(documents: Documents) -> StateStore:
    return StateStore(documents, PLACE, "east-1")


def contender(documents: Documents, clock: Clock, name: str, ttl: float = 30) -> Lease:
    return Lease(documents.store, PLACE, name, f"{name}-1", ttl, clock)


def test_second_contender_leads_only_after_the_same_etag_for_a_whole_ttl(documents: Documents, clock: Clock) -> None:
    east, west = contender(documents, clock, "east"), contender(documents, clock, "west")
    assert east.attempt()
    clock.now += 7
    assert not west.attempt()
    clock.now += 10
    assert east.renew()
    assert not west.attempt()  # the wait begins again
    clock.now += 29.9
    assert not west.attempt()
    clock.now += 0.1
    assert west.attempt()
    assert (east.epoch, west.epoch) == (1, 2)
    assert not east.acting()
    assert not east.renew()


def test_leader_stops_acting_ten_seconds_before_it_could_expire(documents: Documents, clock: Clock) -> None:
    east = contender(documents, clock, "east")
    east.attempt()
    assert east.renew_every == 15
    clock.now += 19.9
    assert east.acting()
    clock.now += 0.1
    assert not east.acting()
    # The term stays over; whoever leads again, the same one too, has a new epoch and need not wait for itself.
    assert not east.renew()
    assert east.attempt()
    assert east.epoch == 2


def test_the_time_of_a_leader_is_counted_from_before_its_write_was_sent(clock: Clock) -> None:
    class Slow(MemoryBucket):
        def write(self, key: str, body: bytes, match: str | None) -> str:
            clock.now += 4
            return super().write(key, body, match)

    documents = Documents(ObjectStore(Slow()), PLACE.identity())
    east = contender(documents, clock, "east")
    assert east.attempt()
    assert (east.acting_seconds(), east.renewal_in()) == (pytest.approx(16), pytest.approx(11))
    assert east.renew()
    assert east.acting_seconds() == pytest.approx(16)


def test_release_empties_the_lock_and_keeps_its_epoch(documents: Documents, clock: Clock) -> None:
    east, west = contender(documents, clock, "east"), contender(documents, clock, "west")
    east.attempt()
    assert not west.release()
    assert east.release()
    assert not east.acting()
    lock = read_lock(documents, PLACE)
    assert (lock.holder, lock.instance, lock.epoch) == ("", "", 1)
    assert west.attempt()
    assert west.epoch == 2
    assert not east.release()


def test_the_next_process_of_the_same_name_goes_on_only_while_the_term_lasts(documents: Documents, clock: Clock) -> None:
    def process(machine: str) -> Lease:
        return Lease(documents.store, PLACE, "east", "east-1", 30, clock, machine)

    assert not process("here").resume()  # nothing was begun
    assert process("here").attempt()
    clock.now += 19.9
    for elsewhere in ("there", ""):
        assert not process(elsewhere).resume()
    second = process("here")
    assert second.resume()
    assert second.acting_seconds() == pytest.approx(0.1)
    assert second.renew()
    assert (second.epoch, second.acting_seconds()) == (1, 20)
    # What a renewal gains is in the lock with the next one only: it may have come too late for who sent it.
    clock.now += 0.1
    assert not process("here").resume()
    assert second.renew()
    clock.now += 19.8
    assert process("here").resume()
    clock.now += 0.2
    third = process("here")
    assert not third.resume()
    assert third.attempt()
    assert third.epoch == 2
    third.release()
    assert not process("here").resume()


def test_a_term_of_which_a_lock_does_not_say_when_it_ends_is_over(bucket: MemoryBucket, documents: Documents, clock: Clock) -> None:
    for machine in ("", "here"):
        assert Lease(documents.store, PLACE, "east", "east-1", 30, clock, machine).attempt()
        lock = json.loads(bucket.objects[LOCK])
        bucket.objects[LOCK] = json.dumps({name: value for name, value in lock.items() if name != "stops"}).encode()
        assert not Lease(documents.store, PLACE, "east", "east-1", 30, clock, machine).resume()


def test_the_ttl_of_the_holder_counts(documents: Documents, clock: Clock) -> None:
    east, west = contender(documents, clock, "east", ttl=60), contender(documents, clock, "west", ttl=30)
    east.attempt()
    assert not west.attempt()
    clock.now += 59
    assert not west.attempt()
    clock.now += 1
    assert west.attempt()


def test_a_deleted_lock_is_put_back_and_must_expire(bucket: MemoryBucket, documents: Documents, states: StateStore, clock: Clock) -> None:
    east, west = contender(documents, clock, "east"), contender(documents, clock, "west")
    east.attempt()
    states.seal(1)
    bucket.remove(LOCK)
    assert not west.attempt()
    lock = read_lock(documents, PLACE)
    assert (lock.holder, lock.epoch) == (RESTORED, 1)
    assert not west.attempt()
    assert not east.renew()  # it notices
    clock.now += 30
    assert west.attempt()
    assert west.epoch == 2


def test_a_lock_that_was_put_back_is_behind_a_state_that_was_sealed_since(
    bucket: MemoryBucket, documents: Documents, states: StateStore, clock: Clock
) -> None:
    east, west = contender(documents, clock, "east"), contender(documents, clock, "west")
    east.attempt()
    states.seal(1)
    clock.now += 20
    assert east.attempt()
    # Deleted just before the new leader seals, so it is put back with the epoch before.
    bucket.remove(LOCK)
    west.attempt()
    assert read_lock(documents, PLACE).epoch == 1
    assert states.seal(east.epoch).epoch == 2
    # Started again under the same name, it must not take its own seal of that epoch for one of the new term.
    restarted = contender(documents, clock, "east")
    restarted.attempt()
    clock.now += 30
    assert restarted.attempt()
    assert restarted.epoch == 3


def test_an_epoch_is_current_only_while_its_leader_holds_the_lock(documents: Documents, clock: Clock) -> None:
    with pytest.raises(s3_errors.Fenced, match="nobody leads"):
        verify(documents, PLACE, 0)
    east = contender(documents, clock, "east")
    east.attempt()
    assert verify(documents, PLACE, 1).holder == "east"
    with pytest.raises(s3_errors.Fenced, match="east leads under epoch 1"):
        verify(documents, PLACE, 2)
    east.release()
    with pytest.raises(s3_errors.Fenced, match="the last epoch was 1"):
        verify(documents, PLACE, 1)


@pytest.mark.parametrize(("ttl", "holder"), [(2.9, "east"), (30, "")])
def test_a_lease_that_means_nothing_is_refused(documents: Documents, ttl: float, holder: str) -> None:
    with pytest.raises(s3_errors.BadOptions):
        Lease(documents.store, PLACE, holder, "x", ttl)


def test_names_that_make_the_same_key_are_told_apart(documents: Documents, clock: Clock) -> None:
    one, two = Place("a-b", "c"), Place("a", "b-c")
    assert one.key("lock") == two.key("lock")
    assert Lease(documents.store, one, "east", "east-1", 30, clock).attempt()
    with pytest.raises(s3_errors.WrongIdentity, match="Rename one of the two"):
        Lease(documents.store, two, "west", "west-1", 30, clock).attempt()


@pytest.mark.parametrize("name", ["", "A", "a/b", "-a", "a-", "a_b", "ü", "../x"])
def test_names_that_are_none_are_refused(name: str) -> None:
    with pytest.raises(s3_errors.BadOptions, match="is no name"):
        Place("shop", name)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"identity": {"namespace": "orders", "name": "demo"}, "epoch": "1"}'])
def test_what_others_have_written_stops_everything(bucket: MemoryBucket, documents: Documents, clock: Clock, body: bytes) -> None:
    bucket.objects[LOCK] = bucket.objects[STATE] = body
    with pytest.raises(s3_errors.Malformed, match="Find out who has"):
        contender(documents, clock, "east").attempt()
    with pytest.raises(s3_errors.Malformed):
        StateStore(documents, PLACE).read()
    assert bucket.objects[LOCK] == body


def test_state_is_written_only_under_the_epoch_it_is_sealed_with(documents: Documents, states: StateStore) -> None:
    with pytest.raises(s3_errors.CoordinationError, match="not sealed"):
        states.write(1, {"step": "One"})
    assert states.seal(1).revision == 1
    assert states.seal(1).revision == 1
    written = states.write(1, {"step": "One", "intent": {"a": 1}})
    assert (written.revision, written.intent, written.step) == (2, {"a": 1}, "One")
    assert states.write(1, {"step": "One"}).revision == 2
    later = StateStore(documents, PLACE, "west-1")
    sealed = later.seal(2)
    assert (sealed.revision, sealed.step, sealed.leader) == (3, "One", "west-1")
    for old in (lambda: states.write(1, {"step": "Two"}), lambda: states.seal(1)):
        with pytest.raises(s3_errors.Fenced):
            old()
    # A seal has one owner: the same epoch of another was won after somebody deleted the lock.
    with pytest.raises(s3_errors.Fenced, match="by west-1"):
        states.seal(2)
    with pytest.raises(s3_errors.CoordinationError, match="The state has no colour"):
        later.write(2, {"colour": "red"})


def test_state_is_written_only_if_it_is_at_the_expected_revision(states: StateStore) -> None:
    states.seal(1)
    states.write(1, {"step": "One"}, expected_revision=1)
    with pytest.raises(s3_errors.StaleRevision, match="at revision 2, not at 1"):
        states.write(1, {"step": "Two"}, expected_revision=1)
    # What is so already is no conflict: the first try has done it.
    assert states.write(1, {"step": "One"}, expected_revision=1).revision == 2


def test_what_was_written_meanwhile_is_not_overwritten(documents: Documents, states: StateStore) -> None:
    states.seal(1)
    other = StateStore(documents, PLACE, "task")

    class Late(StateStore):
        def plan(self, epoch, changes, expected_revision=None):  # type: ignore[no-untyped-def]
            planned = super().plan(epoch, changes, expected_revision)
            other.write(1, {"step": "Other"})
            return planned

    with pytest.raises(s3_errors.StaleRevision, match="Nothing was written"):
        Late(documents, PLACE).write(1, {"step": "Mine"})
    assert states.read().step == "Other"


def test_history_has_every_revision_in_order_and_keeps_the_newest(documents: Documents) -> None:
    states = StateStore(documents, PLACE, "east-1", keep=60)
    states.seal(9)
    for number in range(2, 12):
        states.write(9, {"step": f"{number}"})
    states.seal(10)
    history = History(documents, PLACE)
    assert [entry["revision"] for entry in history.entries()] == list(range(1, 13))
    assert history.keys()[-1].endswith("/history/0000000010-0000000012")
    assert [entry["revision"] for entry in history.entries(2)] == [11, 12]
    assert history.entries(0) == []
    # It prunes by itself, now and then.
    for number in range(13, 101):
        states.write(10, {"step": f"{number}"})
    assert [entry["revision"] for entry in history.entries()] == list(range(41, 101))
    assert len(history.prune(3)) == 57
    assert [entry["revision"] for entry in history.entries()] == [98, 99, 100]
    history.prune(0)
    assert [entry["revision"] for entry in history.entries()] == [100]


def test_a_new_leader_prunes_nothing_of_what_tasks_keep(documents: Documents) -> None:
    kept = StateStore(documents, PLACE, "east-1", keep=5000)
    kept.seal(1)
    for number in range(2, 1050):
        kept.write(1, {"step": f"{number}"})
    # The seal is the revision at which a write would look for what is too old, and has no number to keep by.
    assert StateStore(documents, PLACE, "west-1").seal(2).revision % PRUNE_EVERY == 0
    assert len(kept.history.keys()) == 1050


def test_a_revision_that_its_writer_could_not_record_is_recorded_by_the_next(bucket: MemoryBucket, documents: Documents) -> None:
    states = StateStore(documents, PLACE, "east-1")
    states.seal(1)
    bucket.objects = {key: body for key, body in bucket.objects.items() if "/history/" not in key}
    states.write(1, {"step": "One"})
    assert [entry["revision"] for entry in states.history.entries()] == [1, 2]


def test_decision_mirrors_the_state_and_never_goes_back(documents: Documents, states: StateStore) -> None:
    mirror = Decision(documents, PLACE)
    states.seal(1)
    first = states.write(1, {"decision": {"cluster": "east"}})
    second = states.write(1, {"decision": {"cluster": "west"}})
    assert mirror.publish(second)
    assert not mirror.publish(first)
    assert not mirror.publish(states.write(1, {"step": "More"}))
    told = mirror.read()
    assert (told.decision, told.revision) == ({"cluster": "west"}, second.revision)
    assert mirror.read(told) is told


def test_no_two_writes_are_alike(bucket: MemoryBucket, documents: Documents, clock: Clock) -> None:
    east = contender(documents, clock, "east")
    east.attempt()
    seen = {bucket.objects[LOCK]}
    for _renewal in range(3):
        east.renew()
        seen.add(bucket.objects[LOCK])
    assert len({json.loads(body)["nonce"] for body in seen}) == 4


def test_health_is_what_a_cluster_says_and_unknown_when_it_is_silent(documents: Documents, clock: Clock) -> None:
    own, other = (ClusterHealth(documents.store, "east", clock) for _side in range(2))
    assert (other.look().state, clusters(documents.store)) == ("unknown", [])
    own.report("healthy", interval=10)
    assert clusters(documents.store) == ["east"]
    assert other.look().state == "healthy"
    clock.now += 30
    assert other.look().state == "healthy"
    clock.now += 1
    assert other.look().state == "unknown"
    assert "no report for 31 seconds" in other.look().reason
    own.report("unreachable", "no answer", interval=10)
    assert (other.look().state, other.look().sequence) == ("unreachable", 2)
    # A source that was restarted goes on where it stopped.
    assert ClusterHealth(documents.store, "east", clock).report("healthy").sequence == 3
    with pytest.raises(s3_errors.BadOptions):
        ClusterHealth(documents.store, "East")


def test_the_clock_goes_on_while_the_machine_sleeps() -> None:
    assert abs(awake() - time.clock_gettime(time.CLOCK_BOOTTIME)) < 1


def test_proof_finds_each_condition_that_is_ignored() -> None:
    class NoCreate(MemoryBucket):
        def write(self, key: str, body: bytes, match: str | None) -> str:
            if match is None:
                self.objects.pop(key, None)
            return super().write(key, body, match)

    class NoMatch(MemoryBucket):
        def write(self, key: str, body: bytes, match: str | None) -> str:
            return super().write(key, body, self.etag(self.objects[key]) if match and key in self.objects else match)

    for kind, case in ((NoCreate, "create what is there"), (NoMatch, "replace what has changed")):
        findings = prove(ObjectStore(kind()))
        assert case in {finding.case for finding in findings if not finding.passed}
        with pytest.raises(s3_errors.NoConditions, match=case):
            require(findings, "the store")
        assert [finding.case for finding in prove_way(ObjectStore(kind())) if not finding.passed] == [case]
    honest = ObjectStore(MemoryBucket())
    require(prove(honest), "the store")
    assert honest.keys("") == []
    for _task in range(2):
        require(prove_way(honest), "the way")
    assert honest.keys("") == [STANDING]


def lead_times(killed_at: float | None, released_at: float | None) -> float:
    """Of two contenders the first one ends; how long until the second leads, on the virtual clock with the defaults of the source."""

    class Ending(Simulation):
        led_at = 0.0

        def leads(self, epoch: int, who: str) -> None:
            super().leads(epoch, who)
            if epoch == 2:
                self.led_at = self.now

    simulation = Ending(Story(b"", 256, (1.0, 1.0), (30.0, 30.0)), Rules())
    first = simulation.contenders[0]
    ended = killed_at or released_at or 0.0

    def end() -> None:
        first.live_on = False
        if released_at:
            simulation.start(lambda: first.lease.release() and None)

    simulation.after(ended, end)
    simulation.run()
    assert simulation.leaders[2].startswith("1-")
    return simulation.led_at - ended


@pytest.mark.parametrize("moment", [20.0, 23.1, 26.7, 31.3, 34.9, 40.0])
def test_the_next_leads_within_36_seconds_of_a_kill_and_6_of_a_release(moment: float) -> None:
    assert 30 - 15 < lead_times(moment, None) <= 36
    assert lead_times(None, moment) <= 6
    assert POLL == 5.0
