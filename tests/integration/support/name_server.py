"""A real DNS server on loopback: Knot with one zone, which accepts updates that are signed with its key."""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dns.exception
import dns.message
import dns.query
import dns.rdatatype
import dns.tsigkeyring
import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox import debian
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.launcher import die_with_me
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port

ZONE = "example.com"
KEY_NAME = "openfleet."
CONFIGURATION = """
server:
    rundir: "{folder}"
    listen: 127.0.0.1@{port}
log:
  - target: stderr
    any: info
database:
    storage: "{folder}"
key:
  - id: {key_name}
    algorithm: hmac-sha256
    secret: {key}
acl:
  - id: update
    key: {key_name}
    action: [update, transfer]
zone:
  - domain: {zone}
    storage: "{folder}"
    file: zone
    acl: update
"""
RECORDS = """
@ 3600 SOA ns hostmaster 1 3600 600 86400 1
@ 3600 NS ns
ns 3600 A 127.0.0.1
"""


@dataclass(frozen=True)
class NameServer:
    """Where it is, and the key that may update its zone."""

    port: int
    key: str

    def values(self, name: str, kind: str = "A") -> set[str]:
        """What the server answers."""
        answer = dns.query.tcp(dns.message.make_query(f"{name}.", kind), "127.0.0.1", port=self.port, timeout=60)
        return {item.to_text() for rrset in answer.answer if rrset.rdtype == dns.rdatatype.from_text(kind) for item in rrset}

    def records(self) -> set[str]:
        """The whole zone, without the serial number that grows with each update."""
        keyring = dns.tsigkeyring.from_text({KEY_NAME: self.key})
        transfer = dns.query.xfr(
            "127.0.0.1", ZONE, port=self.port, keyring=keyring, keyname=KEY_NAME, keyalgorithm="hmac-sha256", timeout=60
        )
        sets = [rrset for message in transfer for rrset in message.answer if rrset.rdtype != dns.rdatatype.SOA]
        return {rrset.to_text() for rrset in sets}

    @property
    def serial(self) -> int:
        """It grows with each update."""
        (text,) = self.values(ZONE, "SOA")
        return int(text.split()[2])


@contextlib.contextmanager
def name_server(folder: Path) -> Iterator[NameServer]:
    program = debian.find(debian.KNOT)
    if program is None:
        pytest.skip("a DNS server, knotd: install knot")
    key, port = base64.b64encode(secrets.token_bytes(32)).decode(), free_port()
    settings = {"folder": folder, "port": port, "key": key, "key_name": KEY_NAME, "zone": ZONE}
    (folder / "knot.conf").write_text(CONFIGURATION.format(**settings), encoding="utf-8")
    (folder / "zone").write_text(RECORDS, encoding="utf-8")
    command = die_with_me([program.path, "-c", folder / "knot.conf", "-s", folder / "knot.sock"])
    with open(folder / "knot.log", "wb") as log:
        process = subprocess.Popen(command, env=os.environ | program.environment, stdout=log, stderr=log, cwd=folder)
    try:
        server = NameServer(port, key)
        until(lambda: _answers(process, folder, server), "the DNS server answers")
        yield server
    finally:
        process.terminate()
        process.wait(30)


def _answers(process: subprocess.Popen[bytes], folder: Path, server: NameServer) -> bool:
    assert process.poll() is None, (folder / "knot.log").read_text(encoding="utf-8")
    with contextlib.suppress(OSError, dns.exception.Timeout), socket.create_connection(("127.0.0.1", server.port), 1):
        return bool(server.values(f"ns.{ZONE}"))
    return False
