"""Which addresses a tenant's kubeconfig may lead to."""

from __future__ import annotations

import re

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.allowed_addresses import AllowedAddresses

HOST = "api.example.com"


@pytest.mark.parametrize(
    ("entries", "host", "address", "allowed"),
    [
        ([], HOST, "203.0.113.7", False),
        (["203.0.113.7"], HOST, "203.0.113.7", True),
        (["203.0.113.7"], HOST, "203.0.113.8", False),
        (["203.0.113.0/24"], HOST, "203.0.113.8", True),
        (["2001:db8::/32"], HOST, "2001:db8::1", True),
        ([HOST], HOST, "203.0.113.7", True),
        ([HOST.upper()], f"{HOST}.", "203.0.113.7", True),
        ([HOST], "api.example.com.evil.test", "203.0.113.7", False),
        (["*.example.com"], HOST, "203.0.113.7", True),
        (["*.example.com"], "example.com", "203.0.113.7", False),
        (["*.example.com"], "badexample.com", "203.0.113.7", False),
        # An address with a zone that ends like a name.
        (["*.example.com"], "2001:db8::1%.example.com", "2001:db8::1%.example.com", False),
        # Internal addresses need an entry that is internal itself.
        (["0.0.0.0/0", "::/0", HOST], HOST, "127.0.0.1", False),
        (["0.0.0.0/0", "::/0", HOST], HOST, "10.96.0.1", False),
        (["0.0.0.0/0", "::/0", HOST], HOST, "169.254.169.254", False),
        (["0.0.0.0/0", "::/0", HOST], HOST, "0.0.0.1", False),
        (["0.0.0.0/0", "::/0", HOST], HOST, "100.64.0.1", False),
        (["0.0.0.0/0", "::/0", HOST], HOST, "::1", False),
        (["0.0.0.0/0", "::/0", HOST], HOST, "fe80::1%eth0", False),
        (["0.0.0.0/0", "::/0", HOST], HOST, "fd00::1", False),
        (["0.0.0.0/0", "::/0", HOST], HOST, "::ffff:127.0.0.1", False),
        (["0.0.0.0/0", "::/0", HOST], HOST, "64:ff9b::7f00:1", False),
        (["0.0.0.0/0", "::/0", HOST], HOST, "2002:7f00:1::", False),
        (["0.0.0.0/0", "::/0", HOST], HOST, "203.0.113.7", True),
        (["127.0.0.1"], "localhost", "127.0.0.1", True),
        (["127.0.0.1"], "localhost", "::ffff:127.0.0.1", True),
        (["127.0.0.1"], "localhost", "127.0.0.2", False),
        (["10.20.0.0/16"], HOST, "10.20.3.4", True),
        (["10.20.0.0/16"], HOST, "10.96.0.1", False),
        (["::1"], "localhost", "::1", True),
    ],
)
def test_address_is_allowed_by_an_entry_of_its_own_kind(entries: list[str], host: str, address: str, allowed: bool) -> None:
    assert AllowedAddresses.of(entries).allow(host, address) is allowed


@pytest.mark.parametrize(
    ("entries", "host", "allowed"),
    [
        ([HOST], f"{HOST.upper()}.", True),
        (["*.example.com"], HOST, True),
        (["*.example.com"], "2001:db8::1%25.example.com", False),
        (["*.example.com"], "evil.test%2f.example.com", False),
        (["203.0.113.0/24"], "203.0.113.7", True),
        (["203.0.113.0/24"], "203.0.114.7", False),
        (["2001:db8::/32"], "2001:db8::1", True),
        (["0.0.0.0/0"], "169.254.169.254", False),
        # A name may resolve to anything later, and so may what a resolver alone takes for an address.
        (["0.0.0.0/0", "127.0.0.0/8", "::1"], "localhost", False),
        (["0.0.0.0/0", "127.0.0.0/8"], "2130706433", False),
        (["0.0.0.0/0", "127.0.0.0/8"], "127.1", False),
    ],
)
def test_host_is_allowed_by_its_name_or_as_an_address(entries: list[str], host: str, allowed: bool) -> None:
    assert AllowedAddresses.of(entries).allow_host(host) is allowed


@pytest.mark.parametrize("entry", ["", "https://api.example.com", "api.example.com:6443", "*", "10.0.0", "10.0.0.0/33", "a b", "*.*.com"])
def test_an_entry_that_is_none_says_what_one_looks_like(entry: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"has the invalid entry {entry!r}: give an address as 192.0.2.7")):
        AllowedAddresses.of([entry])


def test_entries_can_be_passed_on() -> None:
    given = AllowedAddresses.of(["203.0.113.7", "10.0.0.0/8", "*.example.com"])
    assert AllowedAddresses.of(given.entries) == given
