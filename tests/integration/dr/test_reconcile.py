"""Reconciles on two real API servers with stand-in replication between them: deploy, failover, relocate, delete."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.direct.deployer import DirectDeployer
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.interfaces import Outcome, Stamp
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine import deletion
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.reconcile import Result
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.s3_vrgs import newest_primary

from ..support.dr_run import SECONDS, Recovery, recovery
from ..support.hanging import hanging_server
from ..support.killed import kill_cluster
from ..support.kubeconfigs import put_kubeconfig, with_server
from ..support.replication import Protected

ORDER = ["Available", "PeerReady", "Protected", "Waiting", "RequestAccepted"]


class Killed(BaseException):
    """Ends a reconcile between what it has recorded and what it would do next, as SIGKILL does."""


@pytest.fixture
def dr(application: Protected, bucket: dict[str, str]) -> Iterator[Recovery]:
    with recovery(application, bucket) as created:
        yield created


@pytest.fixture
def deployed(dr: Recovery) -> tuple[Recovery, int]:
    """The application runs on east and is protected by west; the process of east leads."""
    dr.application.place("east")
    dr.application.place("west", replicas=0)
    dr.protect("east")
    epoch = dr.acquire("east")
    dr.lead_until("east", epoch, "Deployed", "Completed")
    dr.application.until_running("east")
    dr.application.write("east", "first")
    dr.application.until_read("west", "first")
    return dr, epoch


def test_deployment_reaches_every_copy_and_is_shown_as_ramen_shows_it(dr: Recovery) -> None:
    dr.application.place("east")
    dr.protect("west")
    epoch = dr.acquire("east")
    results = dr.lead_until("east", epoch, "Deployed", "Completed")
    assert results[0].recorded[:2] == ["Initiating/no progression", "Deploying/CreatingMW"]
    assert results[0].actions[0] == "make east primary"
    assert any("create the DRPlacementControl on east" in result.actions for result in results)

    def is_protected() -> bool:
        dr.lead("east", epoch)
        return dr.conditions("east")["Protected"] == ("True", "Protected")

    until(is_protected, "the first sync is reported", SECONDS)
    status = dr.drpc("east")["status"]
    assert [item["type"] for item in status["conditions"]] == ORDER
    assert status["preferredDecision"] == {"clusterName": "east", "clusterNamespace": "east"}
    assert status["actionStartTime"] and status["lastGroupSyncTime"] and status["observedGeneration"] == 1
    assert status["resourceConditions"]["resourceMeta"] | {"generation": 0} == {
        "kind": "VolumeReplicationGroup",
        "name": "app",
        "namespace": dr.namespace,
        "generation": 0,
        "protectedpvcs": ["app"],
    }
    assert dr.state().decision["reason"] == "east is the preferred cluster"
    metadata = dr.drpc("east")["metadata"]
    assert metadata["annotations"]["drplacementcontrol.ramendr.openshift.io/last-app-deployment-cluster"] == "east"
    assert "drpc.ramendr.openshift.io/finalizer" in metadata["finalizers"]
    columns = dr.sites["east"].kubectl("get", "drpc", "app", "-n", dr.namespace, "-o", "wide", "--no-headers").stdout.split()
    assert columns[2:5] == ["east", "Deployed", "Completed"] and columns[-1] == "True"

    dr.application.fault("east", "no-sync")  # otherwise the time of the last sync changes

    def versions() -> list[str]:
        items = [dr.application.get("east"), dr.application.get("west"), dr.drpc("east")]
        return [str(item["metadata"]["resourceVersion"]) for item in items]

    def is_reconciled_again_without_a_write() -> bool:
        """The stand-in may report a sync that it began before: then there is something to show."""
        reported = versions()[:2]
        dr.lead("east", epoch)
        before = dr.state().revision, versions()
        result = dr.lead("east", epoch)
        after = dr.state().revision, versions()
        if after[1][:2] != reported:
            return False
        assert (result.changed, result.ended, result.actions) == (False, "Settled", [])
        assert after == before
        return True

    until(is_reconciled_again_without_a_write, "a second reconcile writes nothing", SECONDS)

    put_kubeconfig(dr.sites["east"].kube, dr.namespace, "east-kubeconfig", with_server(dr.sites["east"], "https://127.0.0.1:1"))
    assert dr.lead("east", epoch).recorded == [], "a cluster is known by its name also while its own entry does not answer"

    assert "status" not in dr.drpc("west"), "each cluster shows its own copy"
    assert dr.watch("west").changed and dr.drpc("west")["status"]["phase"] == "Deployed"
    assert dr.conditions("west").keys() == set(ORDER)


def test_failover_from_a_dead_cluster_its_return_relocation_home_and_the_end(deployed: tuple[Recovery, int], sandbox: Sandbox) -> None:
    dr, _epoch = deployed
    app = dr.application
    kill_cluster(sandbox, "east")
    try:
        dr.ask("west", action="Failover", failoverCluster="west")
        epoch = dr.acquire("west")
        results = dr.lead_until("west", epoch, "FailedOver", "Cleaning Up", peer_ready=False)
        assert results[-1].view and [wait.gate for wait in results[-1].view.step.waits] == ["PeersAnswer"]
        assert dr.conditions("west")["Waiting"] == ("True", "PeersAnswer")
        assert app.get("west")["spec"]["s3Profiles"] == ["s3-west"], "the store of the dead site is not needed"
        app.until_running("west")
        app.write("west", "after")
    finally:
        sandbox.up(clusters=list(dr.sites), replication=True)

    # The old primary still believes in itself until it is demoted.
    assert app.get("east")["spec"]["replicationState"] == "primary"
    dr.lead_until("west", epoch, "FailedOver", "Completed")
    assert app.get("east")["spec"]["replicationState"] == "secondary" and not app.app.runs(dr.sites["east"].kube)
    app.until_read("east", "after")
    assert dr.drpc("west")["metadata"]["labels"] == {"ramendr.openshift.io/last-action": "Failover"}, "for ramenctl"
    dr.watch("east")
    assert dr.conditions("east")["RequestAccepted"] == ("False", "Superseded"), "its spec has not asked for this"

    # From the copy of the other cluster.
    dr.ask("east", action="Relocate", preferredCluster="east")
    dr.lead_until("west", epoch, "Relocated", "Completed")
    app.until_running("east")
    assert app.read("east") == ["first", "after"] and not app.app.runs(dr.sites["west"].kube)
    dr.watch("east")
    assert dr.conditions("east")["RequestAccepted"] == ("True", "Accepted")
    assert dr.drpc("east")["status"]["phase"] == "Relocated"

    # Deleted on one cluster, it ends on both. The workload stays.
    dr.sites["east"].kube.delete(dr.drpc("east"))

    def is_gone() -> bool:
        dr.lead("west", epoch)
        dr.watch("east")
        return not dr.has_drpc("east") and not dr.has_drpc("west")

    until(is_gone, "both copies are deleted", SECONDS)
    assert not app.get("east") and not app.get("west") and app.app.runs(dr.sites["east"].kube)
    assert dr.state().step == "Deleted"


def test_state_is_rebuilt_once_from_the_clusters_and_stores(deployed: tuple[Recovery, int]) -> None:
    dr, _epoch = deployed
    kube = dr.sites["west"].kube
    stored, cluster = newest_primary(kube, dr.workload, ["s3-east", "s3-west", "s3-unknown"], SECONDS)
    assert stored and stored.claims_data and cluster == "east"
    assert newest_primary(kube, dr.workload, ["s3-unknown"], SECONDS) == (None, "")
    owner = dr.application.get("east")["metadata"]["annotations"]["drplacementcontrol.ramendr.openshift.io/drpc-uid"]
    for part in ("state", "decision", "history/"):
        for key in dr.store.keys(dr.workload.key(part)):
            dr.store.delete(key)
    epoch = dr.acquire("west")
    results = dr.lead_until("west", epoch, "Deployed", "Completed")
    assert dr.state().intent["home"] == "east" and dr.application.app.runs(dr.sites["east"].kube)
    assert all("secondary" not in action or "west" in action for result in results for action in result.actions), "nothing was demoted"
    uid = dr.drpc("west")["metadata"]["uid"]
    for site in dr.sites:
        found = dr.application.get(site)["metadata"]["annotations"]["drplacementcontrol.ramendr.openshift.io/drpc-uid"]
        assert found == uid != owner, "they are taken over by the copy of the leader's cluster"


def test_leader_that_is_killed_or_late_is_followed_by_the_next_one(deployed: tuple[Recovery, int]) -> None:
    dr, old = deployed
    dr.ask("west", action="Failover", failoverCluster="west")

    def die() -> None:
        raise Killed

    for expected in ("Initiating", "FailingOver"):
        with pytest.raises(Killed):
            dr.reconciler("east", die).lead(dr.workload, old)
        assert dr.state().intent["phase"] == expected
        assert dr.application.get("west")["spec"]["replicationState"] == "secondary", "nothing is done before it is recorded"

    # Its term ends after it has recorded the demotion, and before it writes it.
    new = 0

    def lose() -> None:
        nonlocal new
        new = new or dr.acquire("west")

    result = dr.reconciler("east", lose).lead(dr.workload, old)
    assert result.ended == "Fenced" and "under epoch" in result.message and result.actions == []
    revision = dr.state().revision
    assert dr.lead("east", old).ended == "Fenced" and dr.state().revision == revision
    # Its term ends after the action has begun, and before it writes.
    asked = iter([True, True])
    assert dr.reconciler("west").lead(dr.workload, new, lambda: next(asked, False)).ended == "Fenced"
    assert dr.application.get("east")["spec"]["replicationState"] == "primary"
    assert not dr.state().intent["request"]["unanswered"]
    dr.lead_until("west", new, "FailedOver", "Completed")
    for site in dr.sites:
        assert dr.application.get(site)["metadata"]["annotations"]["dr.openfleet.io/epoch"] == str(new)
    revisions = [entry["revision"] for entry in dr.history()]
    assert revisions == list(range(1, len(revisions) + 1))


def test_leader_that_is_killed_between_two_writes_leaves_no_part_of_the_workload_behind(
    deployed: tuple[Recovery, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies after each different write of a Deployment or StatefulSet."""
    dr, epoch = deployed
    app = dr.application
    for name in dr.sites:
        app.place_component(name, "StatefulSet", "app-stateful", 2 if name == "east" else 0)
        app.place_component(name, "Deployment", "app-paused", 0)
    home = {"app": 1, "app-paused": 0, "app-stateful": 2}
    assert app.replicas("east") == home
    apply, seen, kills = DirectDeployer.apply, set[tuple[str, str, int, str]](), list[str]()

    def apply_and_die(deployer: DirectDeployer, cluster: str, item: Object, stamp: Stamp) -> Outcome:
        outcome = apply(deployer, cluster, item, stamp)
        metadata = item["metadata"]
        if item["apiVersion"] == "apps/v1":
            write = (cluster, metadata["name"], item["spec"]["replicas"], metadata["annotations"]["dr.openfleet.io/replicas"])
            if write not in seen:
                seen.add(write)
                raise Killed
        return outcome

    def lead_until_complete(phase: str) -> None:
        def is_complete() -> bool:
            try:
                dr.lead("east", epoch)
            except Killed:
                kills.append(phase)
            state = dr.state()
            return (state.intent["phase"], state.step) == (phase, "Completed") and bool(state.intent["peer_ready"])

        until(is_complete, f"{phase} is complete", SECONDS)

    monkeypatch.setattr(DirectDeployer, "apply", apply_and_die)
    dr.ask("east", action="Failover", failoverCluster="west")
    lead_until_complete("FailedOver")
    assert app.replicas("west") == dict.fromkeys(home, 1), "what it had elsewhere is not known here"
    assert app.replicas("east") == dict.fromkeys(home, 0)
    seen.clear()
    dr.ask("east", action="Relocate", preferredCluster="east")
    lead_until_complete("Relocated")
    assert (app.replicas("east"), app.replicas("west")) == (home, dict.fromkeys(home, 0))
    # Three notes, three starts, and as many stops as controllers; then three stops and two starts.
    assert (kills.count("FailedOver"), kills.count("Relocated")) == (9, 5)


