# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The networks, VLANs and addresses of clusters, from AddressPools in the site's namespace, where no tenant has a permission.

The status of a pool has what each cluster has, by the uid of its order. Each change is a compare-and-swap on the pool's resourceVersion,
right after the lock of the order was verified, so that no two clusters have the same entry. An order that is gone is found by `orphaned`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from ..common.ip_networks import Network, overlap, parse_network
from ..common.timestamps import format_time
from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Conflict, Invalid, KubeError, NotFound
from ..kube.kinds import register
from ..lock.fenced_writer import Change, FencedWriter
from ..lock.lease import LockLost
from .cluster_owner import ClusterOwner
from .pool_ranges import PoolRange, parse_range

GROUP, KIND = "infrastructure.openfleet.io", "AddressPool"
API_VERSION = f"{GROUP}/v1alpha1"
COUNT_LIMIT = 256
FREE_LIMIT = 1_000_000
SWAP_SECONDS = 60.0  # for as long a compare-and-swap is repeated: many orders may use one pool at once
NOUNS = {"Network": "network", "VLAN": "VLAN", "Address": "address"}

Result = TypeVar("Result")

register(GROUP, KIND, "addresspools")


class PoolNotFound(KubeError):
    """The site has to create the pool, or to name another."""

    retryable = True


class InvalidPool(KubeError):
    """The site has to correct the pool."""

    retryable = True


class PoolExhausted(KubeError):
    """The pool has not enough free entries."""

    retryable = True


@dataclass(frozen=True)
class PoolRequest:
    """How many entries of a pool a cluster needs. None of them overlaps with the ranges in `disjoint_from`."""

    pool: str
    count: int = 1
    disjoint_from: tuple[Network, ...] = ()

    @classmethod
    def of(cls, pool: str, count: int, disjoint_from: Sequence[str]) -> PoolRequest:
        if not 1 <= count <= COUNT_LIMIT:
            raise Invalid(f"count of the pool {pool} must be between 1 and {COUNT_LIMIT}, not {count}.", ["count"])
        try:
            return cls(pool, count, tuple(map(parse_network, disjoint_from)))
        except ValueError as error:
            raise Invalid(f"disjoint_from {error}.", ["disjoint_from"]) from None


@dataclass(frozen=True)
class PoolChange:
    """What changed in one pool for one cluster."""

    pool: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def action(self) -> str:
        if self.before == self.after:
            return "unchanged"
        return "changed" if self.before and self.after else "created" if self.after else "deleted"

    @property
    def diff(self) -> dict[str, str]:
        header = f"{KIND} {self.pool}"
        before, after = (f"{json.dumps(list(values), indent=2)}\n" if values else "" for values in (self.before, self.after))
        return {"before_header": header, "after_header": header, "before": before, "after": after}


@dataclass(frozen=True)
class Allocation:
    """The entries of one cluster in one pool."""

    owner: ClusterOwner
    values: tuple[str, ...]
    token: int = 0
    orphaned_since: str = ""

    @classmethod
    def from_status(cls, status: Mapping[str, Any]) -> Allocation:
        owner = ClusterOwner(*(status.get(name, "") for name in ("namespace", "name", "uid", "group")))
        return cls(owner, tuple(status.get("values", ())), status.get("token", 0), status.get("orphanedSince", ""))

    def to_status(self) -> Object:
        named = {name: getattr(self.owner, name) for name in ("namespace", "name", "uid", "group")}
        return {**{name: value for name, value in named.items() if value}, "token": self.token, "values": list(self.values)}


