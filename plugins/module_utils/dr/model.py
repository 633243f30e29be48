# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the state machine reads and returns, as values: intent, policy, observations; actions, waits, step. `readers` makes them.

What it remembers is in `state`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Union

from ..common.types import Object
from .ramen_api import FAILOVER, RELOCATE
from .read_results import Absent, Found, ReadResult, Unreachable
from .state import State
from .vrg import VRG, StorageTarget


@dataclass(frozen=True)
class Intent:
    """What a user requests with a DRPlacementControl."""

    namespace: str
    name: str
    uid: str
    generation: int
    action: str = ""
    preferred: str = ""
    failover: str = ""
    dry_run: bool = False
    deleting: bool = False
    pvc_selector: Object = field(default_factory=dict)
    protected_namespaces: tuple[str, ...] = ()
    kube_objects: Object | None = None
    volsync: Object | None = None
    group: str = ""
    network_mapping: str = ""  # a ConfigMap with addresses to translate
    disputed: bool = False  # copies request different things, and which is newer is not known

    @property
    def discovered(self) -> bool:
        """Whether a person manages the application, and so cleans it up where it is no longer wanted."""
        return bool(self.protected_namespaces)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """All namespaces that are protected."""
        return self.protected_namespaces or (self.namespace,)

    @property
    def target(self) -> str:
        """The cluster that the action is for."""
        return {FAILOVER: self.failover, RELOCATE: self.preferred}.get(self.action, "")


@dataclass(frozen=True)
class Member:
    """A cluster of a policy, from its DRCluster."""

    name: str
    region: str = ""
    s3_profile: str = ""
    fenced: bool = False  # the condition, for the current generation
    fencing: bool = False  # requested, or there
    deleting: bool = False
    maintenance: frozenset[StorageTarget] = frozenset()  # the storage systems with an active maintenance mode


@dataclass(frozen=True)
class Policy:
    """A DRPolicy and its DRClusters."""

    name: str
    members: tuple[Member, ...]
    scheduling_interval: str = ""  # empty: synchronous
    valid: bool = True
    deleting: bool = False
    replication: Object = field(default_factory=dict)  # class selectors and peer classes for the VolumeReplicationGroups
    network_mapping: str = ""  # a ConfigMap with addresses to translate

    @property
    def synchronous(self) -> bool:
        return not self.scheduling_interval

    @property
    def interval(self) -> timedelta:
        unit = {"m": "minutes", "h": "hours", "d": "days"}[self.scheduling_interval[-1:] or "m"]
        return timedelta(**{unit: int(self.scheduling_interval[:-1] or 0)})

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    def member(self, name: str) -> Member | None:
        return next((member for member in self.members if member.name == name), None)


@dataclass(frozen=True)
class Workload:
    """The Deployments and StatefulSets of a workload on one cluster."""

    wanted: int = 0  # replicas of the specs
    running: int = 0  # replicas that exist
    idle: int = 0  # controllers without replicas, but for those that had none when they were stopped
    pending: int = 0  # those of them with a note of the replicas they are to have

    @property
    def stopped(self) -> bool:
        return self.wanted == 0 and self.running == 0

    @property
    def startable(self) -> bool:
        """Whether nothing of it is started, or a part of it is missing. Another controller without replicas is as a person wants it."""
        return bool(self.pending or (self.idle and self.wanted == 0))


@dataclass(frozen=True)
class Placed:
    """The placement as it is published on the clusters."""

    cluster: str = ""
    retained: str = ""


@dataclass(frozen=True)
class GroupMember:
    """Another DRPlacementControl of the same consistency group, and what it requests."""

    name: str
    action: str
    target: str


@dataclass(frozen=True)
class Neighbor:
    """Another DRPlacementControl that protects a common namespace on a common cluster, one of the two from the namespace for operations."""

    name: str
    namespaces: tuple[str, ...]  # those in common
    begun: bool  # whether its first deployment has begun


@dataclass(frozen=True)
class Observations:
    """What was read for one step. The time is data too."""

    now: datetime
    vrgs: Mapping[str, ReadResult] = field(default_factory=dict)
    workloads: Mapping[str, Workload] = field(default_factory=dict)  # of the clusters that answered
    placed: Placed = field(default_factory=Placed)
    stored: VRG | None = None  # the newest primary in the stores that answered; read only for an empty bucket
    stored_cluster: str = ""
    group: tuple[GroupMember, ...] = ()
    region: str = ""  # of the cluster that acts
    ops_namespace: str = ""  # whose DRPlacementControls may protect other namespaces
    stamps: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # epoch and revision of workloads that were scaled
    neighbors: tuple[Neighbor, ...] = ()  # read only before the first deployment

    def answer(self, cluster: str) -> ReadResult:
        return self.vrgs.get(cluster) or Unreachable("no request was sent")

    def answered(self, cluster: str) -> bool:
        return isinstance(self.answer(cluster), Found | Absent)

    def workload(self, cluster: str) -> Workload | None:
        """None: unknown."""
        return self.workloads.get(cluster) if self.answered(cluster) else None


@dataclass(frozen=True)
class DeployVRG:
    """Create or update the VolumeReplicationGroup of a cluster. The deployer stamps owner, epoch and revision.

    `adopts` is the owner of an object of another protection that this one takes over.
    """

    cluster: str
    spec: Object
    owner: str
    adopts: str = ""


@dataclass(frozen=True)
class DeleteVRG:
    """`adopts` is the owner of an object that an earlier protection has left."""

    cluster: str
    adopts: str = ""


@dataclass(frozen=True)
class SetPlacement:
    """Publish the decision: the cluster, empty to clear it, and where the workload is retained meanwhile."""

    cluster: str
    retained: str = ""
    reason: str = ""


@dataclass(frozen=True)
class StartWorkload:
    """Scale Deployments and StatefulSets to the replicas they had when they were stopped."""

    cluster: str


@dataclass(frozen=True)
class StopWorkload:
    """Scale Deployments and StatefulSets to zero, and note their replicas."""

    cluster: str


@dataclass(frozen=True)
class ReleaseDRPC:
    """Remove the finalizer: nothing is left of the protection that can be reached."""


Action = Union[DeployVRG, DeleteVRG, SetPlacement, StartWorkload, StopWorkload, ReleaseDRPC]  # noqa: UP007 - see read_results.py


@dataclass(frozen=True)
class Wait:
    """A gate that is closed: since when, why, and what to do about it."""

    gate: str
    message: str
    remedy: str
    progression: str = ""  # what Ramen calls this wait; empty: that of the stage
    since: str = ""

    def __str__(self) -> str:
        return f"{self.message}. {self.remedy}."


@dataclass(frozen=True)
class ConditionState:
    """A condition of the DRPlacementControl."""

    status: str
    reason: str
    message: str = ""


@dataclass(frozen=True)
class Step:
    """One step: either `state` differs from the state it was given and is to be written first, or `actions` are to be done.

    Never both: so each action is done under a revision that names its reason.
    """

    state: State
    actions: tuple[Action, ...]
    waits: tuple[Wait, ...]
    conditions: Mapping[str, ConditionState]  # in Ramen's order

    @property
    def phase(self) -> str:
        return self.state.phase

    @property
    def progression(self) -> str:
        return self.state.progression
