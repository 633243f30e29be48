# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A zone on a DNS server with dynamic updates (RFC 2136), signed with TSIG where the site has a key. Each update is one message.

The prerequisites of the message are the conditions of the update: the server checks them and does all or nothing.
"""

from __future__ import annotations

import base64
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from .dns_records import DnsRefused, DnsUnreachable, RecordsChanged, RecordSet, RecordUpdate
from .dns_third_party import dns, require_dnspython
from .errors import SiteMistake

REQUEST_SECONDS = 5.0
TOTAL_SECONDS = 30.0
KEYS = ("name", "secret", "algorithm")
ALGORITHM = "hmac-sha256"
CONDITIONS = ("YXDOMAIN", "YXRRSET", "NXDOMAIN", "NXRRSET")  # answers to a prerequisite that does not hold


class Rfc2136Zone:
    """The zone. `key` is a TSIG key as in `KEYS`, or empty for a server that trusts addresses."""

    def __init__(self, server: str, port: int, zone: str, key: Mapping[str, str]) -> None:
        require_dnspython()
        self._server, self._port, self._zone = server, port, zone
        self._key = _tsig_key(key) if key else None
        self._deadline = time.monotonic() + TOTAL_SECONDS
        self._address = ""

    @property
    def servers(self) -> list[str]:
        """Where the records can be verified."""
        return [f"[{self._host()}]:{self._port}"]

    def read(self, names: Sequence[str], types: Sequence[str]) -> list[RecordSet]:
        asked = [kind for kind in types if kind != "CNAME"]  # an answer to any type has the CNAME of the name
        found = [record for name in names for kind in asked for record in self._query(name, kind) if record.type in types]
        return list(dict.fromkeys(found))

    def _query(self, name: str, kind: str) -> list[RecordSet]:
        answer = self._send(dns.message.make_query(name, kind))
        code = dns.rcode.to_text(answer.rcode())
        if code not in ("NOERROR", "NXDOMAIN"):
            raise DnsRefused(f"{self._called} answers {code} to a query for {name}: check that it serves the zone {self._zone}.")
        return [_record_set(rrset) for rrset in answer.answer if rrset.name == dns.name.from_text(name)]

    def write(self, update: RecordUpdate) -> None:
        message = dns.update.UpdateMessage(self._zone)
        if self._key:
            message.use_tsig(self._key)
        if update.claimed:
            message.present(_absolute(update.claimed.name), *_rdata(update.claimed))
        elif update.claim:
            message.absent(_absolute(update.claim.name))
        for name in update.new:
            message.absent(_absolute(name))
        written = [*update.written, *([update.claim] if update.claim else [])]
        removed = [*update.deleted, *written, *([update.claimed] if update.claimed else [])]
        for record in removed:
            message.delete(_absolute(record.name), record.type)
        for record in written:
            message.add(_absolute(record.name), record.ttl, *_rdata(record))
        code = dns.rcode.to_text(self._send(message).rcode())
        if code in CONDITIONS:
            raise RecordsChanged(f"The records of the zone {self._zone} were changed at the same time.")
        if code != "NOERROR":
            raise DnsRefused(
                f"{self._called} refuses the update of the zone {self._zone} ({code}): check that it serves the zone, and that the key "
                "may update it."
            )

    @property
    def _called(self) -> str:
        return f"The DNS server {self._server} port {self._port}"

    def _host(self) -> str:
        if not self._address:
            try:
                self._address = str(socket.getaddrinfo(self._server, self._port, type=socket.SOCK_STREAM)[0][4][0])
            except OSError as error:
                raise DnsUnreachable(
                    f"{self._called} cannot be found ({error.strerror}): check its name in the site's settings."
                ) from error
        return self._address

    def _send(self, message: Any) -> Any:
        seconds = min(REQUEST_SECONDS, self._deadline - time.monotonic())
        try:
            if seconds <= 0:
                raise dns.exception.Timeout
            return dns.query.tcp(message, self._host(), timeout=seconds, port=self._port)
        except (OSError, EOFError, dns.exception.Timeout) as error:
            reason = getattr(error, "strerror", None) or "no answer in time"
            raise DnsUnreachable(f"{self._called} does not answer ({reason}): check its address and the network.") from error
        except dns.exception.DNSException as error:
            # Only the type: the message of the library may repeat what was sent.
            raise DnsRefused(f"{self._called} does not accept the message ({type(error).__name__}): check its TSIG key.") from error


def _tsig_key(key: Mapping[str, str]) -> Any:
    try:
        secret = base64.b64decode(key["secret"], validate=True)
        if not secret:
            raise ValueError
        return dns.tsig.Key(dns.name.from_text(key["name"]), secret, key.get("algorithm", ALGORITHM))
    except (KeyError, ValueError, dns.exception.DNSException):
        raise SiteMistake("The Secret of the DNS server has no TSIG key: it needs name, and secret in base64.", ["secret"]) from None


def _record_set(rrset: Any) -> RecordSet:
    kind = dns.rdatatype.to_text(rrset.rdtype)
    name = rrset.name.to_text(omit_final_dot=True).lower()
    return RecordSet(name, kind, tuple(sorted(_value(rdata) for rdata in rrset)), rrset.ttl)


def _value(rdata: Any) -> str:
    if rdata.rdtype == dns.rdatatype.TXT:
        return b"".join(rdata.strings).decode(errors="replace")
    return str(rdata.to_text()).rstrip(".").lower()


def _rdata(record: RecordSet) -> list[Any]:
    values = [f'"{value}"' if record.type == "TXT" else f"{value}." if record.type == "CNAME" else value for value in record.values]
    return [dns.rdata.from_text("IN", record.type, value) for value in values]


def _absolute(name: str) -> Any:
    return dns.name.from_text(name)
