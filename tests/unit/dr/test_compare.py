"""The comparison of two implementations: what is reported, and that the second one never disturbs the first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.compare import (
    LIMIT,
    ComparingDirectory,
    ComparingPlacement,
    ComparingReader,
    Comparison,
    Readers,
    answer_differences,
    cluster_differences,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.interfaces import Cluster, Decision, ObjectRef, Stamp
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.read_results import (
    Absent,
    Found,
    Listed,
    Pending,
    ReadResult,
    Unreachable,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Forbidden

MODES = ("direct", "acm")
REF = ObjectRef("v1", "ConfigMap", "apps", "shop")
DRPC = {"metadata": {"namespace": "apps", "name": "shop"}}


def vrg(**changes: Any) -> Found:
    item = {
        "metadata": {"name": "shop", "namespace": "apps", "resourceVersion": "5", "generation": 2},
        "spec": {"replicationState": "primary"},
    }
    return Found(item | changes)


LATER = {"name": "shop", "namespace": "apps", "resourceVersion": "9", "generation": 2, "managedFields": []}


class Fixed:
    """All interfaces with fixed answers, and a record of what was changed."""

    def __init__(self, clusters: list[Cluster], answers: dict[str, ReadResult], decision: Decision) -> None:
        self._clusters, self._answers, self._decision = clusters, answers, decision
        self.changes: list[str] = []

    def clusters(self) -> list[Cluster]:
        return self._clusters

    def get(self, *_arguments: Any) -> dict[str, ReadResult]:
        return self._answers

    def list(self, *_arguments: Any) -> Any:
        return {name: Listed([answer.item]) if isinstance(answer, Found) else answer for name, answer in self._answers.items()}

    def forget(self, *_arguments: Any) -> None:
        self.changes.append("forget")

    def read(self, *_arguments: Any) -> Decision:
        return self._decision

    def set(self, *_arguments: Any) -> bool:
        self.changes.append("set")
        return True

    def retain(self, *_arguments: Any) -> bool:
        self.changes.append("retain")
        return True

    def clear(self, *_arguments: Any) -> bool:
        self.changes.append("clear")
        return True

    def readers(self, mode: str) -> Readers:
        return Readers(mode, self, self, self)


ACTIVE = Fixed([Cluster("east", "eu", True, "Healthy")], {"east": vrg()}, Decision("east"))


def comparison(other: Callable[[], Readers], seconds: float = 30.0) -> Comparison:
    return Comparison(ACTIVE.readers("direct"), "acm", other, seconds)


def use(compared: Comparison) -> None:
    assert ComparingDirectory(compared).clusters() == ACTIVE.clusters()
    assert ComparingReader(compared).get(["east"], REF) == {"east": vrg()}
    assert ComparingReader(compared).list(["east"], "v1", "ConfigMap") == {"east": Listed([vrg().item])}
    assert ComparingPlacement(compared).read(DRPC) == Decision("east")


def test_equal_answers_are_no_difference() -> None:
    compared = comparison(lambda: ACTIVE.readers("acm"))
    use(compared)
    assert compared.differences == []


def test_each_difference_says_what_each_mode_answered() -> None:
    other = Fixed([Cluster("east", "us", False, "Lost")], {"east": Absent()}, Decision("west", ("east",)))
    compared = comparison(lambda: other.readers("acm"))
    use(compared)
    assert compared.differences == [
        "clusters: region of east: eu by direct, us by acm",
        "clusters: healthy of east: True (Healthy) by direct, False (Lost) by acm",
        "ConfigMap apps/shop: east: Found by direct, Absent by acm",
        "all ConfigMap: east: Not listed by direct, Absent by acm",
        "all ConfigMap: east apps/shop: Found by direct, Not listed by acm",
        "decision of apps/shop: east by direct, west (retained on east) by acm",
    ]


def fail() -> Readers:
    raise Forbidden("list ManagedCluster: forbidden")


def crash() -> Readers:
    raise ValueError("secret")


@pytest.mark.parametrize(("other", "message"), [(fail, "acm failed: list ManagedCluster: forbidden"), (crash, "unexpected ValueError")])
def test_failure_of_the_other_one_is_a_difference(other: Callable[[], Readers], message: str) -> None:
    compared = comparison(other)
    use(compared)
    assert len(compared.differences) == 4
    assert all(message in text for text in compared.differences)
    assert "secret" not in str(compared.differences)


def test_other_one_that_hangs_is_not_waited_for() -> None:
    release = threading.Event()

    def hang() -> Readers:
        release.wait()
        return ACTIVE.readers("acm")

    compared = comparison(hang, seconds=0.01)
    assert ComparingDirectory(compared).clusters() == ACTIVE.clusters()
    release.set()
    assert compared.differences == ["clusters: acm gave no answer within 0.01 s"]


def test_changes_are_made_by_the_active_one_only() -> None:
    active, other = (Fixed([], {}, Decision()) for _each in range(2))
    compared = Comparison(active.readers("direct"), "acm", lambda: other.readers("acm"), 30)
    placement = ComparingPlacement(compared)
    for change in (placement.set, placement.retain, placement.clear):
        assert change(DRPC, "east", Stamp("uid", 1, 1))
    ComparingReader(compared).forget(["east"], REF)
    assert (active.changes, other.changes) == (["set", "retain", "clear", "forget"], [])


def test_differences_are_limited() -> None:
    other = Fixed([Cluster(f"c{number}") for number in range(3 * LIMIT)], {}, Decision())
    compared = comparison(lambda: other.readers("acm"))
    for _each in range(2):
        ComparingDirectory(compared).clusters()
    assert len(compared.differences) == LIMIT


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (vrg(), []),
        (vrg(metadata=LATER), []),
        (vrg(spec={"replicationState": "secondary"}), ["east has another spec.replicationState by acm"]),
        (vrg(status={"state": "Primary"}), ["east has another status by acm"]),
        (vrg(metadata=LATER, status={"state": "Primary"}), []),
        (vrg(metadata=LATER, spec={}), ["east has another spec.replicationState by acm"]),
        (Unreachable("no answer"), ["east: Found by direct, Unreachable (no answer) by acm"]),
    ],
)
def test_objects_differ_by_path(other: ReadResult, expected: list[str]) -> None:
    assert answer_differences({"east": vrg()}, {"east": other}, MODES) == expected


def test_answer_that_a_hub_does_not_have_yet_is_not_compared() -> None:
    other = Fixed([], {"east": Pending("the view was just requested")}, Decision())
    compared = comparison(lambda: other.readers("acm"))
    ComparingReader(compared).get(["east"], REF)
    ComparingReader(compared).list(["east"], "v1", "ConfigMap")
    assert compared.differences == []


def test_unknown_answers_with_other_words_are_no_difference() -> None:
    assert answer_differences({"east": Unreachable("a")}, {"east": Unreachable("b")}, MODES) == []


def test_cluster_that_one_mode_does_not_know() -> None:
    assert cluster_differences([Cluster("east")], [Cluster("west")], MODES) == ["east is known to direct only", "west is known to acm only"]
