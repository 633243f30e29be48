"""Actions in order, fenced by their stamps: what a cluster refuses, and what a later leader has done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.act import Acted, Actor, SupersededError
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.interfaces import (
    BadPlacement,
    Decision,
    Deployed,
    Outcome,
    Refused,
    Superseded,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import (
    Action,
    DeleteVRG,
    DeployVRG,
    ReleaseDRPC,
    SetPlacement,
    StartWorkload,
    StopWorkload,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.observe import Observed
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.read_results import Unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import State
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import Fenced

PROMOTE = DeployVRG("west", {"replicationState": "primary"}, "uid")
DEMOTE = DeployVRG("east", {"replicationState": "secondary"}, "uid")


class Clusters:
    """A deployer and a placement that record what they are asked for. `outcomes` are by cluster."""

    def __init__(self, **outcomes: Outcome) -> None:
        self.calls: list[Any] = []
        self._outcomes = outcomes

    def apply(self, cluster: str, item: dict[str, Any], stamp: Any) -> Outcome:
        self.calls.append((cluster, item["kind"], item["spec"], stamp))
        return self._outcomes.get(cluster, Deployed(True))

    def delete(self, cluster: str, ref: Any, stamp: Any) -> Outcome:
        self.calls.append((cluster, ref.kind, None, stamp))
        return self._outcomes.get(cluster, Deployed(True))

    def delete_later(self, cluster: str, ref: Any, _stamp: Any) -> None:
        self.calls.append(("delete later", cluster, ref.kind))

    def forget(self, clusters: tuple[str, ...], ref: Any) -> None:
        self.calls.append(("forget", clusters, ref.kind))

    def read(self, _drpc: Any) -> Decision:
        return Decision("east", ("north",))

    def __getattr__(self, name: str) -> Any:
        return lambda _drpc, cluster, _stamp: self.calls.append((name, cluster))


def actor(clusters: Clusters, acting: Callable[[], bool] = lambda: True, **observed: Any) -> Actor:
    access: Any = SimpleNamespace(deployer=clusters, placement=clusters, reader=clusters)
    seen = Observed(**({"copies": {}, "missing": (), "vrgs": {}, "controllers": {}} | observed))
    state = State(uid="uid", epoch=3, revision=7, leftovers=("north",))
    return Actor(access, WorkloadRef("shop", "db"), {}, state, seen, lambda: bool(clusters.calls.append("release")) or True, acting)


def test_actions_are_done_in_order_with_the_stamp_of_the_state() -> None:
    clusters = Clusters()
    acted = actor(clusters).do((DEMOTE, PROMOTE))
    assert acted.changed == ["make east secondary", "make west primary"] and acted.problems == []
    stamps = [(call[0], call[3].drpc_uid, call[3].epoch, call[3].revision) for call in clusters.calls]
    assert stamps == [("east", "uid", 3, 7), ("west", "uid", 3, 7)]


def test_nothing_is_done_after_an_object_of_a_later_leader() -> None:
    clusters = Clusters(east=Superseded(4, 1, "a later leader"))
    with pytest.raises(SupersededError, match="a later leader"):
        actor(clusters).do((DEMOTE, PROMOTE))
    assert len(clusters.calls) == 1


def test_nothing_is_begun_after_the_term() -> None:
    clusters = Clusters()
    with pytest.raises(Fenced, match="The term of epoch 3 of shop/db is over"):
        actor(clusters, lambda: len(clusters.calls) < 1).do((DEMOTE, PROMOTE))
    assert [call[0] for call in clusters.calls] == ["east"]


def test_cluster_that_stops_answering_is_skipped_and_others_are_not() -> None:
    clusters = Clusters(east=Unreachable("down"), west=Refused("no CRD"))
    acted = actor(clusters).do((DEMOTE, DeleteVRG("east"), PROMOTE))
    assert [call[0] for call in clusters.calls] == ["east", "west"]
    assert acted.silent == {"east": Unreachable("down")} and acted.changed == []
    assert acted.problems == ["Cannot make east secondary: down", "Cannot make west primary: no CRD"]


def test_object_is_taken_over_from_the_owner_that_the_action_names_and_from_no_other() -> None:
    clusters = Clusters()
    actor(clusters).do((replace(DEMOTE, adopts="earlier"), PROMOTE, DeleteVRG("north", "earlier")))
    assert [call[3].adopts for call in clusters.calls] == [frozenset({"earlier"}), frozenset(), frozenset({"earlier"})]


def test_placement_ends_where_the_workload_is_neither_placed_nor_retained() -> None:
    clusters = Clusters()
    actor(clusters).do((SetPlacement("west", "east"),))
    assert clusters.calls == [("clear", "north"), ("retain", "east"), ("set", "west")]


def controller(name: str, replicas: int, note: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "annotations": {"dr.openfleet.io/replicas": note}}
    return {"kind": "Deployment", "metadata": metadata, "spec": {"replicas": replicas}}


class Controllers(Clusters):
    """It refuses some controllers: all writes of them, or those with replicas."""

    def __init__(self, *refused: str, notes: bool = False, outcome: Outcome | None = None) -> None:
        super().__init__()
        self.written: list[tuple[str, int, str]] = []
        self._refused, self._notes, self._outcome = refused, notes, outcome or Refused("it is wrong.")

    def apply(self, _cluster: str, item: dict[str, Any], _stamp: Any) -> Outcome:
        name, replicas = item["metadata"]["name"], item["spec"]["replicas"]
        if name in self._refused and (replicas or self._notes):
            return self._outcome
        self.written.append((name, replicas, item["metadata"]["annotations"]["dr.openfleet.io/replicas"]))
        return Deployed(True)


def scale(clusters: Controllers, action: Action, *items: dict[str, Any]) -> Acted:
    return actor(clusters, controllers={"east": items}).do((action,))


def test_workload_is_stopped_once() -> None:
    clusters = Controllers()
    scale(clusters, StopWorkload("east"), controller("web", 2), controller("cron", 0, "0"), controller("db", 0, "3"))
    assert clusters.written == [("web", 0, "2")]


def test_refused_controller_is_named_and_the_others_are_started() -> None:
    clusters = Controllers("db")
    acted = scale(clusters, StartWorkload("east"), controller("db", 0, "3"), controller("web", 0, "2"))
    assert clusters.written == [("web", 2, "")] and acted.changed == []
    refused = "Deployment db: it is wrong. Correct that, or set its annotation dr.openfleet.io/replicas to 0 to leave it stopped."
    assert acted.problems == [f"Cannot start the workload on east: {refused}"]


def test_refused_controller_is_named_and_the_others_are_stopped() -> None:
    clusters = Controllers("cron", notes=True)
    acted = scale(clusters, StopWorkload("east"), controller("cron", 0), controller("web", 2))
    assert clusters.written == [("web", 0, "2")]
    assert acted.problems == ["Cannot stop the workload on east: Deployment cron: it is wrong. Correct that, or scale it to 0."]


def test_nothing_is_started_before_all_is_noted() -> None:
    """Otherwise the one that is refused would look like one without replicas on purpose."""
    clusters = Controllers("db", notes=True)
    acted = scale(clusters, StartWorkload("east"), controller("db", 0), controller("web", 0))
    assert clusters.written == [("web", 0, "1")] and len(acted.problems) == 1


def test_start_ends_on_a_cluster_that_stops_answering() -> None:
    clusters = Controllers("db", outcome=Unreachable("down"))
    acted = scale(clusters, StartWorkload("east"), controller("db", 0, "1"), controller("web", 0, "1"))
    assert clusters.written == [] and acted.silent == {"east": Unreachable("down")}


def test_placement_that_cannot_be_changed_is_a_problem_and_other_actions_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = Clusters()

    def refuse(*_arguments: Any) -> None:
        raise BadPlacement("no Placement")

    monkeypatch.setattr(clusters, "clear", refuse, raising=False)
    acted = actor(clusters).do((SetPlacement("west"), PROMOTE))
    assert acted.problems == ["Cannot place the workload on west: no Placement"] and acted.changed == ["make west primary"]


def test_end_of_a_protection_forgets_what_was_read_and_leaves_word_for_members_that_do_not_answer() -> None:
    clusters = Clusters()
    actor(clusters, vrgs={"east": Unreachable("down"), "west": Unreachable("down")}).do((ReleaseDRPC(),))
    kind = "VolumeReplicationGroup"
    assert clusters.calls == [("delete later", "north", kind), ("forget", ("east", "west"), kind), "release"]
