# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Take, give back or look at the lease of a placement. Documented in the module of the same name."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import Documents, Place, awake
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease, Lock, read_lock
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import Decision, StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import Fenced, Held
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store_check import prove, prove_way
from ansible_collections.openfleet.clusters.plugins.modules import s3_lock
from ansible_collections.openfleet.clusters.plugins.plugin_utils.s3_action import S3Action


class ActionModule(S3Action):
    SPEC: ClassVar[Spec] = s3_lock.SPEC

    def work(self, store: ObjectStore, parameters: dict[str, Any]) -> dict[str, Any]:
        place, documents = self.place(store, parameters)
        instance = parameters["holder"] or self.identity()
        lease = Lease(store, place, instance, instance, parameters["ttl"])
        lock = read_lock(documents, place)
        if parameters["state"] == "seen":
            return _told(False, lock)
        if parameters["state"] == "released":
            ours = lock.instance == instance
            if ours and not self.check_mode:
                self.require(prove_way(store), parameters)
                ours = lease.release()
            return _told(ours, Lock(epoch=lock.epoch, ttl=lock.ttl) if ours else lock)
        if self.check_mode:
            return _predicted(lock, lease, parameters["wait_timeout"])
        changed = not self._renew(store, lease, parameters)
        if changed:
            self._take(store, lease, parameters)
        _begin(documents, place, lease)
        return _told(changed, read_lock(documents, place)) | {"acting_seconds": round(lease.acting_seconds(), 3)}

    def _renew(self, store: ObjectStore, lease: Lease, parameters: dict[str, Any]) -> bool:
        """Go on with the term of an earlier task. False if there is none, or if it is over."""
        if not lease.resume():
            return False
        self.require(prove_way(store), parameters)
        # Twice: the second writes down what the first has gained, for the next task to know.
        return lease.renew() and lease.renew()

    def _take(self, store: ObjectStore, lease: Lease, parameters: dict[str, Any]) -> None:
        """Begin a new term. Held if somebody else leads for all the time that there is patience for."""
        patience = parameters["wait_timeout"]
        _refuse_if_hopeless(lease, patience)
        self.require(prove(store), parameters)
        deadline = awake() + patience
        while not lease.attempt():
            lock = lease.look()
            if awake() >= deadline:
                raise _held(lease, lock)
            time.sleep(min(1.0, max(0.05, min(lease.expires_in(), deadline - awake()))))


def _begin(documents: Documents, place: Place, lease: Lease) -> None:
    """What every new leader does first; a term that goes on has done it already."""
    try:
        Decision(documents, place).publish(StateStore(documents, place, lease.instance).seal(lease.epoch))
    except Fenced:
        lease.release()
        raise


def _predicted(lock: Lock, lease: Lease, patience: float) -> dict[str, Any]:
    if lease.resume():
        return _told(False, lock) | {"acting_seconds": 0.0}
    _refuse_if_hopeless(lease, patience)
    return _told(True, Lock(lease.holder, lease.instance, lock.epoch + 1, lease.ttl)) | {"acting_seconds": 0.0}


def _refuse_if_hopeless(lease: Lease, patience: float) -> None:
    """Held if another has the lease and nobody waits: that it is gone shows only in time."""
    lock = lease.look()
    if lock and lock.held and lock.instance != lease.instance and patience <= 0:
        raise _held(lease, lock)


def _held(lease: Lease, lock: Lock | None) -> Held:
    who = f"{lock.holder} under epoch {lock.epoch}" if lock and lock.held else "somebody else"
    lasts = f"{lock.ttl:g}" if lock else "its"
    return Held(
        f"The lease of {lease.place} is held by {who}. It is free when that gives it back, or {lasts} seconds after its last renewal: "
        "wait with a wait_timeout that is longer."
    )


def _told(changed: bool, lock: Lock) -> dict[str, Any]:
    return {"changed": changed, "lock": lock.content(), "epoch": lock.epoch}
