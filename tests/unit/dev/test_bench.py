"""The benchmark as a whole: a measurement that fails or hangs is a missed goal, and the others go on."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.dev.bench.__main__ import NAMES, measure
from ansible_collections.openfleet.clusters.extensions.dev.bench.timing import Row, report


def failing() -> Iterator[Row]:
    yield Row("before", "1 s")
    raise RuntimeError("the hub is gone\nand more")


def hanging() -> Iterator[Row]:
    time.sleep(60)
    yield Row("after", "60 s")


@pytest.mark.parametrize(
    ("work", "seconds", "rows"),
    [
        (failing, 60, [("before", "1 s", ""), ("name", "failed", "the hub is gone")]),
        (hanging, 0.05, [("name", "failed", "not finished after 0.05 s")]),
    ],
)
def test_a_measurement_that_does_not_end_well_is_a_missed_goal(work: object, seconds: float, rows: list[tuple[str, str, str]]) -> None:
    found = measure("name", work, seconds)  # type: ignore[arg-type]
    assert [row[:3] for row in found] == rows
    assert report(found) == 1


def test_each_measurement_has_one_name() -> None:
    assert len(NAMES) == len(set(NAMES)) > 10
