"""Searches random runs for violations: two primaries, a promotion without a demotion, a workload without its data, a run without an end.

Then it opens gates: the same search must find a violation. OPENFLEET_SOAK multiplies the number of runs.
"""

from __future__ import annotations

import secrets

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.gates import GATES
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from ..virtual_time import Violation
from .simulation import Simulation
from .walks import Walk, end

WALKS, MACHINES = 20, 30
RUNS_TO_FIND = 400

CLUSTERS = st.sampled_from(["east", "west"])
MASKS = st.sampled_from([0, 0, 0, 1, 2, 3])


class DisasterRecovery(RuleBasedStateMachine):
    """A protected workload on two clusters, and everything that may happen to it."""

    def __init__(self) -> None:
        super().__init__()
        self.simulation = Simulation()
        self.simulation.settle(5)

    @rule(lost=MASKS, delayed=MASKS)
    def lead(self, lost: int, delayed: int) -> None:
        self.simulation.lead(lost, delayed)

    @rule(name=CLUSTERS)
    def reconcile(self, name: str) -> None:
        self.simulation.run_pods(name)
        self.simulation.tick(name)

    @rule(minutes=st.sampled_from([1.0, 6.0]))
    def replicate(self, minutes: float) -> None:
        self.simulation.wait(minutes)
        self.simulation.write()
        self.simulation.sync()

    @rule(action=st.sampled_from(["Failover", "Relocate", ""]), name=CLUSTERS)
    def ask(self, action: str, name: str) -> None:
        self.simulation.ask(action, name if action else "")

    @rule(name=CLUSTERS)
    def test_failover(self, name: str) -> None:
        self.simulation.ask("Failover", name, dry_run=True)

    @rule(name=CLUSTERS)
    def cut_off(self, name: str) -> None:
        self.simulation.clusters[name].reachable = False

    @rule(name=CLUSTERS)
    def kill(self, name: str) -> None:
        self.simulation.clusters[name].alive = False

    @rule(name=CLUSTERS)
    def restore(self, name: str) -> None:
        self.simulation.clusters[name].reachable = self.simulation.clusters[name].alive = True

    @rule()
    def elect(self) -> None:
        self.simulation.new_leader()

    @precondition(lambda self: self.simulation.late)
    @rule(number=st.integers(0, 7))
    def arrive(self, number: int) -> None:
        self.simulation.arrive(number)

    def teardown(self) -> None:
        """The history is checked once, at its end: an entry that breaks a rule stays in it."""
        end(self.simulation)


@pytest.mark.soak
def test_invariants_hold_whatever_happens(soak: int) -> None:
    checks = list(HealthCheck)
    limits = settings(max_examples=MACHINES * soak, stateful_step_count=40, deadline=None, database=None, suppress_health_check=checks)
    run_state_machine_as_test(DisasterRecovery, settings=limits)


@pytest.mark.soak
@pytest.mark.parametrize("synchronous", [False, True], ids=["asynchronous", "synchronous"])
def test_invariants_hold_in_long_walks_of_two_or_three_clusters(synchronous: bool, soak: int) -> None:
    for seed in [*range(WALKS), *(secrets.randbits(32) for _number in range(WALKS * soak))]:
        _walk(seed, synchronous)


def _walk(seed: int, synchronous: bool = False, *, to_the_end: bool = True) -> None:
    try:
        walk = Walk(seed, synchronous)
        walk.run()
        if to_the_end:
            end(walk.simulation)
    except Violation as error:
        error.add_note(f"Walk({seed}, {synchronous}) repeats this run.")
        raise


# Gates, and the first seed to try: with it the search takes one run as long as nothing changes.
OPENED = {
    ("Demoted",): 39,
    ("Restored",): 0,
    ("TargetReady",): 2,
    ("WorkloadStopped",): 471,
    ("FinalSynced",): 8,
    ("PeersSecondary", "DataProtected"): 103,
    ("PeerSynced",): 232,
    ("PeerReady",): 43,
    ("PeersObserved",): 92,
    ("TargetValid",): 2,
    ("AllAnswer",): 126,
    ("SecondariesDeleted",): 10,
    ("MembersAnswer",): 12,
    ("TestAllowed",): 11,
    ("Fenced",): 6,
}


@pytest.mark.parametrize("gates", OPENED, ids="+".join)
def test_the_search_finds_an_opened_gate(gates: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for gate in gates:
        monkeypatch.setitem(GATES, gate, lambda _context: None)
    with pytest.raises(Violation):
        for seed in range(OPENED[gates], OPENED[gates] + RUNS_TO_FIND):
            _walk(seed, gates == ("Fenced",), to_the_end=False)
