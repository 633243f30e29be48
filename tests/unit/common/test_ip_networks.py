"""Address ranges of a cluster: syntax, overlap, families."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.ip_networks import network_problems, parse_network

NOT_A_RANGE = "must be an address range in CIDR notation"


@pytest.mark.parametrize("text", ["10.132.0.0/14", "0.0.0.0/0", "192.0.2.1/32", "fd00::/48"])
def test_a_range_is_read(text: str) -> None:
    assert str(parse_network(text)) == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("10.132.0.0/33", NOT_A_RANGE),
        ("10.132.0.0", NOT_A_RANGE),
        ("10.132.0.0/255.252.0.0", NOT_A_RANGE),
        ("10.132.0/14", NOT_A_RANGE),
        ("10.132.0.0/ 14", NOT_A_RANGE),
        ("pods", NOT_A_RANGE),
        ("", NOT_A_RANGE),
        ("fd00::/129", NOT_A_RANGE),
        ("10.133.0.0/14", "must begin at the first address of its range: 10.132.0.0/14"),
        ("x" * 10_000, NOT_A_RANGE),
    ],
)
def test_what_is_no_range_is_refused_with_its_reason(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as refused:
        parse_network(text)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("ranges", "problems"),
    [
        ({"pods": ["10.132.0.0/14"], "services": ["172.31.0.0/16"], "machines": ["10.0.0.0/16"]}, []),
        ({"pods": ["10.128.0.0/14", "fd01::/48"], "services": ["172.30.0.0/16", "fd02::/112"]}, []),
        ({"pods": ["10.0.0.0/8"], "services": ["10.96.0.0/12"]}, ["pods 10.0.0.0/8 and services 10.96.0.0/12 overlap"]),
        ({"pods": ["10.0.0.0/8", "10.1.0.0/16"]}, ["pods 10.0.0.0/8 and pods 10.1.0.0/16 overlap"]),
        ({"pods": ["10.0.0.0/8"], "services": ["fd02::/112"]}, ["pods has IPv4, services has IPv6: use the same address family"]),
        ({"pods": ["10.0.0.0/8", "fd01::/48"], "services": ["fd02::/112"]}, ["pods has IPv4 and IPv6, services has IPv6"]),
        ({"pods": ["10.0.0.0/8"], "services": ["nope"]}, ["services must be an address range"]),
        ({"pods": ["10.0.0.0/40"], "services": ["nope"]}, ["pods must be", "services must be"]),
        ({"pods": [], "services": ["10.0.0.0/8"]}, []),
    ],
)
def test_the_ranges_of_a_cluster_fit_together(ranges: dict[str, list[str]], problems: list[str]) -> None:
    found = network_problems(ranges)
    assert len(found) == len(problems)
    assert all(text.startswith(start) for text, start in zip(found, problems, strict=True)), found
