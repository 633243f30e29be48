"""What --diff shows of the changes that a run has made, or would make. No server is needed."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import Change, diff

METADATA = {"name": "demo", "namespace": "orders-demo"}
SECRET: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": METADATA, "data": {"a": "c2VjcmV0", "b": "c2FtZQ=="}}
POOL: Object = {"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "NodePool", "metadata": METADATA, "spec": {"replicas": 2}}


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        (Change("created", None, POOL), [], ['"replicas": 2']),
        (Change("changed", POOL, POOL | {"spec": {"replicas": 3}}), ['"replicas": 2'], ['"replicas": 3']),
        (Change("deleted", POOL, None), ['"replicas": 2'], []),
        (Change("created", None, SECRET), [], ['"a": "(hidden)"', '"b": "(hidden)"']),
        (
            Change("changed", SECRET, SECRET | {"data": SECRET["data"] | {"a": "bmV3"}}),
            ['"a": "(hidden)"', '"b": "(unchanged)"'],
            ['"a": "(hidden)"', '"b": "(unchanged)"'],
        ),
        (Change("deleted", SECRET, None), ['"a": "(hidden)"', '"b": "(hidden)"'], []),
    ],
)
def test_diff_names_the_object_and_hides_the_values_of_secrets(change: Change, before: list[str], after: list[str]) -> None:
    (shown,) = diff([change])
    assert shown["before_header"] == shown["after_header"] == f"{change.item['kind']} orders-demo/demo"
    for text, parts in ((shown["before"], before), (shown["after"], after)):
        assert [part for part in parts if part not in text] == [] and bool(text) == bool(parts)
        assert not [value for value in (*SECRET["data"].values(), "bmV3") if value in text]


def test_diff_has_no_entry_for_an_object_that_does_not_change() -> None:
    assert diff([Change("unchanged", POOL, POOL)]) == []
