"""Routes of clusters."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Header
from starlette.responses import Response

from ..handlers import clusters, events
from ..schemas import Cluster, ClusterChange, ClusterCreate, ClusterList, EventList, Kubeconfig, KubeconfigOrder, WorkloadList
from .parameters import (
    API,
    GUARDED,
    CallerOf,
    Filter,
    IfMatch,
    IfNoneMatch,
    LastEventId,
    ListQuery,
    Responses,
    ServicesOf,
    TenantNames,
    TokenOf,
    answers,
)

router = APIRouter(prefix=API, tags=["clusters"], dependencies=GUARDED)
STREAM: Responses = {200: {"description": "Events", "content": {"text/event-stream": {"schema": {"type": "string"}}}}}
IdempotencyKey = Annotated[
    str | None, Header(min_length=1, max_length=255, description="The same request with the same key has one effect")
]


@router.get("/clusters", responses={200: {"model": ClusterList}, **answers(400, 404)})
async def list_clusters(services: ServicesOf, caller: CallerOf, query: ListQuery, tenant: TenantNames) -> Response:
    """The clusters of the caller's tenants, page by page."""
    return await clusters.list_clusters(services, caller, query, tenant)


@router.post("/clusters", status_code=202, responses={202: {"model": Cluster}, **answers(400, 403, 404, 409, 413, 415, 422)})
async def create_cluster(services: ServicesOf, caller: CallerOf, body: ClusterCreate, idempotency_key: IdempotencyKey = None) -> Response:
    """Order a cluster. The answer comes at once; the state of the cluster says how far it is."""
    return await clusters.create_cluster(services, caller, body.name, body.tenant, body.spec, body.labels, idempotency_key)


@router.get("/clusters/{id}", responses={200: {"model": Cluster}, 304: {"description": "Unchanged"}, **answers(400, 404)})
async def get_cluster(services: ServicesOf, caller: CallerOf, id: str, if_none_match: IfNoneMatch = None) -> Response:  # noqa: A002
    """One cluster."""
    return await clusters.get_cluster(services, caller, id, if_none_match)


@router.patch("/clusters/{id}", responses={200: {"model": Cluster}, **answers(400, 403, 404, 409, 412, 413, 415, 422)})
async def change_cluster(
    services: ServicesOf,
    caller: CallerOf,
    id: str,  # noqa: A002
    body: Annotated[ClusterChange, Body(media_type="application/merge-patch+json")],
    if_match: IfMatch = None,
) -> Response:
    """Change a cluster by a JSON merge patch: node sets, parameters, expiry, priority, placement, labels."""
    changes = body.model_dump(exclude_unset=True)
    return await clusters.change_cluster(services, caller, id, changes, if_match)


@router.delete("/clusters/{id}", status_code=202, responses={202: {"model": Cluster}, **answers(400, 403, 404, 412)})
async def delete_cluster(services: ServicesOf, caller: CallerOf, id: str, if_match: IfMatch = None) -> Response:  # noqa: A002
    """Delete a cluster. It is there until its hub has deleted it; then a record remains."""
    return await clusters.delete_cluster(services, caller, id, if_match)


@router.post("/clusters/{id}/kubeconfig", responses={200: {"model": Kubeconfig}, **answers(400, 403, 404, 409, 504)})
async def issue_kubeconfig(
    services: ServicesOf,
    caller: CallerOf,
    id: str,  # noqa: A002
    body: KubeconfigOrder = KubeconfigOrder(),  # noqa: B008
) -> Response:
    """A kubeconfig for the cluster that expires soon. It is stored nowhere."""
    return await clusters.issue_kubeconfig(services, caller, id, body.expirationSeconds)


@router.get("/clusters/{id}/events", responses={200: {"model": EventList}, **answers(404)})
async def list_events(services: ServicesOf, caller: CallerOf, id: str) -> Response:  # noqa: A002
    """The last Events of Kubernetes about a cluster."""
    return await clusters.list_events(services, caller, id)


@router.get("/clusters/{id}/workloads", responses={200: {"model": WorkloadList}, **answers(404, 409, 504)})
async def list_workloads(services: ServicesOf, caller: CallerOf, id: str) -> Response:  # noqa: A002
    """Deployments, StatefulSets, HelmReleases and Kustomizations on the cluster with their health, as its hub sees them now."""
    return await clusters.list_workloads(services, caller, id)


@router.get("/events", responses={**STREAM, **answers(400, 404)})
async def watch_clusters(
    services: ServicesOf,
    caller: CallerOf,
    token: TokenOf,
    tenant: TenantNames,
    filter: Filter = "",  # noqa: A002
    last_event_id: LastEventId = None,
) -> Response:
    """Changes of clusters as Server-Sent Events: `added`, `modified`, `deleted`, `synced` after the present state, `reset`."""
    return await events.watch_clusters(services, caller, token, tenant, filter, last_event_id)
