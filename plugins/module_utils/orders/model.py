# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The ClusterOrder as an immutable value, with its names, failure and hashes. It sends no requests and decides nothing."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from ..common.argument_specs import DEFAULT_GROUP
from ..common.text import as_reason, shortened
from ..common.timestamps import format_time, parse_time
from ..common.types import Object
from ..gitops.profiles.lock_file import ANNOTATION
from ..kube.allowed_addresses import AllowedAddresses
from ..kube.errors import Invalid, Unexpected
from ..kube.kinds import register
from ..lock.lease import SITE_NAMESPACE
from ..providers.model import NodeRequest
from .osac import restored

ManagementState = Literal["managed", "manual", "unmanaged"]

NAME_LIMIT = 63  # of a namespace's name and of a label's value
CLUSTER_NAME_LIMIT = 20
WORKING_NAMESPACE_LIMIT = NAME_LIMIT - 1 - CLUSTER_NAME_LIMIT  # HyperShift joins both names with a dash for the control plane
MESSAGE_LIMIT, TASK_LIMIT = 32768, 1024
FIRST_RETRY, LAST_RETRY = timedelta(seconds=30), timedelta(minutes=30)

register(DEFAULT_GROUP, "ClusterOrder", "clusterorders")
register("osac.openshift.io", "ClusterOrder", "clusterorders")

PROGRESSING, READY, FAILED, DEGRADED, DELETING = "Progressing", "Ready", "Failed", "Degraded", "Deleting"
DELETING_CLUSTER = "DeletingCluster"  # reason of the condition Deleting once a run has deleted the cluster's objects
CLUSTER_FAILED = "ClusterFailed"  # reason of a failure that the cluster reports, not a run


@dataclass(frozen=True)
class Names:
    """The names on a hub, by the settings of a site that decide them: API group, controller of orders, namespace of the site.

    `allowed_addresses` is the setting that says where clusters of tenants may be reached.
    """

    group: str = DEFAULT_GROUP
    external_controller: bool = False
    site_namespace: str = SITE_NAMESPACE
    allowed_addresses: AllowedAddresses = field(default_factory=AllowedAddresses)

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Names:
        """From the options that all modules for orders share."""
        try:
            allowed = AllowedAddresses.of(parameters["allowed_addresses"])
        except ValueError as error:
            raise Invalid(f"{error}.", ["allowed_addresses"]) from None
        return cls(parameters["api_group"], parameters["controller"] == "external", parameters["site_namespace"], allowed)

    @property
    def api_version(self) -> str:
        return f"{self.group}/v1alpha1"

    @property
    def controller_finalizer(self) -> str:
        """Set by the controller of orders: the external one, or this collection."""
        return f"{self.group}/finalizer"

    @property
    def infrastructure_finalizer(self) -> str:
        """Set by this collection on the order and on its namespace."""
        return f"{self.group}/infrastructure"

    @property
    def order_label(self) -> str:
        return f"{self.group}/clusterorder"

    @property
    def order_namespace_label(self) -> str:
        return f"{self.group}/clusterorder-namespace"

    @property
    def order_uid_label(self) -> str:
        return f"{self.group}/clusterorder-uid"

    @property
    def resource_class_label(self) -> str:
        return f"{self.group}/resource-class"

    @property
    def management_state_annotation(self) -> str:
        return f"{self.group}/management-state"

    @property
    def provider_annotation(self) -> str:
        """On the working namespace: the provider of its cluster, which can be deleted by it without the order."""
        return f"{self.group}/provider"

    @property
    def orphaned_annotation(self) -> str:
        """On what an order has left behind: since when it is known that the order no longer exists."""
        return f"{self.group}/orphaned-since"

    @property
    def dns_annotation(self) -> str:
        """On the working namespace: where its cluster has DNS records, which can be deleted by it without the order."""
        return f"{self.group}/dns-records"

    @property
    def former_uids_annotation(self) -> str:
        """On the working namespace: the uids of the orders that had the cluster before this one adopted it."""
        return f"{self.group}/former-uids"

    @property
    def profiles_lock_annotation(self) -> str:
        """On the order: the lock file of its profiles."""
        return f"{self.group}/{ANNOTATION}"

    @property
    def lock_token_annotation(self) -> str:
        return f"{self.group}/lock-token"

    def working_namespace(self, namespace: str, name: str) -> str:
        """The name of the namespace on the hub that holds the objects of an order.

        It ends with a hash of both names, so that no two orders have the same one, however tenants choose their names: `a-b/c` and
        `a/b-c`. HyperShift adds the name of the cluster for its control plane, and that has to fit too. An external controller has its
        own rules: this is the one by which two orders can have the same name, and the run of the second is refused. Other versions
        choose a random name and record it; `working_namespace.find_namespace` knows both.
        """
        joined, whole = f"{namespace}-{name}".replace(".", "-"), f"{namespace}/{name}"
        if not self.external_controller:
            return _cut_with_hash(joined, whole, WORKING_NAMESPACE_LIMIT)
        return joined if len(joined) <= NAME_LIMIT and "." not in name else _cut_with_hash(joined, whole, NAME_LIMIT)

    def cluster_name(self, name: str) -> str:
        """The name of the cluster's objects: that of its order, unless it cannot be a part of a namespace's name."""
        fits = self.external_controller or (len(name) <= CLUSTER_NAME_LIMIT and "." not in name)
        return name if fits else _cut_with_hash(name.replace(".", "-"), name, CLUSTER_NAME_LIMIT)


