"""Actions in order, fenced by their stamps: what a cluster refuses, and what a later leader has done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.act import Actor, SupersededError
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.answers import Unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.interfaces import (
    BadPlacement,
    Decision,
    Deployed,
    Outcome,
    Refused,
    Superseded,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import (
    DeleteVRG,
    DeployVRG,
    ReleaseDRPC,
    SetPlacement,
    StopWorkload,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.observe import Observed
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


def test_workload_is_stopped_once() -> None:
    def controller(name: str, replicas: int) -> dict[str, Any]:
        return {"kind": "Deployment", "metadata": {"name": name, "namespace": "shop"}, "spec": {"replicas": replicas}}

    clusters = Clusters()
    actor(clusters, controllers={"east": (controller("web", 2), controller("cron", 0))}).do((StopWorkload("east"),))
    assert [(call[1], call[2]) for call in clusters.calls] == [("Deployment", {"replicas": 0})]


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
