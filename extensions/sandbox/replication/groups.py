"""The reconcile of one group on all clusters: restore, promote or demote, copy, upload, status. It blocks, and does what can be done now.

All clusters of a group are in one reconcile, because replication is one system with two ends. A cluster that does not answer is left out,
and an error of one cluster does not keep the others from going on.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from ....plugins.module_utils.common.timestamps import format_time
from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.controller.work_queue import sentence
from ....plugins.module_utils.kube.errors import Conflict, KubeError, NotFound
from . import copies
from .conditions import by_type, is_true
from .faults import (
    FINAL_SYNC,
    MAINTENANCE,
    NEVER_SECONDARY,
    OBSERVE,
    PREPARE,
    PROTECT,
    RESTORE,
    RESTORE_ERROR,
    SECONDARY,
    STALE,
    UPLOAD,
    UPLOAD_ERROR,
    Delays,
    Step,
)
from .member import Member
from .status import CLUSTER_DATA_READY, DATA_READY, DONE, PENDING, RESTORED, Observed, Outcome, Progress, ProtectedClaim, group_status
from .stores import StoreError
from .volumes import PRIMARY as PRIMARY_ROLE
from .volumes import SECONDARY as SECONDARY_ROLE
from .volumes import is_bound

log = logging.getLogger("replication-standin")

RETRY_SECONDS = 1.0
CONFLICT_SECONDS = 0.05


class Groups:
    """Reconciles groups; it remembers when delayed steps began and what it has uploaded."""

    def __init__(self) -> None:
        self._delays = Delays()
        self._uploads: dict[str, tuple[str, float, Outcome]] = {}  # by uid: what, when, and how it ended

    def reconcile(self, members: Sequence[Member]) -> float | None:
        """Do what can be done now. Returns after how many seconds there is more to do; None: only after a change."""
        again: list[float] = []
        observed = []
        for member in members:
            try:
                result = self._prepare(member, again)
            except KubeError as error:
                self._failed(member, error, again)
                continue
            if result is not None:
                observed.append((member, result))
        present = [member for member in members if not member.is_deleting]
        self._copy(present, again)
        for member, result in observed:
            try:
                self._report(member, result, present, again)
            except KubeError as error:
                self._failed(member, error, again)
        return min(again, default=None)

    def _failed(self, member: Member, error: KubeError, again: list[float]) -> None:
        """What has changed since it was observed is reconciled again soon; for what was deleted there is nothing to do."""
        if isinstance(error, Conflict):
            again.append(CONFLICT_SECONDS)
        elif not isinstance(error, NotFound):
            metadata = member.vrg["metadata"]
            log.warning("%s: %s/%s: %s", member.site.name, metadata["namespace"], metadata["name"], sentence(error))
            again.append(RETRY_SECONDS)

    def _wait(self, member: Member, step: str, again: list[float]) -> bool:
        """Whether a step still takes time."""
        key = Step(member.site.name, member.uid, member.generation, step)
        remaining = self._delays.remaining(key, member.faults.seconds.get(step, 0.0), time.monotonic())
        if remaining:
            again.append(remaining)
        return remaining > 0

    def _prepare(self, member: Member, again: list[float]) -> Outcome | str | None:
        """Promote or demote the volumes: how the restore of a primary ended, what a secondary waits for, or None for a group to skip."""
        if member.is_deleting:
            self._remove(member, again)
            return None
        member.set_finalizer(True)
        is_observed = (member.vrg.get("status") or {}).get("observedGeneration") == member.generation
        if not is_observed and (STALE in member.faults or self._wait(member, OBSERVE, again)):
            return None
        if not member.wants_primary:
            return self._demote(member, again)
        restored = self._restore(member, again)
        if not is_true(by_type(member.vrg.get("status")), DATA_READY, member.generation):
            # The caches may not have yet what was restored, and a group without claims is ready at once.
            member.read_claims()
        if restored.done and not self._wait(member, PROTECT, again):
            copies.promote(member)
        return restored

    def _restore(self, member: Member, again: list[float]) -> Outcome:
        """Restore PVs and PVCs once after the group was secondary. It is not repeated for a later generation, nor during a final sync."""
        if member.spec.get("prepareForFinalSync") or member.spec.get("runFinalSync"):
            return Outcome(Progress.DONE, "PV and PVC restore skipped during a final sync")
        known = by_type(member.vrg.get("status"))
        if is_true(known, CLUSTER_DATA_READY) and known[CLUSTER_DATA_READY]["reason"] == RESTORED:
            return Outcome(Progress.DONE, known[CLUSTER_DATA_READY]["message"])
        if RESTORE_ERROR in member.faults:
            return Outcome(Progress.FAILED, f"the fault {RESTORE_ERROR} is set")
        if self._wait(member, RESTORE, again):
            return PENDING
        try:
            found = member.site.stores.download(member.vrg)
        except StoreError as error:
            again.append(RETRY_SECONDS)
            return Outcome(Progress.FAILED, str(error))
        member.create_missing(found)
        return Outcome(Progress.DONE, f"{len(found)} PVs and PVCs restored")

    def _demote(self, member: Member, again: list[float]) -> str:
        """Demote the volumes; returns what keeps the group from being secondary."""
        if NEVER_SECONDARY in member.faults:
            return f"The fault {NEVER_SECONDARY} is set"
        if self._wait(member, SECONDARY, again):
            return "PVCs of the group are being demoted"
        if used := member.in_use():
            return f"PVC {used} is in use by a running application"
        copies.demote(member)
        return ""

    def _copy(self, members: Sequence[Member], again: list[float]) -> None:
        source, now = copies.source_of(members), now_in_utc()
        try:
            if source:
                self._copy_from(source, copies.targets_of(source, members), now, again)
            elif leaving := copies.relocating(members):
                targets = copies.targets_of(leaving, members)
                if targets and not self._wait(leaving, FINAL_SYNC, again):
                    copies.copy_all(leaving, targets, now, complete=True)
                    copies.complete(leaving)
        except KubeError as error:  # a volume has changed, or a cluster is gone
            self._failed(source or members[0], error, again)

    def _copy_from(self, source: Member, targets: Sequence[Member], now: datetime.datetime, again: list[float]) -> None:
        if not targets:
            return
        is_last = bool(source.spec.get("runFinalSync")) and not source.in_use()
        if is_last:
            # The cache may know that the application has ended, and not yet its last write.
            source.read_claims()
        if is_last and not copies.is_copied(source, targets):
            if not self._wait(source, FINAL_SYNC, again):
                copies.copy_all(source, targets, now, complete=True)
        elif not copies.next_copy(source, now):
            copies.copy_all(source, targets, now)
        if "async" in source.spec:
            again.append(max(copies.next_copy(source, now_in_utc()).total_seconds(), 0.05))

    def _report(self, member: Member, result: Outcome | str, members: Sequence[Member], again: list[float]) -> None:
        now = format_time(now_in_utc())
        observed = (
            self._as_primary(member, result, members, now, again)
            if isinstance(result, Outcome)
            else Observed(
                problem=member.faults.problem,
                claims=_claims(member),
                has_data=bool(member.volumes),
                wait=result,
                replicated=all(volume.role == SECONDARY_ROLE for volume in member.volumes.values()),
            )
        )
        member.write_status(group_status(member.vrg, observed, now))

    def _as_primary(self, member: Member, restored: Outcome, members: Sequence[Member], now: str, again: list[float]) -> Observed:
        targets = copies.targets_of(member, members)
        is_mirrored = copies.is_copied(member, targets)
        observed = Observed(
            problem=member.faults.problem,
            claims=_claims(member),
            restored=restored,
            protected=_is_protected(member),
            mirrored=is_mirrored,
            conflict=copies.conflicts(member, members),
            prepared=bool(member.spec.get("prepareForFinalSync")) and not self._wait(member, PREPARE, again),
            final_sync=self._is_final_sync_complete(member, is_mirrored, again),
            uploaded=DONE,
        )
        if not (restored.done and observed.protected) or member.is_test:
            return observed
        return replace(observed, uploaded=self._upload(member, observed, now, again))

    def _is_final_sync_complete(self, member: Member, is_mirrored: bool, again: list[float]) -> bool:
        if not member.spec.get("runFinalSync") or member.in_use() or self._wait(member, FINAL_SYNC, again):
            return False
        return is_mirrored or not member.volumes

    def _upload(self, member: Member, observed: Observed, now: str, again: list[float]) -> Outcome:
        """Upload what the stores lack: the PVs, the PVCs, and the group with the status it is going to have."""
        if UPLOAD_ERROR in member.faults:
            return Outcome(Progress.FAILED, f"the fault {UPLOAD_ERROR} is set")
        if self._wait(member, UPLOAD, again):
            return PENDING
        status = group_status(member.vrg, observed, now)
        metadata = {name: value for name, value in member.vrg["metadata"].items() if name not in ("managedFields", "resourceVersion")}
        group = member.vrg | {"metadata": metadata, "status": status}
        claims = [claim.claim for claim in observed.claims]
        content = hashlib.sha256(json.dumps([group, *map(_unversioned, claims)], sort_keys=True).encode()).hexdigest()
        last, moment, outcome = self._uploads.get(member.uid, ("", 0.0, PENDING))
        if outcome.done and last == content:
            return outcome
        if outcome.failed and (remaining := moment + RETRY_SECONDS - time.monotonic()) > 0:
            again.append(remaining)
            return outcome
        volumes = [member.site.kube.get("v1", "PersistentVolume", claim["spec"]["volumeName"]) for claim in claims]
        failure = member.site.stores.upload(member.vrg, [group, *claims, *volumes])
        outcome = Outcome(Progress.FAILED, failure) if failure else DONE
        self._uploads[member.uid] = (content, time.monotonic(), outcome)
        if failure:
            again.append(RETRY_SECONDS)
        return outcome

    def _remove(self, member: Member, again: list[float]) -> None:
        """As primary the group takes what it uploaded with it; as secondary, its copies of the data."""
        try:
            if member.wants_primary and not member.is_test:
                member.site.stores.remove(member.vrg)
        except StoreError as error:
            log.warning("%s: %s stays until its stores answer: %s", member.site.name, member.vrg["metadata"]["name"], error)
            again.append(RETRY_SECONDS)
            return
        claims = {(claim["metadata"]["namespace"], claim["metadata"]["name"]) for claim in member.claims}
        for key, volume in member.volumes.items():
            if volume.role == SECONDARY_ROLE and key not in claims:
                member.site.kube.delete(member.known_volumes[key])
        self._delays.forget(member.site.name, member.uid)
        self._uploads.pop(member.uid, None)
        member.set_finalizer(False)


def _claims(member: Member) -> tuple[ProtectedClaim, ...]:
    found = []
    for claim in sorted(member.claims, key=lambda claim: str(claim["metadata"]["name"])):
        volume = member.volumes.get((claim["metadata"]["namespace"], claim["metadata"]["name"]))
        synced, size = (volume.synced, volume.size) if volume and member.wants_primary else (None, 0)
        found.append(ProtectedClaim(claim, synced, size, MAINTENANCE in member.faults))
    return tuple(found)


def _is_protected(member: Member) -> bool:
    """Whether each claim is bound to a volume that is primary."""
    keys = [(claim["metadata"]["namespace"], claim["metadata"]["name"]) for claim in member.claims]
    bound = all(is_bound(claim) for claim in member.claims)
    return bound and all(key in member.volumes and member.volumes[key].role == PRIMARY_ROLE for key in keys)


def _unversioned(item: Object) -> Object:
    return {"name": item["metadata"]["name"], "labels": item["metadata"].get("labels"), "spec": item["spec"]}


def now_in_utc() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
