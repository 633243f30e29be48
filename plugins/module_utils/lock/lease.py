# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lock of an order: a Lease that one run holds, renews and releases; it expires when its run dies.

The leader of the event sources holds a Lease of the same form, of the kind `leader`.

Assumptions about clocks: only the API server's clock counts, as its `Date` header shows it. That is up to a second behind, so a renewal is
dated one second later, and rounding never frees a Lease early. Between two answers a monotonic clock continues from the last one. Where a
server sends no Date, a Lease counts as expired once it was observed unchanged for its whole duration on a monotonic clock.

`leaseTransitions` is the fencing token: it grows with each new holder and never shrinks, because a released lease is emptied and kept.
"""

from __future__ import annotations

import datetime
import random
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Conflict, KubeError, NotFound

API_VERSION = "coordination.k8s.io/v1"
DURATION = 60
POLL_SECONDS = 1.0
SECOND = datetime.timedelta(seconds=1)
LEASE_NAME = re.compile("cluster-(.+)-lock")
ORDER, LEADER = "order", "leader"  # the kinds of locks
# The token of a lock without a Lease, see `last_lock`: higher than any Lease can count.
LAST_TOKEN = 2**31


class LockHeld(KubeError):
    """Another run holds the lock. That is no failure of the order: the other run does the work."""

    retryable = True

    def __init__(self, state: LockState) -> None:
        super().__init__(f"The lock of {state.namespace}/{state.order} is held by {state.holder}; it is released when that run ends.")
        self.state = state


class LockLost(KubeError):
    """Another run holds the lock now, so nothing may be written any more; that run does the work."""


@dataclass(frozen=True)
class LockState:
    """The state of a Lease. `holder` is empty when the lock is free."""

    namespace: str
    order: str
    holder: str = ""
    token: int = 0
    duration: int = DURATION
    acquired: str = ""
    renewed: datetime.datetime | None = None
    version: str = ""
    kind: str = ORDER

    def expires(self) -> datetime.datetime | None:
        return self.renewed + datetime.timedelta(seconds=self.duration) if self.renewed else None

    def expired_at(self, now: datetime.datetime | None) -> datetime.datetime | None:
        """When it expired without a release; None where it did not, or where no clock shows it."""
        expires = self.expires()
        return expires if self.holder and now is not None and expires is not None and now > expires else None

    def is_free(self, now: datetime.datetime | None) -> bool:
        """Whether it may be taken, as far as a clock shows."""
        return not self.holder or self.expired_at(now) is not None


@dataclass(frozen=True)
class Lock:
    """A held lock: its holder, and the token that each write carries."""

    namespace: str
    order: str
    holder: str
    token: int
    duration: int
    acquired: str
    version: str
    kind: str = ORDER

    @property
    def has_lease(self) -> bool:
        return self.token < LAST_TOKEN

    def as_dict(self) -> dict[str, Any]:
        """For the variables of a playbook, and back by `Lock(**variables)`. Playbooks hold the locks of orders only."""
        return {name: value for name, value in vars(self).items() if name != "kind"}


def lease_name(order: str, kind: str = ORDER) -> str:
    return f"cluster-{order}-lock" if kind == ORDER else f"{order}-{kind}"


def labels(kind: str = ORDER) -> dict[str, str]:
    """The labels that select the locks among all Leases of a hub, most of which belong to nodes and controllers."""
    return {"openfleet.clusters/lock": kind}


def read(kube: Kube, namespace: str, order: str, kind: str = ORDER) -> LockState:
    """The state of an order's lock; one that was never taken is free and has token 0."""
    lease = kube.find(API_VERSION, "Lease", lease_name(order, kind), namespace)
    return _state(namespace, order, lease, kind) if lease else LockState(namespace, order, kind=kind)


def read_all(kube: Kube, namespace: str | None = None) -> list[LockState]:
    """The state of every lock, in one namespace or in all."""
    found = map(state_of, kube.list_all(API_VERSION, "Lease", namespace))
    return [state for state in found if state]


