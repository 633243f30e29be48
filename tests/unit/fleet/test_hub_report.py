"""Reports of hubs: what is written is read again, and junk makes only its own hub not ready."""

from __future__ import annotations

import json

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_report import (
    MAX_BYTES,
    MAX_ITEMS,
    Check,
    ClassNodes,
    HubReport,
    OfferedTemplate,
)

REPORT = HubReport(
    checks=(Check("crds", passed=True), Check("storage", passed=False, message="No default StorageClass: create one.")),
    nodes={"fc430": ClassNodes(5, 3)},
    templates=(OfferedTemplate("a.b.c", "Title", "Text", {"type": "object"}, {"fc430": 2}, ("fc430",)),),
    versions={"kubernetes": "v1.36.3"},
    releases=("4.17.0",),
    agent_version="0.1.0",
)


def test_what_the_agent_writes_is_what_home_reads() -> None:
    assert HubReport.from_json(REPORT.to_json()) == REPORT


def test_a_hub_is_ready_while_every_check_holds() -> None:
    assert not REPORT.is_ready
    assert REPORT.missing == "storage: No default StorageClass: create one."
    assert HubReport(checks=(Check("crds", passed=True),)).is_ready
    assert not HubReport().is_ready


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "7",
        '"text"',
        "{",
        "[" * 100_000,
        '{"checks": 7}',
        '{"checks": [null]}',
        '{"checks": [{"name": "crds"}]}',
        '{"nodes": []}',
        '{"nodes": {"a": 1}}',
        '{"nodes": {"a": {"total": true, "free": 1}}}',
        '{"nodes": {"a": {"total": NaN, "free": 1}}}',
        '{"templates": [{"title": "no name"}]}',
        '{"templates": [{"name": "a", "parameters": [1]}]}',
        '{"versions": {"a": 1}}',
        json.dumps({"checks": [{"name": "crds", "passed": True}], "more": "x" * MAX_BYTES}),
    ],
)
def test_a_report_that_cannot_be_read_is_a_failed_check(text: str) -> None:
    report = HubReport.from_json(text)
    assert not report.is_ready
    assert report.templates == ()


def test_only_true_passes() -> None:
    assert not HubReport.from_json('{"checks": [{"name": "crds", "passed": "true"}]}').is_ready


def test_a_report_is_cut_where_it_is_too_long() -> None:
    assert HubReport.from_json('{"nodes": {"a": {"total": 1000000000000, "free": -1}}}').nodes == {"a": ClassNodes(1_000_000, 0)}
    short = {"checks": [{"name": "n", "passed": True, "message": "m\n" * 999}] * (MAX_ITEMS + 1)}
    found = HubReport.from_json(json.dumps(short))
    assert len(found.checks) == MAX_ITEMS
    assert all("\n" not in each.message and len(each.message) <= 1024 for each in found.checks)


def test_a_template_is_reported_once() -> None:
    twice = json.dumps({"templates": [{"name": "a"}, {"name": "a", "title": "second"}, {"name": ""}]})
    assert [each.title for each in HubReport.from_json(twice).templates] == ["second"]


def test_parameters_of_the_largest_templates_are_left_out_of_a_report_that_would_be_too_large() -> None:
    large = OfferedTemplate("large", parameters={"x": "x" * MAX_BYTES})
    text = HubReport(templates=(large, OfferedTemplate("small", parameters={"type": "object"}))).to_json()
    assert len(text) <= MAX_BYTES
    assert [dict(each.parameters) for each in HubReport.from_json(text).templates] == [{}, {"type": "object"}]
    assert not HubReport.from_json(HubReport(versions={"a": "b" * MAX_BYTES}).to_json()).is_ready
