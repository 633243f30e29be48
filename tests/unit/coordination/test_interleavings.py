"""Never two acting leaders, no epoch twice, no state of an old epoch, no history lost: searched for in thousands of runs full of faults.

And each rule that keeps these promises is taken away in turn: then the same search must find a run in which one is broken. A rule whose
absence it does not notice would be a rule that nothing tests.
"""

from __future__ import annotations

import json
import os
import random
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import Content, Document, Documents
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease, Lock, Term
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import History, State, StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import Fenced, S3Error, ServerError, Unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore, Stored
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from .s3_simulation import LOCK, STATE, MemoryBucket, Rules, Simulation, Story, Violation

RUNS = 3000
# And so many that nobody has seen before, each time others.
NEW_RUNS = 1000
SEED = "OPENFLEET_SEED"
# Of each story, in bytes that say what happens.
LONGEST = 160
# Without a rule a broken promise is found sooner, or the test fails.
RUNS_TO_FIND = 4000


# In some stories one contender has a longer ttl than the others, in some somebody deletes the lock by hand, in some leaders often die.
PLAIN, LONGER, DELETED, MORTAL = ALL = "plain", "one longer ttl", "lock deleted", "mortal leaders"


@st.composite
def stories(draw: st.DrawFn, kinds: tuple[str, ...]) -> Story:
    kind = draw(st.sampled_from(kinds))
    contenders = draw(st.sampled_from([2, 3, 4]))
    # Clocks that run up to 15 percent too slow or too fast: much more than any real one, and less than the margin allows for.
    speeds = draw(st.tuples(*[st.sampled_from([1.0, 0.85, 1.15])] * contenders))
    deleted_at = draw(st.sampled_from([20.0, 35.0, 50.0])) if kind == DELETED else None
    ttls = tuple(60.0 if kind == LONGER and number == 0 else 30.0 for number in range(contenders))
    # Bytes that are drawn one by one are mostly small, which is mostly nothing: these find each missing rule in a tenth of the runs. A
    # story that breaks a promise is made as short as it can be.
    chance = random.Random(draw(st.integers(0, 2**64 - 1)))  # noqa: S311 - the same each time
    script = chance.randbytes(LONGEST)[: draw(st.integers(20, LONGEST))]
    return Story(script, draw(st.sampled_from([240, 215, 180, 120])), speeds, ttls, deleted_at, kind == MORTAL)


