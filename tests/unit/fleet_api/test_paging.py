"""Pages of lists: order, cursors that no client can bend, and fields."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.fleet_api.logic.paging import Page, Query, page
from ansible_collections.openfleet.clusters.extensions.fleet_api.logic.views import CLUSTERS
from ansible_collections.openfleet.clusters.extensions.fleet_api.problems import Problem

STATES = ("Ready", "Failed", "Pending")


def cluster(number: int) -> dict[str, Any]:
    expires = {"expiresAt": f"2027-01-{number + 1:02}T00:00:00Z"} if number % 2 else {}
    return {
        "metadata": {
            "uid": f"uid-{number:02}",
            "name": f"c{number % 5}",
            "namespace": "team",
            "resourceVersion": str(100 + number),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"api.fleet.openfleet.io/idempotency-key": "x", "number": str(number)},
        },
        "spec": {"template": "t", "nodeSets": {"workers": {"class": "a", "size": number}}, **expires},
        "status": {"state": STATES[number % 3], "version": "1"},
    }


CLUSTERS_OF_TEAM = [cluster(number) for number in range(17)]


def listed(**query: Any) -> Page:
    return page(CLUSTERS_OF_TEAM, Query(**query), CLUSTERS, ["team"])


def all_pages(**query: Any) -> list[str]:
    found: list[str] = []
    cursor = ""
    while True:
        part = listed(cursor=cursor, **query)
        assert len(part.items) <= query["limit"]
        found += [item["id"] for item in part.items]
        if part.next_cursor is None:
            return found
        cursor = part.next_cursor


@pytest.mark.parametrize(
    "order", ["", "name", "name desc", "state, name desc", "expiresAt", "expiresAt desc", "created", "nodes desc", "deleting, tenant, id"]
)
@pytest.mark.parametrize("limit", [1, 4, 16, 17, 18])
def test_pages_together_are_the_whole_list_in_order(order: str, limit: int) -> None:
    whole = [item["id"] for item in listed(order_by=order).items]
    assert sorted(whole) == [item["metadata"]["uid"] for item in CLUSTERS_OF_TEAM]
    assert all_pages(order_by=order, limit=limit) == whole


def test_order_is_by_value_then_by_id_and_nothing_comes_first() -> None:
    assert [item["id"] for item in listed(order_by="expiresAt", limit=10).items][:9] == [f"uid-{number:02}" for number in range(0, 17, 2)]
    assert [item["id"] for item in listed(order_by="expiresAt desc", limit=2).items] == ["uid-15", "uid-13"]
    assert [item["id"] for item in listed(order_by="name", limit=4).items] == ["uid-00", "uid-05", "uid-10", "uid-15"]


def test_object_that_is_added_or_deleted_between_pages_moves_no_other() -> None:
    first = listed(order_by="nodes", limit=5)
    rest = [each for each in CLUSTERS_OF_TEAM if each["metadata"]["uid"] not in ("uid-02", "uid-04")]
    second = page(rest, Query(order_by="nodes", limit=5, cursor=first.next_cursor or ""), CLUSTERS, ["team"])
    assert [item["id"] for item in second.items] == [f"uid-{number:02}" for number in range(5, 10)]


def encoded(content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def decoded(cursor: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(cursor + "=="))


def bent(cursor: str) -> dict[str, str]:
    digest, values = decoded(cursor)
    return {
        "shortened": cursor[:-3],
        "longer": cursor + "AAAA",
        "no base64": "é",
        "no JSON": "-" * 5,
        "empty": encoded([]),
        "too long": encoded("x" * 3000),
        "deep": base64.urlsafe_b64encode(b"[" * 1000).decode(),
        "one value": encoded([digest, ["c1"]]),
        "a number": encoded([digest, [1, "uid-00"]]),
        "a list": encoded([digest, [["c1"], "uid-00"]]),
        "no id": encoded([digest, ["c1", {"a": 1}]]),
        "an object": encoded([digest, {"c1": 1, "uid": 2}]),
        "another list": encoded(["0" * 16, values]),
    }


@pytest.mark.parametrize("kind", bent(listed(limit=3).next_cursor or ""))
def test_bent_cursor_is_refused(kind: str) -> None:
    cursor = listed(limit=3).next_cursor or ""
    with pytest.raises(Problem) as refused:
        listed(limit=3, cursor=bent(cursor)[kind])
    assert refused.value.kind.code == "invalid-cursor"


def test_cursor_is_of_one_list_only() -> None:
    cursor = listed(limit=3).next_cursor or ""
    assert listed(limit=9, cursor=cursor).items  # the limit may change
    others = [Query(cursor=cursor, order_by="state"), Query(cursor=cursor, filter="nodes > 1")]
    for query, scope in [*((other, ["team"]) for other in others), (Query(cursor=cursor), ["other"]), (Query(cursor=cursor), ["*"])]:
        with pytest.raises(Problem):
            page(CLUSTERS_OF_TEAM, query, CLUSTERS, scope)


def test_fields_are_kept_and_the_id_always_is() -> None:
    item = listed(limit=1, fields="name, status.state,labels.number,status.none.deeper").items[0]
    assert item == {"id": "uid-00", "name": "c0", "status": {"state": "Ready"}, "labels": {"number": "0"}}
    whole = listed(limit=1, fields="status,status.state").items[0]
    assert whole == {"id": "uid-00", "status": {"state": "Ready", "version": "1"}}
    assert CLUSTERS_OF_TEAM[0] == cluster(0)  # nothing was changed in the cache


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"order_by": "spec"}, "invalid-request"),
        ({"order_by": "name up"}, "invalid-request"),
        ({"order_by": "name,,state"}, "invalid-request"),
        ({"order_by": "labels"}, "invalid-request"),
        ({"order_by": "name,state,hub,version,id"}, "invalid-request"),
        ({"fields": "metadata"}, "invalid-request"),
        ({"fields": "spec" + ".a" * 10}, "invalid-request"),
        ({"fields": ",".join(["name"] * 60)}, "invalid-request"),
        ({"filter": "nodes >"}, "invalid-filter"),
        ({"filter": "metadata == 1"}, "invalid-filter"),
    ],
)
def test_invalid_query_is_refused(query: dict[str, str], code: str) -> None:
    with pytest.raises(Problem) as refused:
        listed(**query)
    assert refused.value.kind.code == code
    assert refused.value.errors[0].field == next(iter(query))


def test_labels_of_the_service_are_not_shown_and_not_filtered_by() -> None:
    assert listed(limit=1).items[0]["labels"] == {"number": "0"}
    assert not listed(filter='"api.fleet.openfleet.io/idempotency-key" in labels').items
