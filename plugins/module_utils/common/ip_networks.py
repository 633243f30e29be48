# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Address ranges in CIDR notation: parsed strictly, and compared with each other. It knows nothing of pools, templates or clusters."""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from .argument_values import show

Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"
PREFIX = re.compile(r"[^/\s]+/[0-9]{1,3}")  # a netmask instead of a prefix length is no CIDR


def parse_network(text: str) -> Network:
    """The range; ValueError with the rest of a sentence that begins with the name of the value."""
    try:
        if not PREFIX.fullmatch(text):
            raise ValueError
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"must be an address range in CIDR notation, such as 10.132.0.0/14, not {show(text)}") from None
    if ipaddress.ip_interface(text).ip != network.network_address:
        raise ValueError(f"must begin at the first address of its range: {network}, not {show(text)}")
    return network


def network_problems(named: Mapping[str, Sequence[str]]) -> list[str]:
    """What is wrong with the ranges of one cluster, by the names of the values: syntax, overlap, and families that do not fit together.

    A value with several ranges has one of each family. Other values then have one of each as well.
    """
    problems: list[str] = []
    parsed: list[tuple[str, Network]] = []
    for name, texts in named.items():
        for text in texts:
            try:
                parsed.append((name, parse_network(text)))
            except ValueError as error:
                problems.append(f"{name} {error}")
    for (name, network), (other_name, other) in itertools.combinations(parsed, 2):
        if overlap(network, other):
            problems.append(f"{name} {network} and {other_name} {other} overlap: use separate address ranges")
    return problems or _family_problems(parsed)


def overlap(network: Network, other: Network) -> bool:
    return network.version == other.version and network.overlaps(other)


def _family_problems(parsed: Sequence[tuple[str, Network]]) -> list[str]:
    families: dict[str, set[int]] = {}
    for name, network in parsed:
        families.setdefault(name, set()).add(network.version)
    if len({frozenset(versions) for versions in families.values()}) < 2:
        return []
    shown = [f"{name} has {' and '.join(f'IPv{version}' for version in sorted(versions))}" for name, versions in families.items()]
    return [f"{', '.join(shown)}: use the same address family for all"]
