"""Random runs of the simulation: what may happen, each as a method that a random number chooses."""

from __future__ import annotations

import random
from collections.abc import Callable

from . import samples
from .simulation import REPLICAS, Simulation, must

# Gates that may stay closed although every cluster works: a person has to act.
A_PERSONS = {"RequestValid", "TestEnds", "TestInProgress", "Fenced", "TargetUnfenced", "StateKnown", "TestAllowed", "HomeChosen"}
ACTIONS = ("Failover", "Failover", "Failover", "Relocate", "Relocate", "Relocate", "")


class Walk:
    """One random run. The same seed gives the same run."""

    def __init__(self, seed: int, synchronous: bool = False) -> None:
        self.random = random.Random(seed)  # noqa: S311 - repeatable
        names = ("east", "west", "north")[: self.random.choice([2, 2, 3])]
        policy = samples.policy("" if synchronous else "5m", names)
        self.simulation = Simulation(names, policy=policy, volsync=self.random.random() < 0.3)
        self.synchronous = synchronous
        if self.random.random() < 0.8:
            self.simulation.settle(6)

    def run(self, length: int = 160) -> None:
        events = self._events()
        for _number in range(length):
            self.random.choice(events)()
        self.simulation.check()

    def _events(self) -> list[Callable[[], object]]:
        # In calm walks long procedures come to their end.
        often = ([self._lead] * 10 + [self._tick] * 8 + [self._run_pods] * 2) * self.random.choice([1, 2, 5])
        rare: list[Callable[[], object]] = [self._ask, self._cut, self._cut, self._kill, self._new_leader, self._arrive, self._arrive]
        rare += [self._fence] * 2 if self.synchronous else []
        return [*often, *rare, self.simulation.sync, self.simulation.write, self._wait, self._delete, self._heal]

    def _cluster(self) -> str:
        return self.random.choice(self.simulation.names)

    def _lead(self) -> None:
        faulty = self.random.random() < 0.3
        self.simulation.lead(lost=self.random.getrandbits(4) if faulty else 0, delayed=self.random.getrandbits(4) if faulty else 0)

    def _tick(self) -> None:
        self.simulation.tick(self._cluster())

    def _run_pods(self) -> None:
        self.simulation.run_pods(self._cluster())

    def _ask(self) -> None:
        action = self.random.choice(ACTIONS)
        dry_run = action == "Failover" and self.random.random() < 0.3
        self.simulation.ask(action, self._cluster() if action else "", dry_run)

    def _cut(self) -> None:
        cluster = self.simulation.clusters[self._cluster()]
        cluster.reachable = not cluster.reachable

    def _kill(self) -> None:
        cluster = self.simulation.clusters[self._cluster()]
        cluster.alive = not cluster.alive

    def _heal(self) -> None:
        for cluster in self.simulation.clusters.values():
            cluster.reachable = cluster.alive = True

    def _new_leader(self) -> None:
        self.simulation.new_leader()

    def _arrive(self) -> None:
        self.simulation.arrive(self.random.randrange(8))

    def _fence(self) -> None:
        self.simulation.fence(self._cluster(), self.random.random() < 0.6)

    def _wait(self) -> None:
        self.simulation.wait(self.random.choice([0.1, 1, 5, 20]))

    def _delete(self) -> None:
        if self.random.random() < 0.03:
            self.simulation.delete()


def end(simulation: Simulation) -> None:
    """Everything works again: the run ends, or a person has to act."""
    simulation.heal()
    simulation.settle(30)
    if simulation.released:
        must(not any(cluster.vrg for cluster in simulation.clusters.values()), "objects are left after the deletion")
    elif not set(simulation.gates) & A_PERSONS and not _was_deployed_elsewhere(simulation):
        _check_settled(simulation)


def _check_settled(simulation: Simulation) -> None:
    state = simulation.state
    must(state.request is None, f"{state.request} does not end: {simulation.last and simulation.last.waits}")
    must(simulation.primaries == [state.home], f"primaries are {simulation.primaries}, the home is {state.home}")
    must(simulation.running == [state.home], f"the workload runs on {simulation.running}, the home is {state.home}")
    _check_replicas(simulation)
    must(simulation.placed.cluster == state.home, f"the placement is {simulation.placed}, the home is {state.home}")
    must(state.peer_ready, f"the peer never gets ready: {simulation.gates}")


def _check_replicas(simulation: Simulation) -> None:
    """The whole workload runs, at its first home as a person has it."""
    home = simulation.state.home
    found = simulation.clusters[home].replicas
    must(all(found[name] for name, wanted in REPLICAS.items() if wanted), f"a part of the workload does not run on {home}: {found}")
    must(home != "east" or found == REPLICAS, f"east had the replicas {REPLICAS}, and has {found}")


def _was_deployed_elsewhere(simulation: Simulation) -> bool:
    """The cluster with the workload did not answer when the protection began; a person has to decide about that workload."""
    return not simulation.state.last_action and simulation.state.home != "east" and "east" in simulation.running
