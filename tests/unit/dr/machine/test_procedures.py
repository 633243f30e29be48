"""Each procedure from its beginning to its end: phases and progressions as Ramen has them, and the actions in their order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import DeployVRG, StartWorkload, StopWorkload
from ansible_collections.openfleet.clusters.tests.unit.dr.audit import Performed, Recorded

from .. import samples
from ..simulation import REPLICAS, Simulation


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


def lead_until(simulation: Simulation, kind: type[StartWorkload | StopWorkload], cut: int) -> None:
    """Until the action, of which the last `cut` writes do not arrive."""
    perform, cuts = simulation.perform, [cut]

    def perform_a_part(action: Any, epoch: int, revision: int, **_missing: int) -> None:
        perform(action, epoch, revision, cut=cuts.pop() if isinstance(action, kind) and cuts else 0)

    with patch.object(simulation, "perform", perform_a_part):
        for _round in range(40):
            simulation.settle(1)
            if not cuts:
                return
    raise AssertionError(f"no {kind.__name__}")


@pytest.mark.parametrize("request_kind", ["Failover", "Relocate", "TestFailover"])
@pytest.mark.parametrize("cut", range(1, 7))  # three controllers, each noted and then started
def test_first_start_that_is_cut_off_between_two_writes_goes_on(request_kind: str, cut: int) -> None:
    simulation = protected()
    simulation.ask(request_kind.removeprefix("Test"), "west", dry_run=request_kind.startswith("Test"))
    lead_until(simulation, StartWorkload, cut)
    simulation.settle(12)
    assert simulation.clusters["west"].replicas == {"cron": 1, "database": 1, "web": 1}


@pytest.mark.parametrize("cut", range(3))  # three controllers, of which one has no replicas
def test_stop_that_is_cut_off_between_two_writes_forgets_no_replicas(cut: int) -> None:
    simulation = protected()
    simulation.ask("Relocate", "west")
    lead_until(simulation, StopWorkload, cut)
    simulation.settle(12)
    assert simulation.clusters["east"].replicas == dict.fromkeys(REPLICAS, 0) and simulation.state.home == "west"
    simulation.ask("Relocate", "east")
    lead_until(simulation, StartWorkload, 1)
    simulation.settle(12)
    assert simulation.clusters["east"].replicas == REPLICAS and simulation.state.progression == "Completed"


@pytest.mark.parametrize("cut", range(3))
def test_relocation_that_is_taken_back_after_a_part_was_stopped_starts_that_part_again(cut: int) -> None:
    simulation = protected()
    simulation.ask("Relocate", "west")
    lead_until(simulation, StopWorkload, cut)
    simulation.ask("", "")
    simulation.settle(12)
    assert simulation.clusters["east"].replicas == REPLICAS and simulation.state.home == "east"


def test_component_that_a_person_scales_to_zero_later_stays_so() -> None:
    simulation = protected()
    for target in ("west", "east"):
        simulation.ask("Relocate", target)
        simulation.settle(16)
    simulation.clusters["east"].controllers["web"]["spec"]["replicas"] = 0
    simulation.settle(4)
    assert simulation.clusters["east"].replicas == REPLICAS | {"web": 0}


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
    simulation.clusters["east"].controllers.clear()
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
