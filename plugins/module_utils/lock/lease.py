# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lock of an order: a Lease that one run holds, renews and releases; it expires when its run dies.

All Leases are in the site's own namespace, where no tenant has a permission.

The leader of the event sources holds a Lease of the same form, of the kind `leader`.

Assumptions about clocks: only the API server's clock counts, as its `Date` header shows it. That is up to a second behind, so a renewal is
dated one second later, and rounding never frees a Lease early. Several API servers of a hub may differ by `SKEW`: a Lease is taken over
only that much after it has expired, and its holder stops writing `MARGIN` before. Between two answers our own clock continues from the
last one, time asleep included. Where a server sends no Date, a Lease counts as expired once it was observed unchanged for its whole
duration on that clock.

`leaseTransitions` is the fencing token: it grows with each new holder and never shrinks, because a released lease is emptied and kept.
"""

from __future__ import annotations

import datetime
import hashlib
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from ..common.clock import boottime
from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Conflict, KubeError, NotFound

API_VERSION = "coordination.k8s.io/v1"
DURATION = 60
POLL_SECONDS = 1.0
SECOND = datetime.timedelta(seconds=1)
SKEW = datetime.timedelta(seconds=5)  # by how much the clocks of a hub's API servers may differ
MARGIN = datetime.timedelta(seconds=1)  # for clocks that run at slightly different speeds
LARGEST_COUNT = 2**31 - 1  # of the API
EARLIEST, LATEST = 2000, 2200  # years between which a renewal is believed
ORDER, LEADER = "order", "leader"  # the kinds of locks
SITE_NAMESPACE = "openfleet-system"
ORDER_ANNOTATION = "openfleet.clusters/order"  # on the Lease of an order: <namespace>/<name>
NAME_LIMIT = 253
# Recent enough that the seconds since then fit the 31 bits of a Lease's count.
TOKEN_EPOCH = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC).timestamp()


class LockHeld(KubeError):
    """Another run holds the lock. That is no failure of the order: the other run does the work."""

    retryable = True

    def __init__(self, state: LockState) -> None:
        super().__init__(f"The lock of {state.namespace}/{state.order} is held by {state.holder}; it is released when that run ends.")
        self.state = state


class NoSiteNamespace(KubeError):
    """The namespace of the locks does not exist."""


class LockLost(KubeError):
    """Another run holds the lock now, so nothing may be written any more; that run does the work."""


class LockExpired(LockLost):
    """The lock was not renewed in time, so another run may hold it at any moment."""


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
    site: str = SITE_NAMESPACE

    def expires(self) -> datetime.datetime | None:
        return self.renewed + datetime.timedelta(seconds=self.duration) if self.renewed else None

    def seconds_left(self, latest: datetime.datetime | None) -> float | None:
        """For how long its holder may write, if the time is `latest` at most; None where no clock shows it."""
        expires = self.expires()
        return (expires - MARGIN - latest).total_seconds() if expires and latest else None

    def free_at(self) -> datetime.datetime | None:
        """From when on another run may take it, unless it is renewed."""
        expires = self.expires()
        return expires + SKEW if expires else None

    def expired_at(self, now: datetime.datetime | None) -> datetime.datetime | None:
        """When it expired without a release; None where it did not, or where no clock shows it."""
        free = self.free_at()
        return self.expires() if self.holder and now is not None and free is not None and now > free else None

    def is_free(self, now: datetime.datetime | None) -> bool:
        """Whether it may be taken, as far as a clock shows."""
        return not self.holder or self.renewed is None or self.expired_at(now) is not None


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
    site: str = SITE_NAMESPACE

    def as_dict(self) -> dict[str, Any]:
        """For the variables of a playbook, and back by `Lock(**variables)`. Playbooks hold the locks of orders only."""
        return {name: value for name, value in vars(self).items() if name != "kind"}


def lease_name(namespace: str, order: str, kind: str = ORDER) -> str:
    """The Lease of an order: both names, between which a dot is unambiguous because a namespace has none, and a hash of both.

    The hash alone distinguishes names that are too long, which are cut.
    """
    if kind == LEADER:
        return f"{order}-{kind}"
    whole = f"{namespace}.{order}"
    digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
    return f"{whole[: NAME_LIMIT - len(digest) - 1].rstrip('-.')}-{digest}"


def labels(kind: str = ORDER) -> dict[str, str]:
    """The labels that select the locks among all Leases of a hub, most of which belong to nodes and controllers."""
    return {"openfleet.clusters/lock": kind}


def read(kube: Kube, namespace: str, order: str, kind: str = ORDER, site: str = SITE_NAMESPACE) -> LockState:
    """The state of an order's lock; one that was never taken is free and has token 0."""
    lease = kube.find(API_VERSION, "Lease", lease_name(namespace, order, kind), site)
    unlocked = LockState(namespace, order, kind=kind, site=site)
    return _state(unlocked, lease) if lease else unlocked


