# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The ranges of an AddressPool: parsed from text, compared, and listed entry by entry. Pure; it knows no allocations."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..common.argument_values import show
from ..common.ip_networks import Network, parse_network

VLANS = range(1, 4095)
NUMBERS = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")


@dataclass(frozen=True)
class PoolRange:
    """Entries by number: `first` and `last` are VLANs or addresses.

    Where an entry is a network, it has `step` addresses, and `suffix` is its prefix length.
    """

    text: str
    family: str  # VLAN, IPv4 or IPv6
    first: int
    last: int
    step: int = 1
    suffix: str = ""

    def __str__(self) -> str:
        return self.text

    @property
    def size(self) -> int:
        return (self.last - self.first + 1) // self.step

    def overlaps(self, other: PoolRange) -> bool:
        return self.family == other.family and self.first <= other.last and other.first <= self.last

    def contains(self, network: Network) -> bool:
        first, last = _bounds(network)
        return self.family == f"IPv{network.version}" and self.first <= first and last <= self.last

    def entries(self, apart_from: Sequence[Network] = ()) -> Iterator[str]:
        """The entries that overlap with none of the networks, in their order. A range may have more entries than fit in memory."""
        others = [_bounds(network) for network in apart_from if f"IPv{network.version}" == self.family]
        number = self.first
        while number <= self.last:
            end = max((end for begin, end in others if begin < number + self.step and number <= end), default=None)
            if end is None:
                yield self._entry(number)
                number += self.step
            else:  # the first entry behind it, at once: a network may be as large as the range
                number += (end - number) // self.step * self.step + self.step

    def _entry(self, number: int) -> str:
        if self.family == "VLAN":
            return str(number)
        return f"{ipaddress.IPv4Address(number) if self.family == 'IPv4' else ipaddress.IPv6Address(number)}{self.suffix}"


def parse_range(kind: str, text: str, prefix_length: int | None = None) -> PoolRange:
    """The range of a pool of this type; ValueError with the reason where the text is none."""
    if kind == "VLAN":
        return _vlans(text)
    return _networks(text, prefix_length or 0) if kind == "Network" else _addresses(text)


def _vlans(text: str) -> PoolRange:
    found = NUMBERS.fullmatch(text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if first not in VLANS or last not in VLANS or first > last:
        raise ValueError(f"a range of VLANs must be a number between 1 and 4094, or first and last such as 100-199, not {show(text)}")
    return PoolRange(text, "VLAN", first, last)


def _networks(text: str, prefix_length: int) -> PoolRange:
    try:
        network = parse_network(text)
    except ValueError as error:
        raise ValueError(f"a range {error}") from None
    if not network.prefixlen <= prefix_length <= network.max_prefixlen:
        raise ValueError(f"prefixLength {prefix_length} does not fit the range {text}")
    first, last = _bounds(network)
    step = 2 ** (network.max_prefixlen - prefix_length)
    return PoolRange(text, f"IPv{network.version}", first, last, step, f"/{prefix_length}")


def _addresses(text: str) -> PoolRange:
    """Addresses: one, first and last, or a network without those that are no addresses of hosts."""
    if "/" in text:
        try:
            network = parse_network(text)
        except ValueError as error:
            raise ValueError(f"a range {error}") from None
        first, last = _bounds(network)
        if network.version == 4 and network.prefixlen < 31:
            first, last = first + 1, last - 1
        return PoolRange(text, f"IPv{network.version}", first, last)
    begin, _dash, end = text.partition("-")
    try:
        one, other = ipaddress.ip_address(begin.strip()), ipaddress.ip_address((end or begin).strip())
        if one.version != other.version or int(one) > int(other):
            raise ValueError
    except ValueError:
        raise ValueError(f"a range must be an address, first and last such as 192.0.2.10-192.0.2.99, or a CIDR, not {show(text)}") from None
    return PoolRange(text, f"IPv{one.version}", int(one), int(other))


def _bounds(network: Network) -> tuple[int, int]:
    return int(network.network_address), int(network.broadcast_address)