def test_of_two_requests_one_wins_and_a_hanging_cluster_is_waited_for_once(deployed: tuple[Recovery, int]) -> None:
    dr, epoch = deployed
    dr.settings("west", timeout="2")
    dr.ask("east", action="Relocate", preferredCluster="west")
    dr.ask("west", action="Failover", failoverCluster="west")
    dr.watch("west")
    assert dr.conditions("west")["RequestAccepted"] == ("False", "NotReadYet"), "the leader may not reach west"

    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        dr.reconciler("east", die).lead(dr.workload, epoch)
    assert dr.state().intent["request"]["kind"] == "Failover"
    dr.watch("west")
    assert dr.conditions("west")["RequestAccepted"] == ("True", "Accepted")
    dr.watch("east")
    message = next(item["message"] for item in dr.drpc("east")["status"]["conditions"] if item["type"] == "RequestAccepted")
    assert message.startswith("Relocate to west is not in effect: request 2, Failover to west, was accepted from west.")

    epoch = dr.acquire("west")
    with hanging_server() as server:
        put_kubeconfig(dr.sites["west"].kube, dr.namespace, "east-kubeconfig", with_server(dr.sites["east"], server.address))
        results: list[Result] = []

        def is_promoted() -> bool:
            """West itself has as little time to answer, which a busy machine may need more often."""
            results.append(dr.lead("west", epoch))
            return "make west primary" in results[-1].actions

        until(is_promoted, "the failover goes on without east", SECONDS)
        assert len(results) > 1 or len(results[0].recorded) >= 3
        assert server.connections <= 8 * len(results), "four questions, each with one retry, in the first of many rounds"