@dataclass(frozen=True)
class AddressPool:
    """A pool as stored, and what is computed from it. It sends no requests."""

    name: str
    type: str
    ranges: tuple[PoolRange, ...]
    allocations: Mapping[str, Allocation] = field(default_factory=dict)
    used_elsewhere: tuple[Network, ...] = ()  # what clusters kept of other pools when their ranges were removed
    raw: Object = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_object(cls, item: Object) -> AddressPool:
        """Parse the object; InvalidPool where its ranges are none, or overlap."""
        name, spec = item["metadata"]["name"], item["spec"]
        try:
            ranges = tuple(parse_range(spec["type"], text, spec.get("prefixLength")) for text in spec["ranges"])
        except ValueError as error:
            raise InvalidPool(f"The {KIND} {name} of the site cannot be used: {error}.") from None
        if pair := _overlapping(ranges, ranges):
            raise InvalidPool(f"The {KIND} {name} of the site cannot be used: its ranges {pair[0]} and {pair[1]} overlap.")
        return cls(name, spec["type"], ranges, allocations_of(item), raw=item)

    def choose(self, owner: ClusterOwner, request: PoolRequest) -> tuple[str, ...]:
        """The entries for the cluster: those that it has, and the first free ones. PoolExhausted where there are too few."""
        present = self.allocations.get(owner.key)
        values = list(present.values) if present else []  # also what is too much: it is in use until the cluster is gone
        taken = {value for allocation in self.allocations.values() for value in allocation.values}
        if self.type != "VLAN":
            self._require_disjoint(values, request.disjoint_from)
        apart_from = (*request.disjoint_from, *self.used_elsewhere)
        entries = itertools.chain.from_iterable(each.entries(apart_from) for each in self.ranges)
        values += itertools.islice((value for value in entries if value not in taken), max(0, request.count - len(values)))
        if len(values) < request.count:
            raise PoolExhausted(self._shortage(request, len(values) - len(present.values if present else ())))
        return tuple(values)

    def _require_disjoint(self, values: Sequence[str], networks: Sequence[Network]) -> None:
        """Of what the cluster has already: its other networks may have changed since."""
        for value, network in itertools.product(values, networks):
            if overlap(_as_network(value), network):
                raise Invalid(f"{value}, which the cluster has of the {KIND} {self.name}, overlaps with its network {network}.", [])

    def kept(self) -> list[Network]:
        """What clusters have of ranges that the pool does not have any more."""
        values = (value for allocation in self.allocations.values() for value in allocation.values)
        networks = [] if self.type == "VLAN" else [_as_network(value) for value in values]
        return [network for network in networks if not any(each.contains(network) for each in self.ranges)]

    def _shortage(self, request: PoolRequest, free: int) -> str:
        noun = NOUNS[self.type]
        apart = (
            f" that does not overlap with {', '.join(map(str, request.disjoint_from))}"
            if request.disjoint_from and self.type != "VLAN"
            else ""
        )
        total = sum(each.size for each in self.ranges)
        return (
            f"The {KIND} {self.name} has {max(free, 0)} of {total} {noun}{'es' if noun == 'address' else 's'} free{apart}, and the cluster "
            f"needs {request.count}: ask the site's operator to add a range to it."
        )


