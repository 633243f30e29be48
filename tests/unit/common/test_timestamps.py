"""Timestamps of the API: written and read, also those that a tenant makes up."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import format_time, parse_time


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.678+02:00", "2026-01-02T01:04:05Z"),
        ("0350-07-14T01:52:29Z", "0350-07-14T01:52:29Z"),
        ("0001-01-01T00:00:00+05:00", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59-05:00", "9999-12-31T23:59:59Z"),
    ],
)
def test_time_is_written_as_the_api_reads_it(text: str, written: str) -> None:
    moment = parse_time(text)
    assert moment is not None
    assert format_time(moment) == written


def test_what_is_no_time_is_none() -> None:
    assert [parse_time(text) for text in (None, "", "soon")] == [None, None, None]
