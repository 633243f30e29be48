# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How disaster recovery reaches clusters: four interfaces, each with an `acm` and a `direct` implementation.

Clusters are known by name. An error of one cluster is its answer and never an exception. An error of the site's own
store (the API server that has the registry, the ACM hub, the bucket) is raised: without it nothing can be decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Union

from ..common.types import Object
from ..kube.errors import KubeError
from .read_results import ListResult, ReadResult, Unauthorized, Unreachable


@dataclass(frozen=True)
class Cluster:
    """A cluster, its last known health, and whether it is fenced.

    `healthy` is None if the health is unknown. `fenced` is a fence that is in effect; `fence_requested` is one that is
    in effect, begins or ends: place nothing there.
    """

    name: str
    region: str = ""
    healthy: bool | None = None
    reason: str = ""
    fenced: bool = False
    fence_requested: bool = False


@dataclass(frozen=True)
class ObjectRef:
    """An object on any cluster. Objects without a namespace have an empty one."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Stamp:
    """Who writes an object, and under which epoch and revision of the state.

    `adopts` has the uids of other DRPlacementControls whose objects this one takes over, for example those of the same
    workload on the other clusters. An object of any other DRPlacementControl, or of none, is not changed.
    """

    drpc_uid: str
    epoch: int
    revision: int
    adopts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Deployed:
    """The cluster has the object as wanted, or no longer has a deleted one. `changed` says whether this call did it."""

    changed: bool


@dataclass(frozen=True)
class Superseded:
    """The object has a newer stamp: a later leader or a later step wrote it. Nothing was changed; stop acting."""

    epoch: int
    revision: int
    why: str


@dataclass(frozen=True)
class Refused:
    """The object belongs to another owner, or the cluster refuses its content. Nothing was changed."""

    why: str


Outcome = Union[Deployed, Superseded, Refused, Unreachable, Unauthorized]  # noqa: UP007 - see read_results.py


@dataclass(frozen=True)
class Decision:
    """Where a workload is placed. `retained` has clusters that keep their copy until they are cleaned up."""

    cluster: str = ""
    retained: tuple[str, ...] = ()


class BadPlacement(KubeError):
    """The placement of a DRPlacementControl cannot be used. Nothing was changed."""


class ClusterDirectory(Protocol):
    """The clusters that workloads can be placed on."""

    def clusters(self) -> list[Cluster]: ...


class ResourceReader(Protocol):
    """Reads objects of clusters, all clusters at once. A cluster that hangs does not delay the others.

    `forget` is called when an object is not read any more, because it is gone for good.
    """

    def get(self, clusters: Sequence[str], ref: ObjectRef) -> Mapping[str, ReadResult]: ...

    def list(self, clusters: Sequence[str], api_version: str, kind: str, namespace: str = "") -> Mapping[str, ListResult]: ...

    def forget(self, clusters: Sequence[str], ref: ObjectRef) -> None: ...


class ResourceDeployer(Protocol):
    """Writes one object of one cluster. Both calls can be repeated, and never replace a newer stamp.

    `apply` creates the namespace of the object if it is missing. `delete` begins the deletion; the object is gone when
    a reader answers Absent. `delete_later` is for a cluster that does not answer, at the end of a protection. `during` is the same
    for one term: `acting` says whether it lasts.
    """

    def during(self, acting: Callable[[], bool], /) -> ResourceDeployer: ...

    def apply(self, cluster: str, item: Object, stamp: Stamp) -> Outcome: ...

    def delete(self, cluster: str, ref: ObjectRef, stamp: Stamp) -> Outcome: ...

    def delete_later(self, cluster: str, ref: ObjectRef, stamp: Stamp) -> None: ...


class Placement(Protocol):
    """The placement decision of a DRPlacementControl. Each change returns whether it changed the decision.

    `set` places the workload on a cluster, `retain` ends the placement there but keeps the copy, `clear` removes the
    cluster from the decision. All three raise BadPlacement if the decision cannot be changed.
    """

    def read(self, drpc: Object) -> Decision: ...

    def set(self, drpc: Object, cluster: str, stamp: Stamp) -> bool: ...

    def retain(self, drpc: Object, cluster: str, stamp: Stamp) -> bool: ...

    def clear(self, drpc: Object, cluster: str, stamp: Stamp) -> bool: ...
