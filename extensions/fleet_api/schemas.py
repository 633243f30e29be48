"""The bodies of requests and answers, for validation and for the OpenAPI document. Specs and states are those of the CRDs.

Fields of answers are optional where an object may lack them, or where a client leaves them out with `fields`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

LABEL_NAME = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?(/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
ORDER_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DEEPEST = 32
CRD = "x-openfleet-crd"  # is replaced by the schema of a CRD in the OpenAPI document


def _bounded(value: Any) -> Any:
    """A value that can be sent on: not nested too deeply, and with numbers that JSON has."""

    def check(entry: Any, depth: int) -> None:
        if depth > DEEPEST:
            raise ValueError(f"is nested more than {DEEPEST} deep")
        if isinstance(entry, float) and not -1.8e308 < entry < 1.8e308:
            raise ValueError("has a number that JSON has not")
        if isinstance(entry, str):
            try:
                entry.encode()
            except UnicodeEncodeError:
                raise ValueError("has half of a character") from None
        for each in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
            check(each, depth + 1)
        for name in entry if isinstance(entry, dict) else ():
            check(name, depth)

    check(value, 0)
    return value


def _no_nulls(value: Any) -> Any:
    """For a new object: the API server would drop what is null, and the client would not notice."""

    def check(entry: Any) -> None:
        if entry is None:
            raise ValueError("has a null: leave the field out")
        for each in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
            check(each)

    check({name: each for name, each in value.items() if name != "templateParameters"})
    return value


def _of_crd(name: str) -> Any:
    return WithJsonSchema({"type": "object", CRD: name})


Json = Annotated[dict[str, Any], AfterValidator(_bounded)]
NewSpec = Annotated[Json, AfterValidator(_no_nulls), _of_crd("FleetClusterSpec")]
Name = Annotated[str, Field(pattern=DNS_LABEL, max_length=63)]
LabelName = Annotated[str, Field(pattern=LABEL_NAME, max_length=317)]
LabelValue = Annotated[str, Field(pattern=LABEL_VALUE, max_length=63)]


def _unreserved(labels: dict[str, Any]) -> dict[str, Any]:
    if any(name.partition("/")[0].endswith("fleet.openfleet.io") for name in labels):
        raise ValueError("has a label of the fleet itself, which only the fleet sets")
    return labels


NoReservedLabels = AfterValidator(_unreserved)
Count = Annotated[int, Field(ge=0)]


class Body(BaseModel):
    """Of a request: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ClusterCreate(Body):
    """A new cluster."""

    name: Name
    tenant: Annotated[Name | None, Field(description="The tenant; not needed by a caller with one tenant")] = None
    labels: Annotated[dict[LabelName, LabelValue], Field(max_length=32), NoReservedLabels] = {}
    spec: NewSpec


class OperatorClusterCreate(ClusterCreate):
    """A new cluster of any tenant. With `adoptOrder`, an order on the hub of `spec.placement.hub` becomes that of the cluster."""

    tenant: Name
    adoptOrder: Annotated[str, Field(pattern=ORDER_NAME, max_length=127)] | None = None  # noqa: N815


class ClusterPlan(Body):
    """A cluster to plan for."""

    name: Name = "plan"
    tenant: Name | None = None
    spec: NewSpec


class SpecChanges(Body):
    """What can be changed of a cluster, as a JSON merge patch: null removes a field."""

    nodeSets: Json | None = None  # noqa: N815 - the name of the API object
    templateParameters: Json | None = None  # noqa: N815
    placement: Json | None = None
    priority: Annotated[int, Field(ge=-1000, le=1000)] | None = None
    expiresAt: Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})] | None = None  # noqa: N815


class ClusterChange(Body):
    """A JSON merge patch of a cluster."""

    labels: Annotated[dict[LabelName, LabelValue | None], Field(max_length=32), NoReservedLabels] | None = None
    spec: SpecChanges | None = None


class KubeconfigOrder(Body):
    """For how long the kubeconfig is valid."""

    expirationSeconds: Annotated[int, Field(ge=600, le=86400)] = 3600  # noqa: N815


class QuotaChange(Body):
    """The limits of a tenant; they replace the present ones."""

    spec: Annotated[Json, AfterValidator(_no_nulls), _of_crd("FleetQuotaSpec")]


class Expiry(Body):
    """When the cluster is deleted; null for never."""

    expiresAt: Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})] | None  # noqa: N815


class Answer(BaseModel):
    """Of an answer."""

    model_config = ConfigDict(extra="forbid")


class Cluster(Answer):
    """A cluster of a tenant."""

    id: str
    name: str | None = None
    tenant: str | None = None
    created: datetime | None = None
    createdBy: str | None = None  # noqa: N815
    deletionRequested: datetime | None = None  # noqa: N815
    resourceVersion: Annotated[str | None, Field(description="In quotes, the ETag of the cluster")] = None  # noqa: N815
    generation: int | None = None
    labels: dict[str, str] | None = None
    spec: Annotated[dict[str, Any], _of_crd("FleetClusterSpec:partial")] | None = None
    status: Annotated[dict[str, Any], _of_crd("FleetClusterStatus:partial")] | None = None


class ClusterList(Answer):
    """A page of clusters. A watch goes on from `resourceVersion` as its Last-Event-ID."""

    items: list[Cluster]
    total: Annotated[Count, Field(description="How many clusters match, on all pages")]
    nextCursor: str | None = None  # noqa: N815
    resourceVersion: str  # noqa: N815


class ClusterEvent(Answer):
    """An Event of Kubernetes about a cluster."""

    type: str
    reason: str | None = None
    message: str | None = None
    count: Count
    first: datetime
    last: datetime


