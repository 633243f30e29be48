"""State, history and published decision, on a store in memory."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.decision import DecisionStore
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import PRUNE_INTERVAL, History, StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3 import errors as s3_errors

from ..s3.memory_bucket import MemoryBucket
from .simulation import WORKLOAD


def test_state_is_written_only_under_the_epoch_it_is_sealed_with(documents: DocumentStore, states: StateStore) -> None:
    with pytest.raises(s3_errors.CoordinationError, match="not sealed"):
        states.write(1, {"step": "One"})
    assert states.seal(1).revision == 1
    assert states.seal(1).revision == 1
    written = states.write(1, {"step": "One", "intent": {"a": 1}})
    assert (written.revision, written.intent, written.step) == (2, {"a": 1}, "One")
    assert states.write(1, {"step": "One"}).revision == 2
    later = StateStore(documents, WORKLOAD, "west-1")
    sealed = later.seal(2)
    assert (sealed.revision, sealed.step, sealed.leader) == (3, "One", "west-1")
    for old in (lambda: states.write(1, {"step": "Two"}), lambda: states.seal(1)):
        with pytest.raises(s3_errors.Fenced):
            old()
    # A seal has one owner: another contender can have the same epoch only after the lock was deleted by hand.
    with pytest.raises(s3_errors.Fenced, match="by west-1"):
        states.seal(2)
    with pytest.raises(s3_errors.CoordinationError, match="The state has no field colour"):
        later.write(2, {"colour": "red"})


def test_state_is_written_only_at_the_expected_revision(states: StateStore) -> None:
    states.seal(1)
    states.write(1, {"step": "One"}, expected_revision=1)
    with pytest.raises(s3_errors.StaleRevision, match="at revision 2, not 1"):
        states.write(1, {"step": "Two"}, expected_revision=1)
    # Values that the state has already are no conflict: an earlier attempt wrote them.
    assert states.write(1, {"step": "One"}, expected_revision=1).revision == 2


def test_concurrent_write_is_not_overwritten(documents: DocumentStore, states: StateStore) -> None:
    states.seal(1)
    other = StateStore(documents, WORKLOAD, "task")

    class Late(StateStore):
        def check_write(self, epoch, changes, expected_revision=None):  # type: ignore[no-untyped-def]
            state = super().check_write(epoch, changes, expected_revision)
            other.write(1, {"step": "Other"})
            return state

    with pytest.raises(s3_errors.StaleRevision, match="Nothing was written"):
        Late(documents, WORKLOAD).write(1, {"step": "Mine"})
    assert states.read().step == "Other"


def test_history_has_every_revision_in_order_and_keeps_the_newest(documents: DocumentStore) -> None:
    states = StateStore(documents, WORKLOAD, "east-1", keep=60)
    states.seal(9)
    for number in range(2, 12):
        states.write(9, {"step": f"{number}"})
    states.seal(10)
    history = History(documents, WORKLOAD)
    assert [entry["revision"] for entry in history.entries()] == list(range(1, 13))
    assert history.keys()[-1].endswith("/history/0000000010-0000000012")
    assert [entry["revision"] for entry in history.entries(2)] == [11, 12]
    assert history.entries(0) == []
    # Every 50th write prunes.
    for number in range(13, 101):
        states.write(10, {"step": f"{number}"})
    assert [entry["revision"] for entry in history.entries()] == list(range(41, 101))
    assert len(history.prune(3)) == 57
    assert [entry["revision"] for entry in history.entries()] == [98, 99, 100]
    history.prune(0)
    assert [entry["revision"] for entry in history.entries()] == [100]


def test_new_leader_prunes_no_history(documents: DocumentStore) -> None:
    kept = StateStore(documents, WORKLOAD, "east-1", keep=5000)
    kept.seal(1)
    for number in range(2, 1050):
        kept.write(1, {"step": f"{number}"})
    # A write of this revision would prune. A seal does not know how many entries to keep.
    assert StateStore(documents, WORKLOAD, "west-1").seal(2).revision % PRUNE_INTERVAL == 0
    assert len(kept.history.keys()) == 1050


def test_next_writer_records_a_revision_that_its_writer_could_not(bucket: MemoryBucket, documents: DocumentStore) -> None:
    states = StateStore(documents, WORKLOAD, "east-1")
    states.seal(1)
    bucket.objects = {key: body for key, body in bucket.objects.items() if "/history/" not in key}
    states.write(1, {"step": "One"})
    assert [entry["revision"] for entry in states.history.entries()] == [1, 2]


def test_published_decision_follows_the_state_and_never_goes_back(documents: DocumentStore, states: StateStore) -> None:
    decisions = DecisionStore(documents, WORKLOAD)
    states.seal(1)
    first = states.write(1, {"decision": {"cluster": "east"}})
    second = states.write(1, {"decision": {"cluster": "west"}})
    assert decisions.publish(second)
    assert not decisions.publish(first)
    more = states.write(1, {"step": "More"})
    assert not decisions.publish(more), "the decision is the same"
    current = decisions.read()
    assert (current.decision, current.epoch, current.revision) == ({"cluster": "west"}, 1, more.revision)
    assert decisions.read(current) is current


def test_a_late_publication_does_not_replace_a_decision_that_was_taken_again(documents: DocumentStore, states: StateStore) -> None:
    decisions = DecisionStore(documents, WORKLOAD)
    states.seal(1)
    decisions.publish(states.write(1, {"decision": {"cluster": "east"}}))
    late = states.write(1, {"decision": {"cluster": "west"}})
    decisions.publish(states.write(1, {"decision": {"cluster": "east"}}))
    assert not decisions.publish(late)
    assert decisions.read().decision == {"cluster": "east"}


def test_the_decision_of_a_later_epoch_is_published_whatever_its_revision(
    bucket: MemoryBucket, documents: DocumentStore, states: StateStore
) -> None:
    decisions = DecisionStore(documents, WORKLOAD)
    states.seal(1)
    before = [states.write(1, {"decision": {"cluster": name}}) for name in ("east", "west", "east")][-1]
    decisions.publish(before)
    bucket.objects.pop(WORKLOAD.key("state"))  # by hand: the revisions begin again
    states.seal(2)
    created_again = states.write(2, {"decision": {"cluster": "north"}})
    assert created_again.revision < before.revision
    assert decisions.publish(created_again)
    assert not decisions.publish(before)
    assert decisions.read().decision == {"cluster": "north"}