def above_all_earlier(state: LockState, now: datetime.datetime | None) -> LockState:
    """The state from which to acquire a lock whose Lease was deleted or not restored: with a token above those on the order's objects.

    Earlier Leases count runs from 1, or from the seconds at that time: no order has a run a second.
    """
    if state.version:
        return state
    return replace(state, token=int((now or datetime.datetime.now(datetime.UTC)).timestamp() - TOKEN_EPOCH))


def read_all(kube: Kube, site: str = SITE_NAMESPACE) -> list[LockState]:
    """The state of every order's lock."""
    found = map(state_of, kube.list_all(API_VERSION, "Lease", site, selector()))
    return [state for state in found if state]


def state_of(lease: Object) -> LockState | None:
    """The state of a Lease that is the lock of an order; None for any other Lease."""
    metadata = lease["metadata"]
    namespace, _slash, order = (metadata.get("annotations") or {}).get(ORDER_ANNOTATION, "").partition("/")
    if not order or metadata["name"] != lease_name(namespace, order):
        return None
    return _state(LockState(namespace, order, site=metadata["namespace"]), lease)


def selector(kind: str = ORDER) -> str:
    return ",".join(f"{name}={value}" for name, value in labels(kind).items())


def acquire(
    kube: Kube,
    namespace: str,
    order: str,
    holder: str,
    duration: int = DURATION,
    wait_timeout: float = 0,
    observed: LockState | None = None,
    kind: str = ORDER,
    site: str = SITE_NAMESPACE,
    alive: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = boottime,
    sleep: Callable[[float], None] = time.sleep,
) -> Lock:
    """Acquire the lock, waiting up to `wait_timeout` seconds; LockHeld if another run still holds it. Acquiring it twice renews it.

    `observed` is what `read` returned just now, and saves the first request. `alive` raises where the run has ended that the lock is for.
    """
    deadline = clock() + wait_timeout
    observed_version, observed_since = "", clock()
    while True:
        state, observed = observed or read(kube, namespace, order, kind, site), None
        if state.version != observed_version:
            observed_version, observed_since = state.version, clock()
        now = kube.server_time()
        stale = now is None and clock() - observed_since > state.duration
        alive()
        try:
            if state.holder == holder:
                # It may be about to expire.
                return renew(kube, _held(state))
            if stale or state.is_free(now):
                return _acquire(kube, state, holder, duration, now)
        except (Conflict, LockLost):
            # Another run was faster; the next read shows which.
            continue
        except NotFound:
            if not state.version:
                raise NoSiteNamespace(
                    f"The namespace {site} for the locks of orders does not exist: create it, or set site_namespace to the site's own."
                ) from None
            # The Lease was deleted since.
            continue
        if clock() >= deadline:
            raise LockHeld(state)
        sleep(min(POLL_SECONDS, max(0.0, deadline - clock())) * random.uniform(0.5, 1.0))  # noqa: S311 - spreads contenders, keeps no secret


def acquire_all(
    kube: Kube,
    orders: Iterable[tuple[str, str]],
    holder: str,
    duration: int = DURATION,
    wait_timeout: float = 0,
    site: str = SITE_NAMESPACE,
    alive: Callable[[], None] = lambda: None,
    keep: Callable[[list[Lock]], None] = lambda _locks: None,
) -> list[Lock]:
    """Acquire the locks of several orders, each a namespace and a name, and have them kept: all of them, or an error and none.

    All runs take them in the same order, so that two never wait for each other. Those already held are renewed meanwhile.
    """
    deadline = boottime() + wait_timeout
    held: list[Lock] = []
    new: list[Lock] = []
    renewed = boottime()

    def pause(seconds: float) -> None:
        nonlocal renewed
        time.sleep(seconds)
        if boottime() - renewed > duration / 3:
            held[:] = [renew(kube, lock) for lock in held]
            renewed = boottime()

    try:
        for namespace, order in sorted(set(orders)):
            left = max(0.0, deadline - boottime())
            was_ours = read(kube, namespace, order, site=site).holder == holder
            held.append(acquire(kube, namespace, order, holder, duration, left, site=site, alive=alive, sleep=pause))
            if not was_ours:
                new.append(held[-1])
        keep(held)
    except KubeError:
        for lock in new:
            release(kube, lock)
        raise
    return held


def predict(state: LockState, holder: str, duration: int, now: datetime.datetime | None, wait_timeout: float = 0) -> Lock:
    """The lock that `acquire` would return, LockHeld where it would raise it. It assumes that a wait would succeed."""
    if state.holder == holder:
        return _held(state)
    if wait_timeout <= 0 and not state.is_free(now):
        raise LockHeld(state)
    return Lock(state.namespace, state.order, holder, state.token + 1, duration, "", "", state.kind, state.site)


