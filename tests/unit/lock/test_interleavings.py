"""Searches random runs with faults for violations of the lock of an order: two runs that may write, a token used twice, a late write.

Then it removes each rule of the protocol in turn: the same search must find a violation. A rule whose removal it does not notice would be
untested. OPENFLEET_SOAK multiplies the number of runs.
"""

from __future__ import annotations

import datetime
import os
import random
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import client as kube_client
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.server_clock import ServerClock
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import fenced_writer, lease
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import Lock, LockState
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from ..virtual_time import Violation
from .simulation import Hub, JudgedWriter, Machine, Scenario, Simulation

FIXED_RUNS, NEW_RUNS = 200, 50
# With this seed the search finds each removed rule in some hundred runs.
FIXED_SEED = 3
NEW_SEED = "OPENFLEET_SEED"
MAX_SCRIPT = 240
RUNS_TO_FIND = 3000


@pytest.fixture(autouse=True)
def _waits_in_virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also between two attempts, after a conflict and for a lock that is held. The script decides the random part of it."""

    def sleep(seconds: float) -> None:
        Simulation.current.wait(seconds)

    def uniform(low: float, high: float) -> float:
        return Simulation.current.random.uniform(low, high)

    monkeypatch.setattr(kube_client, "time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(lease, "random", SimpleNamespace(uniform=uniform))


@st.composite
def scenarios(draw: st.DrawFn, date: bool | None = None) -> Scenario:
    machines = draw(st.sampled_from([2, 3]))
    # Two percent is much more than real clocks differ by, and less than what the margin covers in the duration of a
    # lock.
    speeds = draw(st.tuples(*[st.sampled_from([1.0, 0.98, 1.02])] * machines))
    offsets = draw(st.sampled_from([(0.0,), (0.0, 5.0), (5.2, 0.3)]))
    source = random.Random(draw(st.integers(0, 2**64 - 1)))  # noqa: S311 - repeatable
    script = source.randbytes(MAX_SCRIPT)[: draw(st.integers(40, MAX_SCRIPT))]
    sends_date = draw(st.sampled_from([True, True, True, False])) if date is None else date
    return Scenario(script, draw(st.sampled_from([250, 240, 215, 180])), speeds, offsets, sends_date)


def search(hub: type[Hub], runs: int, run_seed: int, *phases: Phase, date: bool | None = None) -> Counter[str]:
    """Run scenarios until one violates an invariant, which raises. The seed decides the scenarios."""
    statistics: Counter[str] = Counter()

    @seed(run_seed)
    @settings(max_examples=runs, database=None, deadline=None, phases=phases, suppress_health_check=list(HealthCheck))
    @given(scenarios(date))
    def invariants_hold(scenario: Scenario) -> None:
        run = Simulation(scenario, hub)
        run.run()
        statistics.update(runs=1, taken=run.taken, writes=run.writes, refused=run.refused, killed=run.killed)

    invariants_hold()
    return statistics


def test_invariants_hold_under_faults(soak: int) -> None:
    runs = FIXED_RUNS * soak
    statistics = search(Hub, runs, FIXED_SEED, Phase.generate, Phase.shrink)
    assert statistics["runs"] >= runs
    assert min(statistics[what] for what in ("taken", "writes", "refused", "killed")) > runs, statistics


def test_invariants_hold_in_new_runs(soak: int) -> None:
    run_seed = int(os.environ.get(NEW_SEED) or secrets.randbelow(2**32))
    try:
        search(Hub, NEW_RUNS * soak, run_seed, Phase.generate, Phase.shrink)
    except BaseException as error:
        error.add_note(f"{NEW_SEED}={run_seed} in the environment repeats these runs.")
        raise


# Each lacks one rule


class CreatesOverExisting(Hub):
    def exists(self, item: Any) -> bool:
        return super().exists(item) and bool(item["metadata"].get("resourceVersion"))


class PatchesChangedLeases(Hub):
    def is_changed(self, present: Any, version: str) -> bool:
        return present["kind"] != "Lease" and super().is_changed(present, version)


class AppliesChangedObjects(Hub):
    def is_changed(self, present: Any, version: str) -> bool:
        return present["kind"] == "Lease" and super().is_changed(present, version)


def takes_with_the_same_token(patch: pytest.MonkeyPatch) -> None:
    acquire = lease._acquire  # noqa: SLF001
    patch.setattr(lease, "_acquire", lambda kube, state, *rest: acquire(kube, replace(state, token=max(0, state.token - 1)), *rest))


def releases_the_token_too(patch: pytest.MonkeyPatch) -> None:
    write = lease._write  # noqa: SLF001
    patch.setattr(lease, "_write", lambda kube, lock, now: write(kube, lock if lock.holder else replace(lock, token=0), now))


def takes_over_at_expiry(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LockState, "free_at", LockState.expires)


def takes_over_half_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LockState, "free_at", lambda state: state.expires() - datetime.timedelta(seconds=state.duration / 2))


def counts_from_the_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ServerClock, "latest", lambda clock: clock.earliest() and clock.earliest() + lease.SECOND)


def ignores_that_a_lock_has_expired(patch: pytest.MonkeyPatch) -> None:
    def verify(kube: Any, lock: Lock) -> LockState:
        return lease._require_holder(kube, lock)  # noqa: SLF001

    patch.setattr(fenced_writer, "verify", verify)
    patch.setattr(LockState, "seconds_left", lambda _state, latest: 1.0 if latest else None)


def verifies_without_the_holder(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lease, "_require_holder", lambda kube, lock: lease.read(kube, lock.namespace, lock.order, lock.kind, lock.site))


def counts_no_time_asleep(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Simulation, "boottime", lambda run, number, real=Simulation.boottime: real(run, number) - run.slept[number])


def never_reads_the_lock_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fenced_writer.FencedWriter, "_verify", lambda writer: None if writer._held_until else writer.verify())  # noqa: SLF001


def creates_unconditionally(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fenced_writer, "ABSENT", "")


def compares_no_tokens(patch: pytest.MonkeyPatch) -> None:
    def current(writer: Any, item: Any) -> Any:
        return writer._kube.find(item["apiVersion"], item["kind"], item["metadata"]["name"])  # noqa: SLF001

    patch.setattr(fenced_writer.FencedWriter, "current", current)
    patch.setattr(fenced_writer.FencedWriter, "_verify", lambda _writer: None)
    patch.setattr(JudgedWriter, "_judge", lambda _writer: None)


def rounds_the_date_up(patch: pytest.MonkeyPatch) -> None:
    earliest = ServerClock.earliest
    patch.setattr(ServerClock, "earliest", lambda clock: (now := earliest(clock)) and now + lease.SKEW)


def renews_for_a_run_that_has_ended(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Machine, "is_alive", lambda _machine, _run: True)


WITHOUT: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "each holder has a new token": takes_with_the_same_token,
    "a release keeps the token": releases_the_token_too,
    "wait until the lease has expired": takes_over_half_way,
    "wait for the skew of the servers": takes_over_at_expiry,
    "count from before the request was sent": counts_from_the_answer,
    "stop writing before the lease expires": ignores_that_a_lock_has_expired,
    "verify the holder": verifies_without_the_holder,
    "read the lock again before it may have expired": never_reads_the_lock_again,
    "count time asleep": counts_no_time_asleep,
    "the server's time is never ahead of it": rounds_the_date_up,
    "create only where there is none": creates_unconditionally,
    "a higher token refuses the write": compares_no_tokens,
    "renew only while the run lives": renews_for_a_run_that_has_ended,
}
HUBS: dict[str, type[Hub]] = {
    "create only a missing object": CreatesOverExisting,
    "change only an unchanged lease": PatchesChangedLeases,
    "change only an unchanged object": AppliesChangedObjects,
}


@pytest.mark.parametrize("rule", WITHOUT)
def test_removing_a_rule_violates_an_invariant(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    WITHOUT[rule](monkeypatch)
    with pytest.raises(Violation):
        search(Hub, RUNS_TO_FIND, FIXED_SEED, Phase.generate, date=True)


@pytest.mark.parametrize("rule", HUBS)
def test_a_hub_without_a_condition_violates_an_invariant(rule: str) -> None:
    with pytest.raises(Violation):
        search(HUBS[rule], RUNS_TO_FIND, FIXED_SEED, Phase.generate)
