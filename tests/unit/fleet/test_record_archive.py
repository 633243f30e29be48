"""Which records are deleted when, and what usage they add up to."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import format_time
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.record_archive import Retention, surplus, usage

NOW = datetime(2026, 1, 31, tzinfo=UTC)
DAY = timedelta(days=1)
PAGE = (Path(__file__).resolve().parents[3] / "docs/fleet.md").read_text(encoding="utf-8")


def record(tenant: str, age: int, exported: bool = True) -> Object:
    spec = {"uid": f"{tenant}-{age}", "deleted": format_time(NOW - age * DAY)}
    return {"metadata": {"namespace": tenant}, "spec": spec, "status": {"exported": format_time(NOW)} if exported else {}}


RECORDS = [record("a", 1), record("a", 5), record("a", 9), record("b", 2), record("b", 8, exported=False)]


@pytest.mark.parametrize(
    ("retention", "deleted"),
    [
        (Retention(), []),
        (Retention(max_age=7 * DAY), ["a-9"]),
        (Retention(max_number=1), ["a-9", "a-5"]),
        (Retention(max_age=4 * DAY, max_number=2), ["a-9", "a-5"]),
        (Retention(max_number=0), ["a-9", "a-5", "b-2", "a-1"]),
    ],
    ids=["no-limit", "age", "number-of-each-tenant", "both", "none"],
)
def test_old_and_surplus_records_are_deleted_once_they_are_exported(retention: Retention, deleted: list[str]) -> None:
    for records in (RECORDS, RECORDS[::-1]):
        assert [each["spec"]["uid"] for each in surplus(records, retention, NOW, only_exported=True)] == deleted


def test_without_an_export_all_records_follow_the_retention() -> None:
    assert [each["spec"]["uid"] for each in surplus(RECORDS, Retention(max_age=7 * DAY), NOW, only_exported=False)] == ["a-9", "b-8"]


LINES = [
    {"namespace": "b", "nodeHours": {"fc430": 1.5, "h100": 2}},
    {"namespace": "a"},
    {"namespace": "b", "nodeHours": {"fc430": 0.25}},
    {"namespace": "c", "nodeHours": {"fc430": 4}},
]


def test_usage_is_summed_by_tenant_and_class() -> None:
    assert usage(LINES) == {"a": {}, "b": {"fc430": 1.75, "h100": 2.0}, "c": {"fc430": 4.0}}


# A small machine may lack jq; the table at the end of a run names this test then.
@pytest.mark.skipif(not shutil.which("jq"), reason="jq: install jq")
def test_command_of_the_guide_sums_exported_days_alike(tmp_path: Path) -> None:
    (command,) = re.findall(r"```sh\n(jq .*?)```", PAGE, re.DOTALL)
    for day, lines in (("02", LINES[:2]), ("03", LINES[2:])):
        (tmp_path / f"2026-01-{day}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    result = subprocess.run(["bash", "-eu", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(result.stdout) == {tenant: hours for tenant, hours in usage(LINES).items() if hours}