class EventList(Answer):
    items: list[ClusterEvent]


class Workload(Answer):
    """A workload of a cluster. `ready` is how many of its replicas are, such as 1/2."""

    kind: str
    namespace: str
    name: str
    health: Literal["Healthy", "Progressing", "Suspended", "Failed"]
    ready: str
    message: str


class WorkloadList(Answer):
    items: list[Workload]
    truncated: Annotated[bool, Field(description="There are more: what needs attention comes first")]


class Counted(Answer):
    """How many clusters have a value."""

    value: str
    clusters: Count


class FailingCluster(Answer):
    """A cluster that needs attention."""

    id: str
    name: str
    tenant: str
    state: str
    hub: str | None = None
    since: Annotated[datetime | None, Field(description="When the first of its failed conditions failed")] = None
    reason: str | None = None
    message: str | None = None


class Summary(Answer):
    """Counts of clusters, the most frequent values first, and the clusters that fail, for the longest time first."""

    clusters: Count
    nodes: Count
    states: list[Counted]
    versions: list[Counted]
    hubs: list[Counted]
    tenants: list[Counted]
    templates: list[Counted]
    failing: Annotated[Count, Field(description="How many clusters fail; `attention` has the first of them")]
    attention: list[FailingCluster]


class Session(Answer):
    """The caller, as the service knows it."""

    user: str
    tenants: list[str]
    operator: Annotated[bool, Field(description="Whether the operations of operators are there for the caller")]
    expiresAt: datetime | None = None  # noqa: N815


class Template(Answer):
    """A template that clusters can be ordered from."""

    id: str
    name: str
    title: str | None = None
    description: str | None = None
    parameters: Annotated[dict[str, Any] | None, Field(description="JSON Schema of the parameters")] = None
    nodes: Annotated[dict[str, int] | None, Field(description="The nodes of a cluster that requests none, by class")] = None
    classes: Annotated[list[str] | None, Field(description="The classes of nodes that can be requested; all without it")] = None
    tenants: Annotated[list[str], Field(description="Those of the caller's tenants that can order it")]


class TemplateList(Answer):
    items: list[Template]


class Denied(Answer):
    reason: str
    deleteAfter: datetime | None = None  # noqa: N815


class Quota(Answer):
    """The limits of a tenant and what its clusters use."""

    id: str
    tenant: str
    limited: Annotated[bool, Field(description="False if neither the tenant nor the site has limits: then no cluster is accepted")]
    hard: dict[str, int]
    used: dict[str, int]
    maxLifetime: str | None = None  # noqa: N815
    denied: Denied | None = None


class QuotaList(Answer):
    items: list[Quota]


class QuotaPlan(Answer):
    fits: bool
    reason: str
    message: str
    needed: dict[str, int]
    used: dict[str, int]
    hard: dict[str, int]


class SchedulingPlan(Answer):
    fits: bool
    message: str
    hub: str | None = None


class Plan(Answer):
    """What would become of the cluster now. Nothing is reserved."""

    fits: bool
    quota: QuotaPlan
    scheduling: SchedulingPlan
    expires: datetime | None = None


class Record(Answer):
    """What remains of a deleted cluster."""

    id: str
    cluster: Annotated[str | None, Field(description="The id that the cluster had")] = None
    tenant: str | None = None
    name: str | None = None
    template: str | None = None
    created: datetime | None = None
    deleted: datetime | None = None
    reason: str | None = None
    owner: str | None = None
    hub: str | None = None
    state: str | None = None
    version: str | None = None
    nodeSets: dict[str, Any] | None = None  # noqa: N815
    nodeHours: dict[str, float] | None = None  # noqa: N815


class RecordList(Answer):
    items: list[Record]
    nextCursor: str | None = None  # noqa: N815


class Usage(Answer):
    tenant: str
    clusters: Count
    nodeHours: Annotated[dict[str, float], Field(description="By resource class")]  # noqa: N815


class UsageList(Answer):
    """The sums over deleted clusters."""

    items: list[Usage]


class Tenant(Answer):
    id: str
    name: str


class TenantList(Answer):
    items: list[Tenant]


class Kubeconfig(Answer):
    kubeconfig: str
    expiresAt: datetime | None = None  # noqa: N815


class FreeRoom(Answer):
    clusters: int
    nodes: dict[str, int]


class HubView(Answer):
    """A hub of the fleet."""

    id: str
    name: str | None = None
    created: datetime | None = None
    resourceVersion: str | None = None  # noqa: N815
    labels: dict[str, str] | None = None
    spec: Annotated[dict[str, Any], _of_crd("HubSpec:partial")] | None = None
    ready: bool | None = None
    clusters: int | None = None
    free: FreeRoom | None = None
    heartbeat: datetime | None = None
    versions: Any = None
    templates: list[str] | None = None
    conditions: list[dict[str, Any]] | None = None


class HubList(Answer):
    items: list[HubView]
    nextCursor: str | None = None  # noqa: N815


class DrainedHub(Answer):
    """A hub that takes no further cluster, and the clusters that are on it. They stay until their tenants delete them."""

    hub: HubView
    clusters: list[Cluster]


class FieldProblem(Answer):
    field: str
    message: str


class ProblemDocument(Answer):
    """An error, as RFC 9457 describes."""

    type: str
    title: str
    status: int
    code: str
    detail: str | None = None
    errors: list[FieldProblem] | None = None
    action: str
    operation_id: str


class ErrorKind(Answer):
    """An entry of the catalogue of errors."""

    code: str
    status: int
    title: str
    action: str


class ErrorList(Answer):
    items: list[ErrorKind]