def renew(kube: Kube, lock: Lock) -> Lock:
    """Hold the lock for another duration; LockLost if another run holds it."""
    return _write_as_holder(kube, lock, lock.holder)


def release_held(kube: Kube, namespace: str, order: str, holder: str, site: str = SITE_NAMESPACE) -> bool:
    """Release a lock of which only the holder is known. False, and nothing changed, if this holder does not hold it."""
    state = read(kube, namespace, order, site=site)
    return state.holder == holder and release(kube, _held(state))


def release(kube: Kube, lock: Lock) -> bool:
    """Release the lock. False, and nothing changed, if another run holds it."""
    try:
        _write_as_holder(kube, lock, "")
    except LockLost:
        return False
    return True


def verify(kube: Kube, lock: Lock) -> LockState:
    """Raise LockLost unless the lock is still held and has not expired. Call it right before a write."""
    state = _require_holder(kube, lock)
    left = state.seconds_left(kube.latest_server_time())
    if left is not None and left <= 0:
        raise LockExpired(
            f"The lock of {lock.namespace}/{lock.order} has expired or is about to, because it was not renewed. Nothing was written; "
            "check the connection to the API server, and run again."
        )
    return state


def _require_holder(kube: Kube, lock: Lock) -> LockState:
    """The state of the lock; LockLost where another run holds it or none does."""
    state = read(kube, lock.namespace, lock.order, lock.kind, lock.site)
    if (state.holder, state.token) != (lock.holder, lock.token):
        raise LockLost(
            f"The lock of {lock.namespace}/{lock.order} is lost: it has token {state.token}, holder {state.holder or 'none'}. "
            "Nothing was written; the run that holds it continues."
        )
    return state


def _acquire(kube: Kube, state: LockState, holder: str, duration: int, now: datetime.datetime | None) -> Lock:
    acquired = _micro_time(now or datetime.datetime.now(datetime.UTC))
    lock = Lock(state.namespace, state.order, holder, state.token + 1, duration, acquired, state.version, state.kind, state.site)
    return _write(kube, lock, now)


def _write_as_holder(kube: Kube, lock: Lock, holder: str) -> Lock:
    """Compare and swap on the known version; where that is not the newest, verify that the lock is still held and try again."""
    if not lock.version:
        lock = replace(lock, version=_require_holder(kube, lock).version)
    while True:
        try:
            return _write(kube, replace(lock, holder=holder), kube.server_time())
        except (Conflict, NotFound):
            lock = replace(lock, version=_require_holder(kube, lock).version)


def _held(state: LockState) -> Lock:
    return Lock(**{field.name: getattr(state, field.name) for field in fields(Lock)})


def _state(unlocked: LockState, lease: Object) -> LockState:
    """What the Lease says. Junk in a field counts as nothing there, so that no Lease can fail more than its own order."""
    spec = lease.get("spec") or {}
    return replace(
        unlocked,
        holder=str(spec.get("holderIdentity") or ""),
        token=_count(spec.get("leaseTransitions"), 0),
        duration=_count(spec.get("leaseDurationSeconds"), DURATION),
        acquired=str(spec.get("acquireTime") or ""),
        renewed=_moment(spec.get("renewTime")),
        version=lease["metadata"]["resourceVersion"],
    )


def _count(value: Any, default: int) -> int:
    return value if isinstance(value, int) and 0 < value <= LARGEST_COUNT else default


def _moment(text: Any) -> datetime.datetime | None:
    """A time at which a Lease was renewed; None for one that no server's clock shows."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo and EARLIEST <= moment.year <= LATEST else None


def _write(kube: Kube, lock: Lock, now: datetime.datetime | None) -> Lock:
    """Write the lock's Lease, if it is at the version that the lock knows. Without a holder it is emptied, and keeps its token."""
    renewed = _micro_time((now or datetime.datetime.now(datetime.UTC)) + SECOND)
    held = {"holderIdentity": lock.holder, "acquireTime": lock.acquired, "renewTime": renewed}
    spec = {"leaseDurationSeconds": lock.duration, "leaseTransitions": lock.token} | (held if lock.holder else dict.fromkeys(held))
    name = lease_name(lock.namespace, lock.order, lock.kind)
    marks = {"labels": labels(lock.kind), "annotations": {ORDER_ANNOTATION: f"{lock.namespace}/{lock.order}"}}
    metadata: Object = {"name": name, "namespace": lock.site, **marks}
    lease: Object = {"apiVersion": API_VERSION, "kind": "Lease", "metadata": metadata}
    if lock.version:
        # Not replaced as a whole: that would create a deleted Lease again, and remove labels of other controllers.
        current = lease | {"metadata": metadata | {"resourceVersion": lock.version}}
        written = kube.patch(current, {"spec": spec, "metadata": marks})
    else:
        written = kube.create(lease | {"spec": spec})
    return replace(lock, version=written["metadata"]["resourceVersion"])


def _micro_time(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
