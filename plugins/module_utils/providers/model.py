# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A cluster as it is requested, and as it is observed. Plain data for providers and their callers; it sends nothing."""

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
# Conditions of a cluster beside its state; a provider has those that it knows.
INFRASTRUCTURE_READY, AVAILABLE, DEGRADED = "InfrastructureReady", "Available", "Degraded"


@dataclass(frozen=True)
class NodeRequest:
    """A number of nodes of one class."""

    resource_class: str
    number_of_nodes: int


@dataclass(frozen=True)
class ConditionState:
    """The status of a condition, and why."""

    status: str
    reason: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.status} ({self.reason}): {self.message}" if self.message else f"{self.status} ({self.reason})"


@dataclass(frozen=True)
class NodeSet:
    """Nodes of one class. `requested` is None where an autoscaler decides; `ready` counts for an older spec where it is `outdated`.

    `preexisting` nodes belong to a cluster that the provider did not create: no order requested them. Where they are not `counted`, the
    provider cannot know how many there are, and `ready` means nothing.
    """

    name: str
    resource_class: str
    requested: int | None
    ready: int
    outdated: bool = False
    updating: bool = False
    deleting: bool = False
    preexisting: bool = False
    counted: bool = True


@dataclass(frozen=True)
class ClusterRequest:
    """A cluster to create. `settings` are the provider's own, checked against its `SETTINGS`; `secrets` are never shown."""

    version: str = ""
    node_requests: Sequence[NodeRequest] = ()
    cloud_provider: str = ""
    region: str = ""
    multi_az: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class ObservedCluster:
    """A cluster as its provider observes it.

    The states in their order: absent, cluster_accepted (requested), cluster_provisioning, cluster_provisioned (its API answers), ready;
    failed, where `retryable` says whether a retry may help; deprovisioning, and cleanup when the cluster is deleted but not everything
    around it; unknown when its provider could not be reached.
    `internal_id` is the provider's id of the cluster, `external_id` the cluster's own. `additional_info` is the provider's own, without
    secrets, and is recorded with the ids. `installed` means completely, once; `updating` that a change is being rolled out;
    `change_refused` that it failed only to change, and runs on as before.
    `version` is the requested release as in the request. `desired_version` is its version number where that differs, `running_version` that
    of the release which is installed completely, `available_updates` those that the provider recommends.
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
    running_version: str = ""
    desired_version: str = ""
    available_updates: tuple[str, ...] = ()
    retryable: bool = True
    installed: bool = False
    updating: bool = False
    change_refused: bool = False
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
        state = self.conditions.get(condition)
        return state is not None and state.status == TRUE

    def to_stored(self) -> Object:
        """What the order records to find the cluster again: ids and location, nothing that changes by itself."""
        recorded = {
            "internalID": self.internal_id,
            "externalID": self.external_id,
            "cloudProvider": self.cloud_provider,
            "region": self.region,
            "multiAZ": self.multi_az,
            "additionalInfo": {name: str(value) for name, value in self.additional_info.items()},
        }
        return {name: value for name, value in recorded.items() if value}

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
    """Objects in a cluster, as one named set: what the set had before and has no longer is deleted."""

    name: str
    items: Sequence[Object] = ()


@dataclass(frozen=True)
class IdentityProvider:
    """A way to log in to a cluster. The `settings` of its `type` and the keys of `secrets` are those of OpenShift's OAuth."""

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
    """A region of a cloud provider that clusters can be in."""

    id: str
    name: str = ""
    multi_az: bool = False


@dataclass(frozen=True)
class Kubeconfig:
    """How to reach a cluster. A changed `version` means that it was rotated."""

    content: Object = field(repr=False)
    version: str = ""
