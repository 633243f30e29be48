"""The ports of Cluster API's machines: no two sandboxes have the same, also when they start at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox import capi
from ansible_collections.openfleet.clusters.extensions.sandbox.capi import PortRange
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError


@pytest.fixture(autouse=True)
def in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The ports in use, none at first. There are two ranges, which begin with 20000 and 20500, and claims of this test's own."""
    used: set[int] = set()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "openfleet").mkdir()
    monkeypatch.setattr(capi, "LAST_PORT", capi.FIRST_PORT + 2 * capi.PORTS)
    monkeypatch.setattr(capi, "port_in_use", used.__contains__)
    return used


def test_a_range_is_claimed_before_any_port_of_it_is_in_use() -> None:
    first, second = PortRange.claim(), PortRange.claim()
    assert first.first != second.first
    with pytest.raises(UserError, match="end a sandbox that has Cluster API"):
        PortRange.claim()
    freed = first.first
    del first
    assert PortRange.claim().first == freed


def test_a_range_whose_first_port_is_in_use_is_not_claimed(in_use: set[int]) -> None:
    in_use.add(20000)
    assert PortRange.claim().first == 20500