def state_of(lease: Object) -> LockState | None:
    """The state of a Lease that is the lock of an order; None for any other Lease."""
    name = LEASE_NAME.fullmatch(lease["metadata"]["name"])
    return _state(lease["metadata"]["namespace"], name[1], lease) if name else None


def acquire(
    kube: Kube,
    namespace: str,
    order: str,
    holder: str,
    duration: int = DURATION,
    wait_timeout: float = 0,
    seen: LockState | None = None,
    kind: str = ORDER,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Lock:
    """Take the lock, waiting up to `wait_timeout` seconds; LockHeld if another run still holds it. Taking it twice renews it.

    `seen` is what `read` returned just now, and saves the first request.
    """
    deadline = clock() + wait_timeout
    seen_version, seen_since = "", clock()
    while True:
        state, seen = seen or read(kube, namespace, order, kind), None
        if state.version != seen_version:
            seen_version, seen_since = state.version, clock()
        now = kube.server_time()
        stale = now is None and clock() - seen_since > state.duration
        try:
            if state.holder == holder:
                # It may be about to expire.
                return renew(kube, _held(state))
            if stale or state.is_free(now):
                return _take(kube, state, holder, duration, now)
        except (Conflict, LockLost):
            # Another run was faster; the next read shows which.
            continue
        except NotFound:
            if not state.version:
                raise
            # The Lease was deleted since; without one before, the namespace is missing.
            continue
        if clock() >= deadline:
            raise LockHeld(state)
        sleep(min(POLL_SECONDS, max(0.0, deadline - clock())) * random.uniform(0.5, 1.0))  # noqa: S311 - spreads contenders, keeps no secret


def acquire_all(
    kube: Kube, orders: Iterable[tuple[str, str]], holder: str, duration: int = DURATION, wait_timeout: float = 0
) -> list[Lock]:
    """Take the locks of several orders, each a namespace and a name: all of them, or LockHeld and none.

    All runs take them in the same order, so that two never wait for each other. Those already held are renewed meanwhile.
    """
    deadline = time.monotonic() + wait_timeout
    held: list[Lock] = []
    new: list[Lock] = []
    renewed = time.monotonic()

    def pause(seconds: float) -> None:
        nonlocal renewed
        time.sleep(seconds)
        if time.monotonic() - renewed > duration / 3:
            held[:] = [renew(kube, lock) for lock in held]
            renewed = time.monotonic()

    try:
        for namespace, order in sorted(set(orders)):
            left = max(0.0, deadline - time.monotonic())
            was_ours = read(kube, namespace, order).holder == holder
            held.append(acquire(kube, namespace, order, holder, duration, left, sleep=pause))
            if not was_ours:
                new.append(held[-1])
    except KubeError:
        for lock in new:
            release(kube, lock)
        raise
    return held


def last_lock(namespace: str, order: str, holder: str) -> Lock:
    """The lock of a run that deletes an order in a namespace that is itself being deleted: no Lease can be created there any more.

    Why that is safe, though two such runs may work at once: deleting twice is harmless. A run that held the lock before, to create or
    change the cluster, cannot renew it once its Lease is deleted, and `verify` refuses each of its tasks from then on. A request it has
    already sent may still arrive: then the cluster is observed, the order keeps its finalizers, and the next run deletes it too. No run
    follows: a namespace that is being deleted never comes back. A new one of that name has other orders, and a Lease as soon as a run
    locks one of them: that ends this lock.
    """
    return Lock(namespace, order, holder, LAST_TOKEN, DURATION, "", "")


def predict(state: LockState, holder: str, duration: int, now: datetime.datetime | None, wait_timeout: float = 0) -> Lock:
    """The lock that `acquire` would return, LockHeld where it would raise it. It assumes that a wait would succeed."""
    if state.holder == holder:
        return _held(state)
    if wait_timeout <= 0 and not state.is_free(now):
        raise LockHeld(state)
    return Lock(state.namespace, state.order, holder, state.token + 1, duration, "", "")


def renew(kube: Kube, lock: Lock) -> Lock:
    """Hold the lock for another duration; LockLost if another run holds it."""
    return _write_as_holder(kube, lock, lock.holder)


def release_held(kube: Kube, namespace: str, order: str, holder: str) -> bool:
    """Release a lock of which only the holder is known. False, and nothing changed, if this holder does not hold it."""
    state = read(kube, namespace, order)
    return state.holder == holder and release(kube, _held(state))


def release(kube: Kube, lock: Lock) -> bool:
    """Release the lock. False, and nothing changed, if another run holds it."""
    if not lock.has_lease:
        return False
    try:
        _write_as_holder(kube, lock, "")
    except LockLost:
        return False
    return True


def verify(kube: Kube, lock: Lock) -> LockState:
    """Raise LockLost unless the lock is still held. Call it right before a write."""
    state = read(kube, lock.namespace, lock.order, lock.kind)
    if (state.holder, state.token) != ((lock.holder, lock.token) if lock.has_lease else ("", 0)):
        raise LockLost(
            f"The lock of {lock.namespace}/{lock.order} is lost: it has token {state.token}, holder {state.holder or 'none'}. "
            "Nothing was written; the run that holds it continues."
        )
    return state


def _take(kube: Kube, state: LockState, holder: str, duration: int, now: datetime.datetime | None) -> Lock:
    acquired = _micro_time(now or datetime.datetime.now(datetime.UTC))
    lock = Lock(state.namespace, state.order, holder, state.token + 1, duration, acquired, state.version, state.kind)
    return _write(kube, lock, now)


def _write_as_holder(kube: Kube, lock: Lock, holder: str) -> Lock:
    """Compare and swap on the known version; where that is not the newest, verify that the lock is still held and try again."""
    if not lock.version:
        lock = replace(lock, version=verify(kube, lock).version)
    while True:
        try:
            return _write(kube, replace(lock, holder=holder), kube.server_time())
        except (Conflict, NotFound):
            lock = replace(lock, version=verify(kube, lock).version)


def _held(state: LockState) -> Lock:
    return Lock(state.namespace, state.order, state.holder, state.token, state.duration, state.acquired, state.version, state.kind)


def _state(namespace: str, order: str, lease: Object, kind: str = ORDER) -> LockState:
    spec = lease.get("spec") or {}
    renewed = spec.get("renewTime")
    return LockState(
        namespace,
        order,
        holder=spec.get("holderIdentity") or "",
        token=int(spec.get("leaseTransitions") or 0),
        duration=int(spec.get("leaseDurationSeconds") or DURATION),
        acquired=spec.get("acquireTime") or "",
        renewed=datetime.datetime.fromisoformat(renewed) if renewed else None,
        version=lease["metadata"]["resourceVersion"],
        kind=kind,
    )


def _write(kube: Kube, lock: Lock, now: datetime.datetime | None) -> Lock:
    """Write the lock's Lease, if it is at the version that the lock knows. Without a holder it is emptied, and keeps its token."""
    renewed = _micro_time((now or datetime.datetime.now(datetime.UTC)) + SECOND)
    held = {"holderIdentity": lock.holder, "acquireTime": lock.acquired, "renewTime": renewed}
    spec = {"leaseDurationSeconds": lock.duration, "leaseTransitions": lock.token} | (held if lock.holder else dict.fromkeys(held))
    metadata = {"name": lease_name(lock.order, lock.kind), "namespace": lock.namespace, "labels": labels(lock.kind)}
    lease: Object = {"apiVersion": API_VERSION, "kind": "Lease", "metadata": metadata}
    if lock.version:
        # Not replaced as a whole: that would create a deleted Lease again, and remove labels of other controllers.
        seen = lease | {"metadata": metadata | {"resourceVersion": lock.version}}
        written = kube.patch(seen, {"spec": spec, "metadata": {"labels": labels(lock.kind)}})
    else:
        written = kube.create(lease | {"spec": spec})
    return replace(lock, version=written["metadata"]["resourceVersion"])


def _micro_time(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
