# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What providers and their users speak of: a cluster as it is asked for, and as it is. Plain data; it talks to nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ..common.types import Object

State = Literal[
    "absent",
    "cluster_accepted",
    "cluster_provisioning",
    "cluster_provisioned",
    "ready",
    "failed",
    "deprovisioning",
    "cleanup",
    "unknown",
]

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
# What a cluster can say of itself beside its state; a provider gives those that it knows.
INFRASTRUCTURE_READY, AVAILABLE, DEGRADED = "InfrastructureReady", "Available", "Degraded"


@dataclass(frozen=True)
class NodeRequest:
    """A number of nodes of one class."""

    resource_class: str
    number_of_nodes: int


@dataclass(frozen=True)
class ConditionState:
    """Whether something holds, and why."""

    status: str
    reason: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.status} ({self.reason}): {self.message}" if self.message else f"{self.status} ({self.reason})"


@dataclass(frozen=True)
class NodeSet:
    """Nodes of one class. `requested` is None where an autoscaler decides; `ready` counts for an older spec where it is `outdated`.

    `preexisting` nodes belong to a cluster that the provider did not create: no order requested them.
    """

    name: str
    resource_class: str
    requested: int | None
    ready: int
    outdated: bool = False
    updating: bool = False
    deleting: bool = False
    preexisting: bool = False


@dataclass(frozen=True)
class ClusterRequest:
    """A cluster to be. `settings` are the provider's own and checked against its `SETTINGS`; what must not be seen is in `secrets`."""

    version: str = ""
    node_requests: Sequence[NodeRequest] = ()
    cloud_provider: str = ""
    region: str = ""
    multi_az: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class ObservedCluster:
    """A cluster as its provider sees it.

    The states in their order: absent, cluster_accepted (asked for), cluster_provisioning, cluster_provisioned (its API answers), ready;
    failed, where `retryable` tells whether trying again may help; deprovisioning, and cleanup when it is gone and remains of it are not;
    unknown when its provider could not be asked.
    `internal_id` is what the provider finds it by, `external_id` what the cluster calls itself. `additional_info` is the provider's own,
    without secrets, and is kept with the ids. `installed` means completely, once; `updating` that a change is being rolled out.
    """

    internal_id: str = ""
    external_id: str = ""
    status: State = "absent"
    status_details: str = ""
    additional_info: Mapping[str, Any] = field(default_factory=dict)
    cloud_provider: str = ""
    region: str = ""
    multi_az: bool = False
    node_sets: tuple[NodeSet, ...] = ()
    api_url: str = ""
    console_url: str = ""
    version: str = ""
    retryable: bool = True
    installed: bool = False
    updating: bool = False
    created_at: datetime | None = None
    conditions: Mapping[str, ConditionState] = field(default_factory=dict)

    @property
    def exists(self) -> bool:
        return self.status not in ("absent", "cleanup")

    @property
    def is_deleting(self) -> bool:
        """The deletion cannot be stopped; the cluster can be created again once it is absent."""
        return self.status == "deprovisioning"

    @property
    def is_absent(self) -> bool:
        """Nothing of it is left."""
        return self.status == "absent"

    def is_true(self, condition: str) -> bool:
        verdict = self.conditions.get(condition)
        return verdict is not None and verdict.status == TRUE

    def to_stored(self) -> Object:
        """What is kept on the order, so that the cluster is found again: ids and place, nothing that changes by itself."""
        kept = {
            "internalID": self.internal_id,
            "externalID": self.external_id,
            "cloudProvider": self.cloud_provider,
            "region": self.region,
            "multiAZ": self.multi_az,
            "additionalInfo": {name: str(value) for name, value in self.additional_info.items()},
        }
        return {name: value for name, value in kept.items() if value}

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> ObservedCluster:
        info = stored.get("additionalInfo")
        return cls(
            internal_id=str(stored.get("internalID") or ""),
            external_id=str(stored.get("externalID") or ""),
            cloud_provider=str(stored.get("cloudProvider") or ""),
            region=str(stored.get("region") or ""),
            multi_az=bool(stored.get("multiAZ")),
            additional_info=dict(info) if isinstance(info, Mapping) else {},
        )


@dataclass(frozen=True)
class ResourceSet:
    """Objects to be in a cluster, as one named set: what the set had before and has no longer is taken away."""

    name: str
    items: Sequence[Object] = ()


@dataclass(frozen=True)
class IdentityProvider:
    """Who people log in to a cluster with. The `settings` of its `type`, and the keys of `secrets`, are as OpenShift's OAuth has them."""

    name: str
    type: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Addon:
    """Software that a provider installs into a cluster."""

    id: str
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Region:
    """A place where clusters can be made."""

    id: str
    name: str = ""
    multi_az: bool = False


@dataclass(frozen=True)
class Kubeconfig:
    """How to reach a cluster. Another `version` than last time means that it was rotated."""

    content: Object = field(repr=False)
    version: str = ""
