"""Synchronous replication: a failover waits until the old home is fenced, and nothing goes back there before that has ended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.faults import FAULT
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.fence_reconciler import FenceReconciler
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.fencing import fence_name
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import CSI_ADDONS, NETWORK_FENCE
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube

from ..support.dr_run import SECONDS, Recovery, recovery
from ..support.killed import kill_cluster
from ..support.replication import RAMEN, Protected


@pytest.fixture
def dr(application: Protected, bucket: dict[str, str]) -> Iterator[Recovery]:
    """The application runs on east and is protected by west, which has each of its writes at once."""
    with recovery(application, bucket, interval="") as created:
        application.place("east")
        application.place("west", replicas=0)
        created.protect("east")
        created.lead_until("east", created.acquire("east"), "Deployed", "Completed")
        application.until_running("east")
        application.write("east", "first")
        application.until_read("west", "first")
        yield created


class Fences:
    """The DRCluster of east as west has it, and the controller of west that fences."""

    def __init__(self, dr: Recovery) -> None:
        self._kube = dr.sites["west"].kube
        self._reconciler = FenceReconciler(Kube.connect({"kubeconfig": dr.kubeconfig("west")}), "west")

    def set(self, state: str, fault: str = "") -> None:
        changes = {"metadata": {"annotations": {FAULT: fault or None}}, "spec": {"clusterFence": state}}
        self._kube.patch(self._cluster(), changes, checked=False)

    def reconcile(self) -> bool:
        return self._reconciler.reconcile("east")

    def shown(self) -> tuple[str, str]:
        status = self._cluster()["status"]
        return status["phase"], next(item["status"] for item in status["conditions"] if item["type"] == "Fenced")

    def find(self) -> Object | None:
        return self._kube.find(CSI_ADDONS, NETWORK_FENCE, fence_name("east"))

    def _cluster(self) -> Object:
        return self._kube.get(RAMEN, "DRCluster", "east")


def waits(dr: Recovery, site: str, epoch: int, gate: str) -> bool:
    result = dr.lead(site, epoch)
    return bool(result.view) and [wait.gate for wait in result.view.step.waits] == [gate]


def test_failover_waits_for_the_fence_and_the_way_home_for_its_end(dr: Recovery, sandbox: Sandbox) -> None:
    app, fences = dr.application, Fences(dr)
    kill_cluster(sandbox, "east")
    try:
        dr.ask("west", action="Failover", failoverCluster="west")
        epoch = dr.acquire("west")
        until(lambda: waits(dr, "west", epoch, "Fenced"), "the failover waits for the fence", SECONDS)
        assert dr.conditions("west")["Waiting"] == ("True", "Fenced")
        assert dr.drpc("west")["status"]["progression"] == "WaitForFencing"

        fences.set("Fenced", "fence=3600")
        until(lambda: not fences.reconcile() and fences.find(), "east is being fenced", SECONDS)
        assert waits(dr, "west", epoch, "Fenced") and fences.shown() == ("Fencing", "False")
        assert app.get("west")["spec"]["replicationState"] == "secondary", "nothing is promoted before the storage refuses east"

        fences.set("Fenced")
        until(fences.reconcile, "east is fenced", SECONDS)
        assert fences.shown() == ("Fenced", "True")
        dr.lead_until("west", epoch, "FailedOver", "Cleaning Up", peer_ready=False)
        app.until_running("west")
        assert app.read("west") == ["first"], "nothing is lost"
    finally:
        sandbox.up(clusters=list(dr.sites), replication=True)

    # It returns, and is demoted. It is a peer again when the fence has ended.
    until(lambda: dr.lead("west", epoch) and app.get("east")["spec"]["replicationState"] == "secondary", "east is demoted", SECONDS)
    until(lambda: waits(dr, "west", epoch, "PeersSecondary"), "east is not secondary without its volumes", SECONDS)
    fences.set("Unfenced")
    until(lambda: not fences.reconcile() and fences.shown() == ("Unfencing", "True"), "the fence ends", SECONDS)
    until(fences.reconcile, "east is unfenced", SECONDS)
    assert fences.find() is None and fences.shown() == ("Unfenced", "False")
    dr.lead_until("west", epoch, "FailedOver", "Completed")
    assert app.read("east") == ["first"] and not app.app.runs(dr.sites["east"].kube)


def test_a_person_fences_a_cluster_that_still_answers_and_leads(dr: Recovery) -> None:
    app, fences = dr.application, Fences(dr)
    epoch = dr.acquire("east")
    dr.ask("west", action="Failover", failoverCluster="west")
    until(lambda: waits(dr, "east", epoch, "Fenced"), "the failover waits for the fence", SECONDS)
    fences.set("ManuallyFenced")
    assert waits(dr, "east", epoch, "Fenced"), "the condition is not of this generation"
    until(fences.reconcile, "east is fenced", SECONDS)
    assert fences.shown() == ("Fenced", "True") and fences.find() is None
    dr.lead_until("east", epoch, "FailedOver", "Cleaning Up", peer_ready=False)
    app.until_running("west")
    fences.set("ManuallyUnfenced")
    until(fences.reconcile, "east is unfenced", SECONDS)
    dr.lead_until("east", epoch, "FailedOver", "Completed")

    fences.set("ManuallyFenced")
    dr.ask("east", action="Relocate", preferredCluster="east")
    until(lambda: waits(dr, "east", epoch, "TargetUnfenced"), "the relocation waits for the end of the fence", SECONDS)
    fences.set("ManuallyUnfenced")
    until(fences.reconcile, "east is unfenced", SECONDS)
    dr.lead_until("east", epoch, "Relocated", "Completed")
    app.until_running("east")
    assert app.read("east") == ["first"]
