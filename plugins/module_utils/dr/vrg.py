# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A VolumeReplicationGroup as one cluster reports it. A report counts only if it is of the object's current generation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..common.types import Object
from .ramen_api import DRPC_UID, EPOCH, FAILOVER, IS_PRIMARY, IS_SECONDARY, PRIMARY, REVISION, TRUE

DIGITS = 18  # as in `stamps`


@dataclass(frozen=True)
class Condition:
    """One condition of an object."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    generation: int = 0
    since: str = ""


@dataclass(frozen=True, order=True)
class StorageTarget:
    """A storage system that a failover has to put into maintenance mode first."""

    provisioner: str
    replication_id: str


@dataclass(frozen=True)
class VRG:
    """The object, its stamps and its status."""

    uid: str
    generation: int
    owner: str
    epoch: int
    revision: int
    deleting: bool
    spec: Object
    state: str
    observed_generation: int
    conditions: tuple[Condition, ...]
    prepared: bool
    synced: bool
    last_sync: str
    last_update: str
    pvcs: tuple[Object, ...]
    rd_info: tuple[Object, ...]

    @classmethod
    def from_object(cls, item: Object) -> VRG:
        metadata, spec, status = item.get("metadata", {}), item.get("spec", {}), item.get("status", {})
        annotations = metadata.get("annotations") or {}
        return cls(
            uid=metadata.get("uid", ""),
            generation=metadata.get("generation", 0),
            owner=annotations.get(DRPC_UID, ""),
            epoch=read_number(annotations.get(EPOCH)),
            revision=read_number(annotations.get(REVISION)),
            deleting="deletionTimestamp" in metadata,
            spec=spec,
            state=status.get("state", ""),
            observed_generation=status.get("observedGeneration", 0),
            conditions=read_conditions(status),
            prepared=bool(status.get("prepareForFinalSyncComplete")),
            synced=bool(status.get("finalSyncComplete")),
            last_sync=status.get("lastGroupSyncTime") or "",
            last_update=status.get("lastUpdateTime") or "",
            pvcs=tuple(status.get("protectedPVCs") or ()),
            rd_info=tuple(status.get("rdInfo") or ()),
        )

    @property
    def stamp(self) -> tuple[int, int]:
        return self.epoch, self.revision

    @property
    def is_primary(self) -> bool:
        """Whether its spec is primary, tests included."""
        return self.spec.get("replicationState") == PRIMARY

    @property
    def is_test(self) -> bool:
        return self.is_primary and bool(self.spec.get("dryRun"))

    @property
    def claims_data(self) -> bool:
        """Whether its spec makes it the one primary. The primary of a test failover is not."""
        return self.is_primary and not self.is_test

    @property
    def is_current(self) -> bool:
        """Whether the status is about the current spec."""
        return bool(self.generation) and self.observed_generation == self.generation

    @property
    def reports_primary(self) -> bool:
        return self.is_primary and self.is_current and self.state == IS_PRIMARY

    @property
    def reports_secondary(self) -> bool:
        return not self.is_primary and self.is_current and self.state == IS_SECONDARY

    def condition(self, kind: str) -> Condition | None:
        """The condition, if it is of the current generation."""
        return next((item for item in self.conditions if item.type == kind and item.generation == self.generation), None)

    def is_true(self, *kinds: str) -> bool:
        return all((item := self.condition(kind)) is not None and item.status == TRUE for kind in kinds)

    def not_true(self, *kinds: str) -> str:
        """The conditions that do not count as True, for a message."""
        return ", ".join(kind for kind in kinds if not self.is_true(kind))

    @property
    def storage(self) -> tuple[StorageTarget, ...]:
        """The storage systems of its volumes that need maintenance mode for a failover."""
        replications = ((pvc.get("csiProvisioner", ""), pvc.get("replicationID") or {}) for pvc in self.pvcs)
        return tuple(sorted({StorageTarget(name, found.get("id", "")) for name, found in replications if FAILOVER in _modes(found)}))

    @property
    def volsync_pvcs(self) -> tuple[Object, ...]:
        return tuple(pvc for pvc in self.pvcs if pvc.get("protectedByVolSync"))


def read_conditions(status: Mapping[str, Any]) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            type=item["type"],
            status=item["status"],
            reason=item.get("reason", ""),
            message=item.get("message", ""),
            generation=item.get("observedGeneration", 0),
            since=item.get("lastTransitionTime", ""),
        )
        for item in status.get("conditions") or ()
    )


def is_true(conditions: Iterable[Condition], kind: str, generation: int) -> bool:
    """Whether a condition is True for this generation of its object."""
    return any(item.type == kind and item.status == TRUE and item.generation == generation for item in conditions)


def _modes(replication: Mapping[str, Any]) -> Iterable[str]:
    return replication.get("modes") or ()


def read_number(text: str | None) -> int:
    """The number in an annotation. What is none, or too long to be one, counts as 0: a write to a stamp like that is refused."""
    return int(text) if text and text.isdecimal() and len(text) <= DIGITS else 0
