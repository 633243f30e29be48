"""Ranges of AddressPools: what they contain, and what is none."""

from __future__ import annotations

from itertools import islice

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.ip_networks import parse_network
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.pool_ranges import parse_range


@pytest.mark.parametrize(
    ("kind", "text", "prefix", "size", "first"),
    [
        ("VLAN", "100-102", None, 3, ["100", "101", "102"]),
        ("VLAN", "4094", None, 1, ["4094"]),
        ("Address", "192.0.2.0/30", None, 2, ["192.0.2.1", "192.0.2.2"]),
        ("Address", "192.0.2.4/31", None, 2, ["192.0.2.4", "192.0.2.5"]),
        ("Address", "192.0.2.7", None, 1, ["192.0.2.7"]),
        ("Address", "192.0.2.254-192.0.3.1", None, 4, ["192.0.2.254", "192.0.2.255", "192.0.3.0", "192.0.3.1"]),
        ("Address", "2001:db8::a-2001:db8::b", None, 2, ["2001:db8::a", "2001:db8::b"]),
        ("Network", "10.20.0.0/23", 24, 2, ["10.20.0.0/24", "10.20.1.0/24"]),
        ("Network", "10.20.0.0/24", 24, 1, ["10.20.0.0/24"]),
        ("Network", "2001:db8::/32", 64, 2**32, ["2001:db8::/64", "2001:db8:0:1::/64"]),
    ],
)
def test_a_range_has_its_entries_in_order(kind: str, text: str, prefix: int | None, size: int, first: list[str]) -> None:
    found = parse_range(kind, text, prefix)
    assert found.size == size and list(islice(found.entries(), len(first))) == first


@pytest.mark.parametrize(
    ("kind", "text", "prefix"),
    [
        ("VLAN", "0", None),
        ("VLAN", "4095", None),
        ("VLAN", "200-100", None),
        ("VLAN", "a-b", None),
        ("Address", "192.0.2.300", None),
        ("Address", "192.0.2.9-192.0.2.1", None),
        ("Address", "192.0.2.1-2001:db8::1", None),
        ("Address", "192.0.2.1/24", None),
        ("Network", "10.20.0.0/24", 23),
        ("Network", "10.20.0.0/24", 33),
        ("Network", "10.20.0.0", 24),
    ],
)
def test_what_is_no_range_is_refused(kind: str, text: str, prefix: int | None) -> None:
    with pytest.raises(ValueError, match="range"):
        parse_range(kind, text, prefix)


def test_entries_that_overlap_with_other_networks_are_left_out_however_large_those_are() -> None:
    found = parse_range("Network", "10.0.0.0/8", 28)
    assert next(found.entries([parse_network("10.0.0.0/9")])) == "10.128.0.0/28"
    assert next(found.entries([parse_network("10.0.0.8/29"), parse_network("10.0.0.17/32")])) == "10.0.0.32/28"
    assert list(found.entries([parse_network("10.0.0.0/8")])) == []
    assert next(found.entries([parse_network("fd00::/8")])) == "10.0.0.0/28"