def search(rules: Rules, kinds: tuple[str, ...], runs: int, *phases: Phase, chance: int | None = None) -> Counter[str]:
    """Run stories until a promise is broken, which is an error, or all were fine: the same each time, or others with each `chance`.

    The answer tells how often something happened that a search must have seen to say anything.
    """
    seen: Counter[str] = Counter()

    @settings(
        max_examples=runs,
        derandomize=chance is None,
        database=None,
        deadline=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    @given(stories(kinds))
    def every_promise_is_kept(story: Story) -> None:
        simulation = Simulation(story, rules)
        simulation.run()
        seen.update(runs=1, terms=len(simulation.leaders), resumed=simulation.resumed)

    (every_promise_is_kept if chance is None else seed(chance)(every_promise_is_kept))()
    return seen


def test_every_promise_is_kept_whatever_happens() -> None:
    seen = search(Rules(), ALL, RUNS, Phase.generate, Phase.shrink)
    assert seen["runs"] >= RUNS
    assert seen["terms"] > RUNS
    assert seen["resumed"] > RUNS / 100


def test_every_promise_is_kept_in_runs_that_nobody_has_seen_before() -> None:
    chance = int(os.environ.get(SEED) or secrets.randbelow(2**32))
    try:
        search(Rules(), ALL, NEW_RUNS, Phase.generate, Phase.shrink, chance=chance)
    except BaseException as error:
        error.add_note(f"{SEED}={chance} in the environment makes the same runs again.")
        raise


# One rule less, each


class CreatesOverWhatIsThere(MemoryBucket):
    def write(self, key: str, body: bytes, match: str | None) -> str:
        if match is None:
            self.objects.pop(key, None)
        return super().write(key, body, match)


class ReplacesWhatHasChanged(MemoryBucket):
    def write(self, key: str, body: bytes, match: str | None) -> str:
        return super().write(key, body, self.etag(self.objects[key]) if match and key in self.objects else match)


class ReplacesStateThatHasChanged(ReplacesWhatHasChanged):
    def write(self, key: str, body: bytes, match: str | None) -> str:
        return super().write(key, body, match) if key == STATE else MemoryBucket.write(self, key, body, match)


class DoesNotLookForLostWrites(ObjectStore):
    def _look_for(self, *_of: Any) -> Stored | None:
        return None


class KnowsItsWriteByTheHolder(ObjectStore):
    def _write(self, key: str, body: bytes, match: str | None) -> Stored:
        try:
            return super()._write(key, body, match)
        except S3Error:
            found = self.get(key)
            if found and key == LOCK and json.loads(found.body)["holder"] == json.loads(body)["holder"]:
                return found
            raise


class RetriesBlindly(ObjectStore):
    """As an SDK does that repeats a request by itself, and takes what it finds for the fault of another."""

    def _write(self, key: str, body: bytes, match: str | None) -> Stored:
        try:
            return Stored(body, self._bucket.write(key, body, match))
        except (ServerError, Unreachable):
            return Stored(body, self._bucket.write(key, body, match))


class WritesTheSameAgain(Documents):
    """Without the deadline in a lock as well, which may or may not differ from write to write."""

    def _signed(self, content: Content) -> Content:
        same: Content = {"stops": 0.0} if "stops" in content else {}
        return super()._signed(content) | same | {"nonce": "always the same"}


class WaitsHalfATtl(Lease):
    def expires_in(self) -> float:
        return super().expires_in() - 15.0


class CountsFromTheFirstLook(Lease):
    def look(self) -> Lock | None:
        since, known = self._seen_since, self._seen is not None
        lock = super().look()
        if known:
            self._seen_since = since
        return lock


class GoesByItsOwnTtl(Lease):
    def expires_in(self) -> float:
        return super().expires_in() - (self._ttl_seen() - self.ttl)

    def _ttl_seen(self) -> float:
        return float(self._seen.content["ttl"]) if self._seen else self.ttl


class ActsUntilTheEnd(Lease):
    def _deadline(self, sent: float) -> float:
        return sent + self.ttl


class CountsFromTheAnswer(Lease):
    def _deadline(self, *_sent: float) -> float:
        return super()._deadline(self._clock())


class DeletesWhenReleased(Lease):
    def release(self) -> bool:
        term, self._term = self._term, None
        if term:
            self._documents.store.delete(LOCK)
        return bool(term)


class ReleasesBeforeItStops(Lease):
    def release(self) -> bool:
        term = self._term
        try:
            return super().release() if term is None else bool(self._swap(term.document, Lock(epoch=term.epoch, ttl=self.ttl)))
        finally:
            self._term = None


class GoesOnAfterTheDeadline(Lease):
    def renew(self) -> bool:
        term = self._term
        sent = self._clock()
        document = self._swap(term.document, self._lock(term.epoch, term.deadline)) if term else None
        self._term = Term(self.epoch, document, self._deadline(sent)) if document else None
        return self.acting()


class ResumesWhatIsOver(Lease):
    def look(self) -> Lock | None:
        lock = super().look()
        return replace(lock, stops=self._deadline(self._clock())) if lock else None


class WritesDownWhatItHopesToGain(Lease):
    def _lock(self, epoch: int, *_stops: float) -> Lock:
        return super()._lock(epoch, self._deadline(self._clock()))


class BelievesTheClockOfAnotherMachine(Lease):
    def look(self) -> Lock | None:
        lock = super().look()
        return replace(lock, machine=self.machine) if lock else None


class KeepsTheEpochWhenItTakesOver(Lease):
    def _take(self, epoch: int) -> bool:
        return super()._take(max(1, epoch - 1))


class StartsAnewWhereTheLockIsGone(Lease):
    def _epoch_of_state(self) -> int:
        return 0


class DoesNotSeal(StateStore):
    def seal(self, *_epoch: int) -> State:
        return self.read()

    def plan(self, epoch: int, *_changes: Any) -> State:
        state = self.read()
        if state.epoch > epoch:
            raise Fenced("the epoch is over")
        return state


class DoesNotAskForTheEpoch(StateStore):
    def plan(self, *_write: Any) -> State:
        return self.read()


class RecordsOnlyAfterwards(StateStore):
    def _replace(self, state: State, epoch: int, leader: str, changes: Mapping[str, Any]) -> State:
        recording, self.history.record = self.history.record, lambda which: None if which is state else recording(which)  # type: ignore[method-assign]
        try:
            return super()._replace(state, epoch, leader, changes)
        finally:
            self.history.record = recording  # type: ignore[method-assign]


class WritesHistoryTwice(History):
    def record(self, state: State) -> None:
        there: Document | None = self._documents.read(self.key(state)) if state.revision else None
        if there:
            self._documents.write(self.key(state), state.content(), there)
        else:
            super().record(state)


WITHOUT = {
    "create only what is not there": Rules(bucket=CreatesOverWhatIsThere),
    "replace only what has not changed": Rules(bucket=ReplacesWhatHasChanged),
    "replace only a state that has not changed": Rules(bucket=ReplacesStateThatHasChanged),
    "a refused or lost write is looked for": Rules(store=DoesNotLookForLostWrites),
    "only the same nonce is one's own write": Rules(store=KnowsItsWriteByTheHolder),
    "no blind retries": Rules(store=RetriesBlindly),
    "each write has a nonce": Rules(documents=WritesTheSameAgain),
    "a whole ttl must pass": Rules(lease=WaitsHalfATtl),
    "a changed ETag begins a new wait": Rules(lease=CountsFromTheFirstLook),
    "the holder's ttl counts": Rules(lease=GoesByItsOwnTtl),
    "the leader stops before it could expire": Rules(lease=ActsUntilTheEnd),
    "counted from before the write was sent": Rules(lease=CountsFromTheAnswer),
    "released is emptied, not deleted": Rules(lease=DeletesWhenReleased),
    "a leader stops first, then releases": Rules(lease=ReleasesBeforeItStops),
    "a term, once over, stays over": Rules(lease=GoesOnAfterTheDeadline),
    "a term that is over is not resumed": Rules(lease=ResumesWhatIsOver),
    "nor one that was renewed too late": Rules(lease=WritesDownWhatItHopesToGain),
    "nor one of which another machine knows when it is": Rules(lease=BelievesTheClockOfAnotherMachine),
    "each leader has a new epoch": Rules(lease=KeepsTheEpochWhenItTakesOver),
    "a deleted lock is put back": Rules(lease=StartsAnewWhereTheLockIsGone),
    "a new leader seals the state": Rules(states=DoesNotSeal),
    "an old epoch may not write": Rules(states=DoesNotAskForTheEpoch),
    "a revision is recorded before it is replaced": Rules(states=RecordsOnlyAfterwards),
    "history is create-only": Rules(history=WritesHistoryTwice),
}


# Where a rule is about one kind of story, the search need not look at others.
ABOUT = {
    "the holder's ttl counts": LONGER,
    "a deleted lock is put back": DELETED,
    "a term that is over is not resumed": MORTAL,
    "nor one that was renewed too late": MORTAL,
    "nor one of which another machine knows when it is": MORTAL,
}


@pytest.mark.parametrize("rule", WITHOUT)
def test_without_this_rule_a_promise_is_broken(rule: str) -> None:
    with pytest.raises(Violation):
        search(WITHOUT[rule], (ABOUT.get(rule, PLAIN),), RUNS_TO_FIND, Phase.generate)
