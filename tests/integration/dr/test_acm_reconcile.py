"""Reconciles through an ACM hub, with stand-ins for its agents; and the change to direct access and back while workloads are protected."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.registry_health import RegistryHealth
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import CLUSTER_VIEW, MANIFEST_WORK
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.reconcile import Result
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.summary import result_info

from ..support.acm_run import HUB, ManagedRecovery, managed
from ..support.dr_run import SECONDS
from ..support.replication import Protected


@pytest.fixture
def run(application: Protected, bucket: dict[str, str], acm: Access) -> Iterator[ManagedRecovery]:
    with managed(application, bucket, acm) as created:
        yield created


def lead_until(run: ManagedRecovery, epoch: int, phase: str, progression: str, *, peer_ready: bool = True) -> None:
    results: list[Result] = []

    def reached() -> bool:
        result = run.lead(epoch)
        results.append(result)
        assert result.ended in ("Waiting", "Settled", "Acting"), result
        state = result.view.state if result.view else None
        return bool(state and (state.phase, state.progression) == (phase, progression) and (state.peer_ready or not peer_ready))

    try:
        until(reached, f"{phase}/{progression}", SECONDS)
    except UserError:
        pytest.fail(f"not {phase}/{progression}: {result_info(results[-1])}")


def deploy(run: ManagedRecovery) -> int:
    """Protect the application under ACM: it runs on east, and west has its data."""
    run.dr.protect(HUB)
    epoch = run.dr.acquire(HUB)
    lead_until(run, epoch, "Deployed", "Completed")
    run.until_running("east")
    run.dr.application.write("east", "first")
    run.dr.application.until_read("west", "first")
    return epoch


def test_workload_is_deployed_failed_over_relocated_and_released_through_a_hub(run: ManagedRecovery) -> None:
    dr, app = run.dr, run.dr.application
    epoch = deploy(run)
    assert run.placed() == {"east": "DisasterRecovery"}
    assert [item["metadata"]["name"] for item in run.objects(MANIFEST_WORK)["west"]] == [f"app-{dr.namespace}-vrg-mw"]
    assert dr.drpc(HUB)["status"]["preferredDecision"]["clusterName"] == "east"
    assert not dr.has_drpc("east") and not dr.has_drpc("west"), "only the hub has the DRPlacementControl"

    # The other mode would read the same: nothing stands against a change.
    RegistryHealth(run.hub.kube, dr.namespace, SECONDS).check()
    dr.settings(HUB, dr_mode="acm", compare="true")
    run.work()
    reconciler = dr.reconciler(HUB)
    assert reconciler.lead(dr.workload, epoch).ended in ("Settled", "Waiting") and reconciler.differences == []
    dr.settings(HUB, dr_mode="acm")

    # The hub hears nothing of east, which still runs the workload.
    run.lose("east")
    dr.ask(HUB, action="Failover", failoverCluster="west")
    lead_until(run, epoch, "FailedOver", "Cleaning Up", peer_ready=False)
    assert dr.conditions(HUB)["Waiting"] == ("True", "PeersAnswer")
    assert run.placed() == {"west": "DisasterRecovery", "east": "RetainedForFailover"}, "it is not removed from a cluster that may use it"
    run.until_running("west")
    app.write("west", "after")

    run.find_again("east")
    lead_until(run, epoch, "FailedOver", "Completed")
    assert run.placed() == {"west": "DisasterRecovery"} and not app.app.runs(dr.sites["east"].kube)
    assert app.get("east")["spec"]["replicationState"] == "secondary"
    app.until_read("east", "after")

    dr.ask(HUB, action="Relocate", preferredCluster="east")
    lead_until(run, epoch, "Relocated", "Completed")
    run.until_running("east")
    assert app.read("east") == ["first", "after"]
    assert run.placed() == {"east": "DisasterRecovery"} and not app.app.runs(dr.sites["west"].kube)

    run.hub.kube.delete(dr.drpc(HUB))

    def is_gone() -> bool:
        run.lead(epoch)
        return not dr.has_drpc(HUB)

    until(is_gone, "the DRPlacementControl is deleted", SECONDS)
    run.work()
    assert not app.get("east") and not app.get("west") and app.app.runs(dr.sites["east"].kube)
    assert run.objects(MANIFEST_WORK) == run.objects(CLUSTER_VIEW) == {}, "nothing of it is left on the hub"


def test_mode_is_changed_while_a_workload_is_protected(run: ManagedRecovery) -> None:
    dr, app = run.dr, run.dr.application
    epoch = deploy(run)
    # As the guide says: the works go without their objects, and the workload is on each cluster, stopped where it is
    # not placed.
    orphaned = {"spec": {"deleteOption": {"propagationPolicy": "Orphan", "selectivelyOrphans": None}}}
    for work in [item for items in run.objects(MANIFEST_WORK).values() for item in items]:
        run.hub.kube.patch(work, orphaned, checked=False)
        run.hub.kube.delete(work)
    run.work()
    assert run.objects(MANIFEST_WORK) == {} and app.get("west")["spec"]["replicationState"] == "secondary"
    run.delivers = False
    app.place("west", replicas=0)
    dr.settings(HUB, dr_mode="direct")
    before = dr.state().revision
    lead_until(run, epoch, "Deployed", "Completed")
    assert dr.state().decision["cluster"] == "east" and app.app.runs(dr.sites["east"].kube)
    assert dr.has_drpc("east") and dr.has_drpc("west"), "each cluster has a copy now"
    assert {entry["step"] for entry in dr.history() if entry["revision"] > before} <= {"Completed"}, "nothing is begun by the change"

    dr.ask("west", action="Failover", failoverCluster="west")
    lead_until(run, epoch, "FailedOver", "Completed")
    app.until_running("west")
    assert "first" in app.read("west") and not app.app.runs(dr.sites["east"].kube)
    assert run.objects(MANIFEST_WORK) == {} and run.placed() == {"east": "DisasterRecovery"}, "the hub has no part in it"

    # And back: works are created for what the clusters have, and the placement follows the state.
    dr.ask(HUB, action="Failover", failoverCluster="west")
    dr.settings(HUB, dr_mode="acm")
    run.delivers = True
    lead_until(run, epoch, "FailedOver", "Completed")
    until(lambda: run.lead(epoch).ended == "Settled" and run.placed() == {"west": "DisasterRecovery"}, "the decision is published", SECONDS)
    assert app.app.runs(dr.sites["west"].kube) and app.get("east")["spec"]["replicationState"] == "secondary"
