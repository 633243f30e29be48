"""The benchmark as a whole: a measurement that fails or hangs is a missed goal, and the others go on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.dev.bench.__main__ import NAMES, measure
from ansible_collections.openfleet.clusters.extensions.dev.bench.timing import Row, report

ROOT = Path(__file__).resolve().parents[3]


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
def test_a_measurement_that_fails_is_a_missed_goal(work: object, seconds: float, rows: list[tuple[str, str, str]]) -> None:
    found = measure("name", work, seconds)  # type: ignore[arg-type]
    assert [row[:3] for row in found] == rows
    assert report(found) == 1


def test_each_measurement_has_one_name() -> None:
    assert len(NAMES) == len(set(NAMES)) > 10


def expressions(tasks: Path, number: int) -> int:
    """How many expressions Ansible renders for the arguments of one task of a file."""
    task = yaml.safe_load(tasks.read_text(encoding="utf-8"))[number]
    (arguments,) = (value for key, value in task.items() if "." in key)
    return str([arguments, task.get("vars")]).count("{{")


def test_floor_of_ansible_renders_as_many_arguments_as_the_template() -> None:
    floor, template = ROOT / "extensions/dev/bench/ansible_alone_tasks.yml", ROOT / "roles/ocp_4_17_small/tasks/install.yml"
    assert expressions(floor, 1) == expressions(template, 1) > 10