def test_protection_ends_without_a_dead_cluster_which_is_cleaned_up_when_it_returns(
    deployed: tuple[Recovery, int], sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    dr, _epoch = deployed
    monkeypatch.setattr(deletion, "GRACE", timedelta(0))
    dr.watch("west")
    kill_cluster(sandbox, "east")
    try:
        dr.sites["west"].kube.delete(dr.drpc("west"))
        epoch = dr.acquire("west")

        def has_ended() -> bool:
            dr.lead("west", epoch)
            return not dr.has_drpc("west")

        until(has_ended, "the protection has ended on west", SECONDS)
        assert dr.state().intent["leftovers"] == ["east"] and not dr.application.get("west")
    finally:
        sandbox.up(clusters=list(dr.sites), replication=True)
    assert dr.has_drpc("east") and dr.application.get("east")

    def is_clean() -> bool:
        dr.lead("west", epoch)
        dr.watch("east")
        assert dr.has_drpc("east") or not dr.application.get("east"), "the copy stands for what is left"
        return not dr.has_drpc("east")

    until(is_clean, "nothing is left on east", SECONDS)
    assert dr.state().intent["leftovers"] == []

    # The next protection of the same name starts with an empty state.
    dr.protect("west")
    dr.lead_until("west", epoch, "Deployed", "Completed")
    assert dr.state().intent["home"] == "east" and dr.has_drpc("east")
