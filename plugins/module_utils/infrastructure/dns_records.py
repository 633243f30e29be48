# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The DNS records of a cluster: what is wanted, who owns a domain, and one atomic update from what is present. A store talks to a server.

A TXT record beside the records of a domain names the cluster that owns them, the token of its lock, and the names that it has. Each update
is conditional on that record being as it was read, so that no cluster changes the records of another one, no run those of a later run, and
no record is overwritten that was not made here.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..common.argument_values import show
from ..kube.errors import Invalid, KubeError
from ..lock.fenced_writer import FencedWriter
from ..lock.lease import LockLost

CLAIM_LABEL = "_openfleet-clusters"
CLAIM = re.compile(r"openfleet\.clusters owner=(\S+) token=([0-9]+) names=(\S*)")
LABEL = r"[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?"
DOMAIN = re.compile(rf"(?=.{{1,253}}$){LABEL}(\.{LABEL})*")
NAME = re.compile(rf"(\*|{LABEL})(\.{LABEL})*")
NAMES_LIMIT = 10  # of one domain: their list fits the 255 bytes of a TXT record
ADDRESS_TYPES = ("A", "AAAA", "CNAME")
TRIES = 5


class DnsError(KubeError):
    """The base of the errors of DNS servers. The site can correct what they are about, and the order need not be changed after that."""

    retryable = True


class DnsUnreachable(DnsError):
    """No answer of the server."""


class DnsRefused(DnsError):
    """The server answers, and does not do it."""


class DnsNameTaken(DnsError):
    """The domain belongs to another cluster, or has records that were not made here."""


class RecordsChanged(DnsError):
    """The records are not as they were read; read them again."""


@dataclass(frozen=True)
class RecordSet:
    """All records of one name and type. The name is absolute, without the last dot."""

    name: str
    type: str
    values: tuple[str, ...]
    ttl: int = 300

    def __str__(self) -> str:
        return f"{self.name} {self.ttl} {self.type} {' '.join(self.values)}"


@dataclass(frozen=True)
class Claim:
    """What the TXT record of a domain says: the owner, the token of its last writer, and the names relative to the domain."""

    owner: str
    token: int
    names: tuple[str, ...]

    @classmethod
    def of(cls, records: Iterable[RecordSet]) -> Claim | None:
        """The claim among these; DnsNameTaken where the record has another form."""
        found = next((record for record in records if record.type == "TXT"), None)
        if found is None:
            return None
        parts = CLAIM.fullmatch(found.values[0]) if len(found.values) == 1 else None
        if parts is None:
            raise DnsNameTaken(f"The TXT record {found.name} was not made by this collection: delete it, or use another domain.")
        return cls(parts[1], int(parts[2]), tuple(filter(None, parts[3].split(","))))

    def record(self, domain: str, ttl: int) -> RecordSet:
        text = f"openfleet.clusters owner={self.owner} token={self.token} names={','.join(self.names)}"
        return RecordSet(f"{CLAIM_LABEL}.{domain}", "TXT", (text,), ttl)


@dataclass(frozen=True)
class RecordUpdate:
    """One atomic change. It is refused unless the claim is `claimed`, or absent where that is None, and nothing has the names in `new`."""

    claimed: RecordSet | None
    claim: RecordSet | None
    new: tuple[str, ...] = ()
    deleted: tuple[RecordSet, ...] = ()
    replaced: tuple[RecordSet, ...] = ()
    written: tuple[RecordSet, ...] = ()


class RecordStore(Protocol):
    """A zone on a server."""

    def read(self, names: Sequence[str], types: Sequence[str]) -> list[RecordSet]:
        """The record sets of these names and types."""

    def write(self, update: RecordUpdate) -> None:
        """Do all of the update, or nothing; RecordsChanged where a condition of it does not hold."""


def wanted_records(domain: str, zone: str, records: Mapping[str, Sequence[str]], ttl: int) -> list[RecordSet]:
    """The record sets for targets by name: addresses, or one other name. Invalid with all mistakes."""
    named = {"zone": zone, "domain": domain}
    problems = [
        f"{key} must be a DNS name in lower-case letters, not {show(name)}" for key, name in named.items() if not DOMAIN.fullmatch(name)
    ]
    if not f".{domain}".endswith(f".{zone}"):
        problems.append(f"the domain {show(domain)} is not in the zone {show(zone)}")
    if len(records) > NAMES_LIMIT:
        problems.append(f"records has {len(records)} names, and {NAMES_LIMIT} is the most")
    found: list[RecordSet] = []
    for name, targets in records.items():
        if not NAME.fullmatch(name):
            problems.append(f"records must have names such as api or *.apps, not {show(name)}")
            continue
        try:
            found += _record_sets(f"{name}.{domain}", targets, ttl)
        except ValueError as error:
            problems.append(f"records.{name} {error}")
    if problems:
        raise Invalid(f"The DNS records cannot be written: {'; '.join(problems)}.", ["records"])
    return found


