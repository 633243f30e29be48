# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether DNS records are visible to clients: one query for each, without waiting. It writes nothing."""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Sequence
from typing import Any

from ..common.argument_values import show
from ..kube.errors import Invalid
from .dns_records import RecordSet
from .dns_third_party import dns, require_dnspython

QUERY_SECONDS = 5.0
TOTAL_SECONDS = 15.0
PROBE_LABEL = "openfleet-probe"  # a name below a wildcard
SERVER = re.compile(r"(?:\[([^]]+)\]|([^:\[\]]+|[0-9a-fA-F:]+))(?::([0-9]{1,5}))?")


def missing_records(records: Sequence[RecordSet], servers: Sequence[str] = ()) -> list[str]:
    """The names that do not resolve to their records yet. The servers are resolvers, by default those of the machine."""
    require_dnspython()
    resolver, deadline = _resolver(servers), time.monotonic() + TOTAL_SECONDS
    missing: list[str] = []
    for record in records:
        try:
            is_visible = _is_visible(resolver, record, deadline)
        except dns.exception.Timeout:
            # No resolver answers: the others would only take the same time again.
            is_visible, deadline = False, 0.0
        if not is_visible:
            missing.append(record.name)
    return list(dict.fromkeys(missing))


def _resolver(servers: Sequence[str]) -> Any:
    resolver = dns.resolver.Resolver(configure=not servers)
    if servers:
        resolver.nameservers = [dns.nameserver.Do53Nameserver(*_address(server)) for server in servers]
    return resolver


def _address(server: str) -> tuple[str, int]:
    found = SERVER.fullmatch(server)
    try:
        if found is None:
            raise ValueError
        return str(ipaddress.ip_address(found[1] or found[2])), int(found[3] or 53)
    except ValueError:
        raise Invalid(f"resolvers must be addresses, such as 192.0.2.53 or 192.0.2.53:5353, not {show(server)}.", ["resolvers"]) from None


def _is_visible(resolver: Any, record: RecordSet, deadline: float) -> bool:
    seconds = min(QUERY_SECONDS, deadline - time.monotonic())
    if seconds <= 0:
        return False
    name = f"{PROBE_LABEL}{record.name[1:]}" if record.name.startswith("*.") else record.name
    try:
        answer = resolver.resolve(f"{name}.", record.type, lifetime=seconds, search=False)
    except dns.exception.Timeout:
        raise
    except dns.exception.DNSException:
        return False
    return {str(rdata.to_text()).rstrip(".").lower() for rdata in answer} == set(record.values)
