"""Each procedure from its beginning to its end: phases and progressions as Ramen has them, and the actions in their order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.audit import Performed, Recorded
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import DeployVRG

from . import samples
from .simulation import Simulation


def protected() -> Simulation:
    simulation = Simulation()
    simulation.settle(6)
    simulation.history.clear()
    return simulation


def course(simulation: Simulation) -> list[str]:
    """The distinct phases with their progressions, as they were recorded."""
    states = [entry.state for entry in simulation.history if isinstance(entry, Recorded)]
    steps = [f"{state.phase}/{state.progression}" for state in states]
    return [text for number, text in enumerate(steps) if number == 0 or steps[number - 1] != text]


def deeds(simulation: Simulation) -> list[str]:
    """What was done, in order, without repetitions."""
    actions = [describe(entry.action) for entry in simulation.history if isinstance(entry, Performed)]
    return list(dict.fromkeys(actions))


def describe(action: Any) -> str:
    if not isinstance(action, DeployVRG):
        retained = f" retained {action.retained}" if getattr(action, "retained", "") else ""
        return " ".join(f"{type(action).__name__} {getattr(action, 'cluster', '')}{retained}".split())
    flags = [name for name in ("dryRun", "prepareForFinalSync", "runFinalSync") if action.spec.get(name)]
    return " ".join([action.cluster, action.spec["replicationState"], *flags])


def test_initial_deployment() -> None:
    simulation = Simulation()
    simulation.settle(6)
    assert course(simulation) == [
        "Initiating/",
        "Deploying/CreatingMW",
        "Deploying/UpdatingPlRule",
        "Deployed/EnsuringVolSyncSetup",
        "Deployed/Completed",
    ]
    assert deeds(simulation) == ["east primary", "SetPlacement east", "west secondary"]
    assert simulation.state.decision.reason == "east is the preferred cluster"


def test_failover_from_a_dead_cluster_and_its_return() -> None:
    simulation = protected()
    simulation.clusters["east"].alive = False
    simulation.ask("Failover", "west")
    simulation.settle(6)
    assert course(simulation) == [
        "Initiating/",
        "FailingOver/CheckingFailoverPrerequisites",
        "FailingOver/FailingOverToCluster",
        "FailingOver/WaitingForResourceRestore",
        "FailingOver/WaitForReadiness",
        "FailedOver/UpdatedPlacement",
        "FailedOver/Cleaning Up",
    ]
    assert deeds(simulation) == ["SetPlacement retained east", "west primary", "SetPlacement west retained east", "StartWorkload west"]
    assert simulation.gates == ["PeersAnswer"]

    simulation.history.clear()
    simulation.heal()
    simulation.settle(8)
    assert deeds(simulation) == ["east secondary", "SetPlacement west", "StopWorkload east", "west primary"]
    assert course(simulation)[-1] == "FailedOver/Completed"
    assert simulation.running == simulation.primaries == ["west"]


def test_failover_from_a_cluster_that_answers_demotes_it_first() -> None:
    simulation = protected()
    simulation.ask("Failover", "west")
    simulation.settle(8)
    assert deeds(simulation)[:3] == ["SetPlacement retained east", "east secondary", "west primary"]
    assert simulation.running == simulation.primaries == ["west"]


def test_relocation() -> None:
    simulation = protected()
    simulation.ask("Relocate", "west")
    simulation.settle(12)
    assert course(simulation) == [
        "Initiating/",
        "Initiating/PreparingFinalSync",
        "Relocating/ClearingPlacement",
        "Relocating/RunningFinalSync",
        "Relocating/FinalSyncComplete",
        "Relocating/EnsuringVolumesAreSecondary",
        "Relocating/WaitingForResourceRestore",
        "Relocating/WaitForReadiness",
        "Relocated/UpdatedPlacement",
        "Relocated/Cleaning Up",
        "Relocated/Completed",
    ]
    assert deeds(simulation) == [
        "east primary prepareForFinalSync",
        "SetPlacement",
        "StopWorkload east",
        "east primary runFinalSync",
        "east secondary",
        "west primary",
        "SetPlacement west",
        "StartWorkload west",
    ]
    assert simulation.clusters["west"].data >= simulation.clusters["east"].data > 0


def test_test_failover_leaves_the_home_alone_and_is_reverted() -> None:
    simulation = protected()
    simulation.ask("Failover", "west", dry_run=True)
    simulation.settle(5)
    assert course(simulation)[-1] == "FailedOver/TestingFailover"
    assert deeds(simulation) == ["west primary dryRun", "StartWorkload west"]
    assert (simulation.state.home, simulation.placed.cluster, simulation.primaries) == ("east", "east", ["east"])
    simulation.history.clear()
    simulation.ask("", "")
    simulation.settle(6)
    assert deeds(simulation) == ["StopWorkload west", "west secondary"]
    assert course(simulation)[-1] == "Deployed/Completed"
    assert simulation.state.peer_ready, "after a sync that is newer than the test"


def test_test_failover_is_promoted() -> None:
    simulation = protected()
    simulation.ask("Failover", "west", dry_run=True)
    simulation.settle(5)
    simulation.history.clear()
    simulation.ask("Failover", "west")
    simulation.settle(8)
    assert deeds(simulation)[:3] == ["SetPlacement retained east", "east secondary", "west primary"]
    assert course(simulation)[-1] == "FailedOver/Completed"
    assert simulation.running == simulation.primaries == ["west"]


def test_failover_to_where_it_is_only_changes_the_phase() -> None:
    simulation = protected()
    simulation.ask("Failover", "east")
    simulation.settle(6)
    assert simulation.state.phase == "FailedOver"
    assert not {"east secondary", "StopWorkload east"} & set(deeds(simulation))


def test_deletion_deletes_secondaries_first_and_leaves_the_workload() -> None:
    simulation = protected()
    simulation.delete()
    simulation.settle(3)
    assert deeds(simulation) == ["DeleteVRG west", "DeleteVRG east", "ReleaseDRPC"]
    assert (simulation.released, simulation.running) == (True, ["east"])


@pytest.mark.parametrize("kind", ["Failover", "Relocate"])
def test_a_discovered_application_is_cleaned_up_by_a_person(kind: str) -> None:
    simulation = protected()
    simulation.intent = replace(simulation.intent, protected_namespaces=("shop",))
    simulation.ask(kind, "west")
    simulation.intent = replace(simulation.intent, protected_namespaces=("shop",))
    simulation.settle(8)
    assert "StopWorkload east" not in deeds(simulation)
    assert simulation.state.progression == "WaitOnUserToCleanUp"
    assert "Delete it from the namespaces shop there" in str(simulation.last and simulation.last.waits[0])
    simulation.clusters["east"].wanted = 0
    simulation.settle(12)
    assert simulation.state.progression == "Completed"


def test_a_synchronous_failover_waits_for_the_fence() -> None:
    simulation = Simulation(policy=samples.policy(""))
    simulation.settle(6)
    simulation.clusters["east"].reachable = False
    simulation.ask("Failover", "west")
    simulation.settle(3)
    assert simulation.state.progression == "WaitForFencing"
    simulation.fence("east", True)
    simulation.settle(5)
    assert simulation.state.phase == "FailedOver"