@dataclass(frozen=True)
class Failure:
    """Why a run failed. `attempts` and `next_attempt` belong to the order: `with_failure` counts and dates them."""

    reason: str
    message: str
    task: str = ""
    retryable: bool = True
    attempts: int = 0
    next_attempt: datetime | None = None

    @classmethod
    def from_status(cls, failure: Object) -> Failure:
        return cls(
            reason=failure.get("reason", "Error"),
            message=failure.get("message", ""),
            task=failure.get("task", ""),
            retryable=failure.get("retryable", False),
            attempts=failure.get("attempts", 0),
            next_attempt=parse_time(failure.get("nextAttempt")),
        )

    def to_status(self) -> Object:
        status: Object = {"reason": as_reason(self.reason), "message": shortened(self.message, MESSAGE_LIMIT)}
        if self.task:
            status["task"] = shortened(self.task, TASK_LIMIT)
        status |= {"retryable": self.retryable, "attempts": self.attempts}
        if self.next_attempt is not None:
            status["nextAttempt"] = format_time(self.next_attempt)
        return status

    def is_due(self, now: datetime) -> bool:
        """Whether a retry is due. Without a date it is, so that an edited status cannot block an order indefinitely."""
        return self.retryable and (self.next_attempt is None or self.next_attempt <= now)


