"""Routes of operators. For all other callers they answer as if they did not exist."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from ..handlers import admin, events
from ..logic.clusters import NewCluster
from ..schemas import (
    Cluster,
    ClusterList,
    DrainedHub,
    Expiry,
    HubList,
    HubView,
    OperatorClusterCreate,
    Quota,
    QuotaChange,
    QuotaList,
    Summary,
)
from .clusters import STREAM, IdempotencyKey
from .parameters import (
    API,
    FLEET_ONLY,
    GUARDED,
    CallerOf,
    Filter,
    IfMatch,
    IfNoneMatch,
    LastEventId,
    ListQuery,
    ServicesOf,
    TokenOf,
    answers,
)

router = APIRouter(prefix=f"{API}/admin", tags=["admin"], dependencies=GUARDED)


@router.get("/clusters", responses={200: {"model": ClusterList}, **answers(400, 404)})
async def list_all_clusters(services: ServicesOf, caller: CallerOf, query: ListQuery) -> Response:
    """The clusters of all tenants."""
    return await admin.list_clusters(services, caller, query)


@router.get("/summary", responses={200: {"model": Summary}, **answers(404)})
async def summarize_all(services: ServicesOf, caller: CallerOf) -> Response:
    """The clusters of all tenants, counted, and those that fail."""
    return await admin.summarize_clusters(services, caller)


@router.post("/clusters", status_code=202, responses={202: {"model": Cluster}, **answers(400, 403, 404, 409, 413, 415, 422)})
async def create_any_cluster(
    services: ServicesOf, caller: CallerOf, body: OperatorClusterCreate, idempotency_key: IdempotencyKey = None
) -> Response:
    """Create a cluster of any tenant, or adopt an order that exists on a hub."""
    new = NewCluster(body.name, body.tenant, body.spec, body.labels, body.adoptOrder or "")
    return await admin.create_cluster(services, caller, new, idempotency_key)


@router.get("/clusters/{id}", responses={200: {"model": Cluster}, 304: {"description": "Unchanged"}, **answers(400, 404)})
async def get_any_cluster(services: ServicesOf, caller: CallerOf, id: str, if_none_match: IfNoneMatch = None) -> Response:  # noqa: A002
    """A cluster of any tenant."""
    return await admin.get_cluster(services, caller, id, if_none_match)


@router.delete("/clusters/{id}", status_code=202, responses={202: {"model": Cluster}, **answers(400, 404, 412)})
async def delete_any_cluster(services: ServicesOf, caller: CallerOf, id: str, if_match: IfMatch = None) -> Response:  # noqa: A002
    """Delete a cluster of any tenant."""
    return await admin.delete_cluster(services, caller, id, if_match)


@router.put("/clusters/{id}/expiry", dependencies=FLEET_ONLY, responses={200: {"model": Cluster}, **answers(400, 404, 412, 422)})
async def set_expiry(services: ServicesOf, caller: CallerOf, id: str, body: Expiry, if_match: IfMatch = None) -> Response:  # noqa: A002
    """Set when a cluster is deleted. The quota of its tenant may set an earlier time."""
    return await admin.set_expiry(services, caller, id, body.expiresAt, if_match)


@router.post("/clusters/{id}/retry", status_code=202, dependencies=FLEET_ONLY, responses={202: {"model": Cluster}, **answers(403, 404)})
async def retry_cluster(services: ServicesOf, caller: CallerOf, id: str) -> Response:  # noqa: A002
    """Have a failed cluster tried again."""
    return await admin.retry_cluster(services, caller, id)


@router.get("/events", responses={**STREAM, **answers(400, 404)})
async def watch_all_clusters(
    services: ServicesOf,
    caller: CallerOf,
    token: TokenOf,
    filter: Filter = "",  # noqa: A002
    last_event_id: LastEventId = None,
) -> Response:
    """Changes of the clusters of all tenants."""
    return await events.watch_all_clusters(services, caller, token, filter, last_event_id)


@router.get("/hubs", dependencies=FLEET_ONLY, responses={200: {"model": HubList}, **answers(400, 404)})
async def list_hubs(services: ServicesOf, caller: CallerOf, query: ListQuery) -> Response:
    """The hubs of the fleet with their capacity and their state."""
    return await admin.list_hubs(services, caller, query)


@router.get("/hubs/{id}", dependencies=FLEET_ONLY, responses={200: {"model": HubView}, **answers(404)})
async def get_hub(services: ServicesOf, caller: CallerOf, id: str) -> Response:  # noqa: A002
    """One hub."""
    return await admin.get_hub(services, caller, id)


@router.post("/hubs/{id}/cordon", dependencies=FLEET_ONLY, responses={200: {"model": HubView}, **answers(403, 404)})
async def cordon_hub(services: ServicesOf, caller: CallerOf, id: str) -> Response:  # noqa: A002
    """Have no further cluster bound to the hub."""
    return await admin.set_schedulable(services, caller, id, False)


@router.post("/hubs/{id}/uncordon", dependencies=FLEET_ONLY, responses={200: {"model": HubView}, **answers(403, 404)})
async def uncordon_hub(services: ServicesOf, caller: CallerOf, id: str) -> Response:  # noqa: A002
    """Let clusters be bound to the hub again."""
    return await admin.set_schedulable(services, caller, id, True)


@router.post("/hubs/{id}/drain", dependencies=FLEET_ONLY, responses={200: {"model": DrainedHub}, **answers(403, 404)})
async def drain_hub(services: ServicesOf, caller: CallerOf, id: str) -> Response:  # noqa: A002
    """Cordon the hub, and list the clusters that are on it."""
    return await admin.drain_hub(services, caller, id)


@router.get("/quotas", dependencies=FLEET_ONLY, responses={200: {"model": QuotaList}, **answers(404)})
async def list_all_quotas(services: ServicesOf, caller: CallerOf) -> Response:
    """The quotas of all tenants that have one."""
    return await admin.list_quotas(services, caller)


@router.put("/quotas/{id}", dependencies=FLEET_ONLY, responses={200: {"model": Quota}, **answers(400, 403, 404, 409, 412, 413, 415, 422)})
async def set_quota(services: ServicesOf, caller: CallerOf, id: str, body: QuotaChange, if_match: IfMatch = None) -> Response:  # noqa: A002
    """Set the limits of a tenant."""
    return await admin.set_quota(services, caller, id, body.spec, if_match)