class AddressPools:
    """The pools of one site. Without a `writer` nothing can be allocated; in check mode nothing is written."""

    def __init__(self, kube: Kube, namespace: str, writer: FencedWriter | None = None, check_mode: bool = False) -> None:
        self._kube = kube
        self._namespace = namespace
        self._writer = writer
        self._check_mode = check_mode

    def allocate(self, owner: ClusterOwner, requests: Sequence[PoolRequest]) -> list[PoolChange]:
        """What the cluster needs of all pools, or nothing of any. A second call changes nothing."""
        items = self._read()
        for request in requests:  # all of them before the first write
            self._pool(items, request.pool).choose(owner, request)
        done: list[PoolChange] = []
        try:
            done.extend(self._swap(owner, request.pool, request) for request in requests)
        except KubeError:
            for change in done:
                with contextlib.suppress(KubeError):  # what stays belongs to the order, whose next run finds it
                    self._swap(owner, change.pool, change.before)
            raise
        return done

    def release(self, owner: ClusterOwner, pools: Iterable[str] | None = None) -> list[PoolChange]:
        """Release what the cluster has of these pools, or of all. Call it once the cluster is gone."""
        held = [item["metadata"]["name"] for item in self._read() if owner.key in allocations_of(item)]
        named = None if pools is None else set(pools)
        return [self._swap(owner, name, ()) for name in held if named is None or name in named]

    def transfer(self, former: str, owner: ClusterOwner) -> list[Change]:
        """Give the entries of the order with the uid `former` to its cluster's new order."""
        held = [item["metadata"]["name"] for item in self._read() if former in allocations_of(item)]
        return [self._repeated(functools.partial(self._transfer_once, name, former, owner)) for name in held]

    def _transfer_once(self, name: str, former: str, owner: ClusterOwner) -> Change:
        if self._writer is None:
            raise AssertionError("a change needs the writer of a lock")
        item = self._named(self._read(), name)
        before = allocations_of(item)
        both = [before[key] for key in (owner.key, former) if key in before]
        values = tuple(dict.fromkeys(value for allocation in both for value in allocation.values))
        after = {key: value for key, value in before.items() if key != former} | {owner.key: Allocation(owner, values, self._writer.token)}
        if not self._check_mode:
            self._writer.verify()
            self._write(item, after)
        return Change("changed", *(_shown(item, allocations, {former, owner.key}) for allocations in (before, after)))

    def mark_orphaned(self, pool: str, owner: ClusterOwner, now: datetime) -> None:
        """Record since when the order of an allocation is known to be gone."""
        item = self._find(pool)
        if item and owner.key in allocations_of(item):
            self._patch(item, {"allocations": {owner.key: {"orphanedSince": format_time(now)}}})

    def release_orphaned(self, pool: str, owner: ClusterOwner) -> None:
        """Release what a deleted order has left. No lock is needed: no run works for its uid any more."""
        self._repeated(lambda: self._release_once(pool, owner))

    def _release_once(self, pool: str, owner: ClusterOwner) -> None:
        item = self._find(pool)
        if item and owner.key in allocations_of(item):
            self._write(item, {key: value for key, value in allocations_of(item).items() if key != owner.key})

    def _swap(self, owner: ClusterOwner, name: str, wanted: PoolRequest | tuple[str, ...]) -> PoolChange:
        return self._repeated(lambda: self._swap_once(owner, name, wanted))

    def _swap_once(self, owner: ClusterOwner, name: str, wanted: PoolRequest | tuple[str, ...]) -> PoolChange:
        """Have what is requested, or exactly these entries. The latter works for a pool with mistakes too."""
        if self._writer is None:
            raise AssertionError("a change needs the writer of a lock")
        items = self._read()
        after = self._pool(items, name).choose(owner, wanted) if isinstance(wanted, PoolRequest) else wanted
        item = self._named(items, name)
        allocations, token = allocations_of(item), self._writer.token
        present = allocations.pop(owner.key, None)
        before = present.values if present else ()
        if present and present.token > token:
            raise LockLost(f"{KIND} {name} was written by a later run: its token is {present.token}, that of this run {token}.")
        if before != after and not self._check_mode:
            # Between the read and the write: a run that lost the lock since then meets the new version of the pool.
            self._writer.verify()
            self._write(item, allocations | ({owner.key: Allocation(owner, after, token)} if after else {}))
        return PoolChange(name, before, after)

    def _repeated(self, attempt: Callable[[], Result]) -> Result:
        """Repeat after a conflict, at random times: with those of other orders only one write of a pool succeeds at a time."""
        deadline, pause = time.monotonic() + SWAP_SECONDS, 0.02
        while True:
            try:
                return attempt()
            except Conflict as error:
                if not error.retryable or time.monotonic() >= deadline:
                    raise
                time.sleep(random.uniform(0, pause))  # noqa: S311 - no secret
                pause = min(1.0, pause * 1.5)

    def _write(self, item: Object, allocations: Mapping[str, Allocation]) -> None:
        before = allocations_of(item)
        changed: Object = {key: value.to_status() for key, value in allocations.items() if before.get(key) != value}
        changed |= dict.fromkeys(key for key in before if key not in allocations)
        self._patch(item, {"allocations": changed, **_counts(item, allocations)})

    def _patch(self, item: Object, status: Object) -> None:
        self._kube.patch(item, {"status": status}, subresource="status")

    def _find(self, name: str) -> Object | None:
        return next((item for item in self._read() if item["metadata"]["name"] == name), None)

    def _read(self) -> list[Object]:
        return read_pools(self._kube, self._namespace)

    def _pool(self, items: Sequence[Object], name: str) -> AddressPool:
        """The pool of that name; InvalidPool where it overlaps with another one, from which a cluster could have the same addresses."""
        item = self._named(items, name)
        pool = AddressPool.from_object(item)
        kept: list[Network] = []
        for other in _readable(items, item):
            if "VLAN" in (pool.type, other.type):
                continue  # the same VLAN numbers may belong to separate switches
            if pair := _overlapping(pool.ranges, other.ranges):
                pools = f"{KIND}s {name} and {other.name}"
                raise InvalidPool(f"The {pools} of the site cannot be used: their ranges {pair[0]} and {pair[1]} overlap.")
            kept += other.kept()
        return replace(pool, used_elsewhere=tuple(kept))

    def _named(self, items: Sequence[Object], name: str) -> Object:
        item = next((item for item in items if item["metadata"]["name"] == name), None)
        if item is None:
            raise PoolNotFound(f"The site has no {KIND} {name} in its namespace {self._namespace}: create it, or name another.")
        return item