def _record_sets(name: str, targets: Sequence[str], ttl: int) -> list[RecordSet]:
    by_type: dict[str, list[str]] = {}
    for target in targets:
        by_type.setdefault(_type_of(target), []).append(_canonical(target))
    if not targets or ("CNAME" in by_type and len(targets) > 1):
        raise ValueError("must be a list of addresses, or of one name")
    return [RecordSet(name, kind, tuple(sorted(set(values))), ttl) for kind, values in sorted(by_type.items())]


def _type_of(target: str) -> str:
    try:
        return "A" if ipaddress.ip_address(target).version == 4 else "AAAA"
    except ValueError:
        if not DOMAIN.fullmatch(target.rstrip(".")):
            raise ValueError(f"must have addresses or a DNS name in lower-case letters, not {show(target)}") from None
        return "CNAME"


def _canonical(target: str) -> str:
    return str(ipaddress.ip_address(target)) if _type_of(target) != "CNAME" else target.rstrip(".")


def plan_update(
    domain: str,
    owner: str,
    token: int,
    wanted: Sequence[RecordSet],
    claimed: Sequence[RecordSet],
    present: Sequence[RecordSet],
    former: Collection[str] = (),
) -> RecordUpdate | None:
    """The update from what is present to what is wanted; None where that is the same. Nothing wanted releases the domain.

    `claimed` is the TXT record of the domain, and `present` all that the claim's names and the wanted names have. `former` owners had the
    cluster before, and what they claimed becomes the owner's.
    """
    claim, own = Claim.of(claimed), {f"{name}.{domain}" for name in _claimed_names(claimed)}
    if claim and claim.owner not in {owner, *former}:
        raise DnsNameTaken(f"The DNS names of {domain} belong to another cluster: use another name for the order, or another domain.")
    if claim and claim.token > token:
        raise LockLost(f"The DNS records of {domain} were written by a later run: its token is {claim.token}, that of this run {token}.")
    foreign = sorted({record.name for record in present if record.name not in own})
    if foreign and wanted:
        raise DnsNameTaken(f"{', '.join(foreign)} has DNS records that this collection did not make: delete them, or use another domain.")
    mine, names = [record for record in present if record.name in own], {record.name for record in wanted}
    kept = {(record.name, record.type) for record in wanted}
    deleted = tuple(record for record in mine if (record.name, record.type) not in kept)
    written = tuple(record for record in wanted if record not in mine)
    rewritten = {(record.name, record.type) for record in written}
    replaced = tuple(record for record in mine if (record.name, record.type) in rewritten)
    has_claim = claim is not None and claim.owner == owner
    is_claimed_as_wanted = has_claim if wanted else claim is None
    if not deleted and not written and is_claimed_as_wanted and own == names:
        return None
    relative = tuple(sorted(name.removesuffix(f".{domain}") for name in names))
    ttl = wanted[0].ttl if wanted else 0
    after = Claim(owner, token, relative).record(domain, ttl) if wanted else None
    return RecordUpdate(next(iter(claimed), None), after, tuple(sorted(names - own)), deleted, replaced, written)


def _claimed_names(claimed: Sequence[RecordSet]) -> tuple[str, ...]:
    claim = Claim.of(claimed)
    return claim.names if claim else ()


class DnsRecords:
    """The records of one domain for one cluster, in a store. Only the holder of the cluster's lock writes; in check mode nothing does.

    `former` are the owners that the cluster had before.
    """

    def __init__(
        self,
        store: RecordStore,
        domain: str,
        owner: str,
        writer: FencedWriter,
        check_mode: bool = False,
        former: Collection[str] = (),
    ) -> None:
        self._store = store
        self._domain = domain
        self._owner = owner
        self._former = former
        self._writer = writer
        self._check_mode = check_mode

    def apply(self, wanted: Sequence[RecordSet], kept: Collection[str] = ()) -> RecordUpdate | None:
        """Have exactly these records, or none, and of the `kept` names what the cluster has already. Returns what changed."""
        for _attempt in range(TRIES - 1):
            try:
                return self._apply_once(wanted, kept)
            except RecordsChanged:
                continue
        return self._apply_once(wanted, kept)

    def release(self) -> RecordUpdate | None:
        """Delete the records of the cluster. A domain that others have was never its own, and stays as it is."""
        try:
            return self.apply(())
        except DnsNameTaken:
            return None

    def _apply_once(self, wanted: Sequence[RecordSet], kept: Collection[str]) -> RecordUpdate | None:
        claimed = self._store.read([f"{CLAIM_LABEL}.{self._domain}"], ["TXT"])
        names = {record.name for record in wanted} | {f"{name}.{self._domain}" for name in _claimed_names(claimed)}
        present = self._store.read(sorted(names), ADDRESS_TYPES)
        own = {f"{name}.{self._domain}" for name in _claimed_names(claimed)} & {*kept}
        wanted = [*wanted, *(record for record in present if record.name in own)]
        update = plan_update(self._domain, self._owner, self._writer.token, wanted, claimed, present, self._former)
        if update and not self._check_mode:
            self._writer.verify()
            self._store.write(update)
        return update