@dataclass(frozen=True)
class ClusterOrder:
    """A tenant's order as stored on the API server. It is immutable: a new state is a new object."""

    namespace: str
    name: str
    template_id: str
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    template_parameters: str = ""
    node_requests: tuple[NodeRequest, ...] = ()
    finalizers: tuple[str, ...] = ()
    is_deleting: bool = False
    management_state: ManagementState = "managed"
    status: Object = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    raw: Object = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_object(cls, item: Object, names: Names | None = None) -> ClusterOrder:
        """Parse an API object. The `status` has our fields also where another controller's CRD dropped them."""
        metadata, spec, names = item["metadata"], item.get("spec") or {}, names or Names()
        requests, annotations = spec.get("nodeRequests") or [], metadata.get("annotations") or {}
        is_deleting = bool(metadata.get("deletionTimestamp"))
        return cls(
            namespace=metadata["namespace"],
            name=metadata["name"],
            template_id=spec.get("templateID", ""),
            uid=metadata.get("uid", ""),
            generation=metadata.get("generation", 0),
            resource_version=metadata.get("resourceVersion", ""),
            template_parameters=spec.get("templateParameters") or "",
            node_requests=tuple(NodeRequest(request["resourceClass"], request["numberOfNodes"]) for request in requests),
            finalizers=tuple(metadata.get("finalizers") or ()),
            is_deleting=is_deleting,
            # A deletion always continues: a tenant could keep a cluster indefinitely by an annotation.
            management_state="managed" if is_deleting else _management_state(annotations.get(names.management_state_annotation)),
            status=restored(item.get("status") or {}, beside=names.external_controller),
            names=names,
            raw=item,
        )

    @property
    def labels(self) -> dict[str, str]:
        """The labels of all objects of the order, its working namespace included."""
        return {
            self.names.order_label: label_value(self.name),
            self.names.order_namespace_label: self.namespace,
            self.names.order_uid_label: self.uid,
        }

    @functools.cached_property
    def working_namespace(self) -> str:
        """The namespace of the order's objects. An external controller chooses its name: the status says which it is, once it exists."""
        return self.recorded_namespace or self.names.working_namespace(self.namespace, self.name)

    @property
    def recorded_namespace(self) -> str:
        """The working namespace that an external controller, or we in its stead, recorded in the status."""
        reference = self.status.get("clusterReference") if self.names.external_controller else None
        return str(reference.get("namespace") or "") if isinstance(reference, dict) else ""

    @property
    def phase(self) -> str:
        return str(self.status.get("phase", ""))

    @functools.cached_property
    def spec_hash(self) -> str:
        """Computed once: it parses the parameters, which have up to 256 KiB, and every decision asks for it."""
        try:
            text = json.dumps(json.loads(self.template_parameters or "{}"), sort_keys=True)
        except (ValueError, RecursionError):  # not JSON: rejected later, but two different texts still need two hashes
            text = self.template_parameters
        requests = sorted((request.resource_class, request.number_of_nodes) for request in self.node_requests)
        return _digest(json.dumps([self.template_id, text, requests]))

    @property
    def is_applied(self) -> bool:
        """Whether the template's install has completed for the current spec."""
        return bool(self.status.get("configVersion") == config_version(self))

    @property
    def failure(self) -> Failure | None:
        """The failure of the current spec. A failure of an older spec, or from before the deletion, does not count."""
        failure = self.status.get("failure")
        if not failure or self.status.get("observedGeneration", self.generation) != self.generation:
            return None
        return Failure.from_status(failure)

    @property
    def profiles_lock(self) -> str:
        """The lock file of its profiles, as text."""
        return str((self.raw.get("metadata", {}).get("annotations") or {}).get(self.names.profiles_lock_annotation, ""))

    def condition(self, kind: str) -> Object | None:
        return next((item for item in self.status.get("conditions", []) if item.get("type") == kind), None)


def config_version(order: ClusterOrder) -> str:
    """A short hash of the spec. The layout of the parameters and the order of the classes do not matter."""
    return order.spec_hash


def readable_orders(items: Iterable[Object], names: Names) -> tuple[list[ClusterOrder], list[str]]:
    """The orders, and a message for each that cannot be read: the CRD of another controller may allow what ours does not."""
    orders: list[ClusterOrder] = []
    problems: list[str] = []
    for item in items:
        try:
            orders.append(ClusterOrder.from_object(item, names))
        except Exception as error:  # noqa: BLE001 - of any kind: one order must not hide the others
            metadata = item.get("metadata") or {}
            problems.append(f"{metadata.get('namespace')}/{metadata.get('name')}: {Unexpected(error)}")
    return orders, problems


def label_value(name: str) -> str:
    """A name as a label value. Our CRD allows no name that is too long for one; other CRDs do."""
    return name if len(name) <= NAME_LIMIT else _cut_with_hash(name, name, NAME_LIMIT)


def with_failure(status: Object, failure: Failure, now: datetime) -> Object:
    """The status with one more failed attempt. The wait doubles from 30 seconds up to 30 minutes."""
    before = int((status.get("failure") or {}).get("attempts", 0))
    wait = min(FIRST_RETRY * 2 ** min(before, 16), LAST_RETRY)
    counted = Failure(
        failure.reason, failure.message, failure.task, failure.retryable, before + 1, now + wait if failure.retryable else None
    )
    return status | {"failure": counted.to_status()}


def _management_state(text: str | None) -> ManagementState:
    word = (text or "managed").strip().lower()
    if word == "managed":
        return "managed"
    # Any other value means that runs must not change the cluster; the status is still updated.
    return "unmanaged" if word == "unmanaged" else "manual"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _cut_with_hash(text: str, whole: str, limit: int) -> str:
    """The beginning of `text` and 60 bits of a hash of `whole`, which no tenant can make equal to those of another name."""
    digest = base64.b32encode(hashlib.sha256(whole.encode()).digest())[:12].decode().lower()
    return f"{text[: limit - len(digest) - 1].rstrip('-._')}-{digest}"
