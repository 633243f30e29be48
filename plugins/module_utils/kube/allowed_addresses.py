# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The addresses outside of the site's own configuration that the site connects to. It resolves nothing and sends nothing.

Without such a list a tenant could use the controller to reach what only the controller's network reaches: a kubeconfig names any server.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

Address: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"
Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"

NAME = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
# The characters of a name. The zone of an IPv6 address can end like a name, as in 2001:db8::1%.example.com.
NAME_CHARACTERS = re.compile(r"[-a-z0-9_.]+")
# Loopback, link-local, private and reserved: a cluster's Pods and Services, the metadata service of a cloud, the
# machine itself. An address in one of them needs an entry within it. 0.0.0.0/0 is none, and neither is the name of a
# host, which can point anywhere.
INTERNAL: tuple[Network, ...] = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "224.0.0.0/3",
        "::/96",
        "64:ff9b::/32",  # an IPv4 address behind a NAT
        "2002::/16",  # and in a tunnel
        "fc00::/7",
        "fe80::/9",
        "ff00::/8",
    )
)


@dataclass(frozen=True)
class AllowedAddresses:
    """Networks, and names of hosts; a name that begins with `*.` stands for all names below it."""

    networks: tuple[Network, ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> AllowedAddresses:
        """From the setting of a site; ValueError for an invalid entry."""
        networks: list[Network] = []
        names: list[str] = []
        for entry in entries:
            text = str(entry).strip().lower().rstrip(".")
            try:
                networks.append(ipaddress.ip_network(text, strict=False))
            except ValueError:
                # A last label of digits is an address that is not valid, never a name.
                if not NAME.fullmatch(text) or text.rpartition(".")[2].isdecimal():
                    raise ValueError(
                        f"allowed_addresses has the invalid entry {str(entry)[:100]!r}: "
                        "give an address as 192.0.2.7, a network as 192.0.2.0/24, or a host as api.example.com or *.example.com"
                    ) from None
                names.append(text)
        return cls(tuple(networks), tuple(names))

    @property
    def entries(self) -> list[str]:
        """As the setting has them."""
        return [*map(str, self.networks), *self.names]

    def allow_name(self, host: str) -> bool:
        """Whether the name is listed."""
        name = host.lower().rstrip(".")
        if not NAME_CHARACTERS.fullmatch(name):
            return False
        return any(name == entry or (entry.startswith("*.") and name.endswith(entry[1:])) for entry in self.names)

    def allow_host(self, host: str) -> bool:
        """Whether the host itself is listed, by its name or as an address: what a name resolves to now says nothing of later."""
        try:
            return self.allow(host, host)
        except ValueError:
            return self.allow_name(host)

    def may_allow(self, host: str) -> bool:
        """Whether some address of the host could be allowed."""
        return bool(self.networks) or self.allow_name(host)

    def allow(self, host: str, address: str) -> bool:
        """Whether to connect to this address of the host."""
        found = _address(address)
        if ranges := [network for network in INTERNAL if found in network]:
            return any(found in entry and _is_within(entry, ranges) for entry in self.networks)
        return self.allow_name(host) or any(found in entry for entry in self.networks)


def _address(text: str) -> Address:
    address = ipaddress.ip_address(text.partition("%")[0])
    # The same address in another form.
    return (address.ipv4_mapped or address) if isinstance(address, ipaddress.IPv6Address) else address


def _is_within(entry: Network, ranges: list[Network]) -> bool:
    return any(entry.version == network.version and entry.subnet_of(network) for network in ranges)  # type: ignore[arg-type]