def _readable(items: Sequence[Object], apart_from: Object) -> Iterator[AddressPool]:
    """The other pools. One with mistakes has nothing to allocate, and keeps no other pool from being used."""
    for item in items:
        if item is not apart_from:
            with contextlib.suppress(InvalidPool):
                yield AddressPool.from_object(item)


def read_pools(kube: Kube, namespace: str) -> list[Object]:
    """All pools of the site; none where the CRD is not installed."""
    try:
        return list(kube.list_all(API_VERSION, KIND, namespace))
    except NotFound:
        return []


def allocations_of(item: Object) -> dict[str, Allocation]:
    """What each cluster has of the pool, by its key."""
    return {key: Allocation.from_status(status) for key, status in ((item.get("status") or {}).get("allocations") or {}).items()}


def _counts(item: Object, allocations: Mapping[str, Allocation]) -> Object:
    """For the columns. What is free of a pool with mistakes is not known."""
    allocated = sum(len(allocation.values) for allocation in allocations.values())
    try:
        size = sum(each.size for each in AddressPool.from_object(item).ranges)
    except InvalidPool:
        return {"allocated": allocated, "free": None}
    return {"allocated": allocated, "free": max(0, min(FREE_LIMIT, size - allocated))}


def _shown(item: Object, allocations: Mapping[str, Allocation], keys: set[str]) -> Object:
    """The pool with these allocations only, for a diff."""
    return item | {"allocations": {key: list(value.values) for key, value in allocations.items() if key in keys}}


def orphaned(items: Iterable[Object], group: str, uids: set[str]) -> list[tuple[Object, Allocation]]:
    """The allocations of orders of this API group that are not among these, with the pools that they are in."""
    found = ((item, allocation) for item in items for allocation in allocations_of(item).values())
    return [
        (item, allocation)
        for item, allocation in found
        if allocation.owner.uid and allocation.owner.uid not in uids and allocation.owner.group in ("", group)
    ]


def _overlapping(ranges: Sequence[PoolRange], others: Sequence[PoolRange]) -> tuple[PoolRange, PoolRange] | None:
    pairs = ((one, other) for one in ranges for other in others if one is not other)
    return next((pair for pair in pairs if pair[0].overlaps(pair[1])), None)


def _as_network(value: str) -> Network:
    return parse_network(value if "/" in value else f"{value}/{128 if ':' in value else 32}")
