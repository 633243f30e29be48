"""Which orders an upgrade moves next, case by case."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, config_version
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.upgrade_plan import Member, Plan, Release, member, plan, wave_size
from ansible_collections.openfleet.clusters.tests.unit.orders.order_samples import at, text

RELEASE = Release("release_image", "quay.io/release:4.17.1")
PATIENCE = timedelta(minutes=10)
SECRET = "hunter2"  # noqa: S105 - made up


def order(number: int = 0, phase: str = "Ready", release: str = "", status: dict[str, Any] | None = None, **fields: Any) -> ClusterOrder:
    parameters = {"pull_secret": SECRET} | ({"release_image": release} if release else {})
    made = ClusterOrder(
        "orders",
        f"order-{number:02}",
        "ocp_4_17_small",
        uid=str(number),
        generation=2,
        template_parameters=json.dumps(parameters),
        **fields,
    )
    known = {"phase": phase, "observedGeneration": 2, "configVersion": config_version(made)} if phase else {}
    return replace(made, status=known | (status or {}))


def moved(phase: str = "Ready", **fields: Any) -> ClusterOrder:
    return order(phase=phase, release=RELEASE.value, **fields)


def available(reason: str, minutes: float = 0) -> dict[str, Any]:
    condition = {
        "type": "ClusterAvailable",
        "status": "False",
        "reason": reason,
        "message": "it says",
        "lastTransitionTime": text(at(minutes)),
    }
    return {"conditions": [condition]}


FAILURE = {"failure": {"reason": "TaskFailed", "message": "no such image", "retryable": True, "attempts": 1}}


@pytest.mark.parametrize(
    ("given", "state", "message"),
    [
        (order(), "pending", ""),
        (order(release="quay.io/release:4.16.9"), "pending", ""),
        (order(phase="Failed"), "skipped", "its phase is Failed, not Ready"),
        (order(phase=""), "skipped", "its phase is not set yet, not Ready"),
        (order(is_deleting=True), "skipped", "it is being deleted"),
        (order(management_state="manual"), "skipped", "its management-state is manual"),
        (replace(order(), template_parameters="[1]"), "skipped", "its templateParameters are not a JSON object"),
        (replace(order(), template_parameters="{"), "skipped", "its templateParameters are not a JSON object"),
        (moved(), "upgraded", ""),
        (moved(status={"observedGeneration": 1}), "upgrading", "no run has prepared the change yet"),
        (moved("Failed", status={"observedGeneration": 1}), "upgrading", "no run has prepared the change yet"),
        (moved(status={"configVersion": "old"}), "upgrading", "Ready, its release is being rolled out"),
        (moved("Progressing", status=available("Installing")), "upgrading", "Progressing, Installing: it says"),
        (moved("Progressing", status=available("ClusterDegraded", minutes=-9)), "upgrading", "Progressing, ClusterDegraded: it says"),
        (moved("Progressing", status=available("ClusterDegraded", minutes=-10)), "failed", "Progressing, ClusterDegraded: it says"),
        (moved("Degraded", status=available("ClusterDegraded")), "failed", "Degraded, ClusterDegraded: it says"),
        (moved("Failed", status=FAILURE), "failed", "Failed, TaskFailed: no such image"),
        (moved("Failed", management_state="manual", status=FAILURE), "skipped", "its management-state is manual"),
        (moved(management_state="manual", status={"configVersion": "old"}), "skipped", "its management-state is manual"),
        (moved(management_state="manual"), "upgraded", ""),
    ],
)
def test_state_of_an_order(given: ClusterOrder, state: str, message: str) -> None:
    found = member(given, RELEASE, ["Ready"], at(0), PATIENCE)
    assert (found.state, found.message) == (state, message)
    assert SECRET not in str(found)


def planned(states: str, canary: int = 2, max_unavailable: str = "3") -> Plan:
    """A plan for orders of these states, one letter each: upgraded, upgrading (r), failed, pending, skipped."""
    words = {"u": "upgraded", "r": "upgrading", "f": "failed", "p": "pending", "s": "skipped"}
    members = [Member(order(number), words[letter]) for number, letter in enumerate(states)]  # type: ignore[arg-type]
    return plan(list(reversed(members)), RELEASE, canary, max_unavailable)


@pytest.mark.parametrize(
    ("states", "options", "sizes", "first", "moves"),
    [
        ("pppppppp", {}, [2, 3, 3], 1, 2),
        ("pppppppp", {"canary": 0}, [3, 3, 2], 1, 3),
        ("pppppppp", {"canary": 5}, [3, 3, 2], 1, 3),  # a canary wave is no larger than the others
        ("pppppppp", {"max_unavailable": "25%"}, [2, 2, 2, 2], 1, 2),
        ("upppppp", {}, [1, 3, 2], 1, 1),  # a run was killed within the canary wave
        ("uuppppp", {}, [3, 2], 2, 3),
        ("uuupppp", {}, [3, 1], 3, 3),
        ("uurpppp", {}, [3, 1], 3, 0),
        ("uufpppp", {}, [3, 1], 3, 0),
        ("fupppp", {}, [3, 1], 2, 0),  # one of an earlier wave has failed since
        ("spsp", {}, [2], 1, 2),
        ("uusuu", {}, [], 3, 0),
        ("", {}, [], 1, 0),
    ],
)
def test_waves(states: str, options: dict[str, Any], sizes: list[int], first: int, moves: int) -> None:
    found = planned(states, **options)
    assert [len(wave) for wave in found.waves] == sizes
    assert (found.first, len(found.next_wave)) == (first, moves)
    names = [each.order.name for wave in found.waves for each in wave]
    assert names == sorted(names) and len(names) == states.count("p")
    assert found.is_stopped == ("f" in states)
    assert found.is_complete == (not set("rfp") & set(states))


def test_report_names_every_order_that_needs_attention_and_every_wave() -> None:
    report = planned("uufsppppp").report()
    assert report[0] == "release_image quay.io/release:4.17.1: 2 upgraded, 1 failed, 5 pending, 1 skipped"
    assert report[1:3] == ["failed: orders/order-02", "skipped: orders/order-03"]
    assert report[3] == "wave 3 of 4, 3 orders: orders/order-04, orders/order-05, orders/order-06"
    assert planned("p" * 30, 0, "20").report()[1].endswith("orders/order-09 and 10 more")


@pytest.mark.parametrize(("value", "size"), [("3", 3), ("10%", 3), ("1%", 1), ("100%", 30), (" 5 ", 5)])
def test_size_of_a_wave(value: str, size: int) -> None:
    assert wave_size(value, 30) == size


@pytest.mark.parametrize("value", ["0", "0%", "-1", "101%", "10 %", "many", ""])
def test_a_size_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(Invalid, match=r"max_unavailable is .*: use a number of orders, or a percentage"):
        wave_size(value, 30)
