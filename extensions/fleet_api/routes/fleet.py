"""Routes of tenants, templates, quotas, plans, records and usage."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from ..handlers import fleet
from ..schemas import (
    ClusterPlan,
    Plan,
    Quota,
    QuotaList,
    Record,
    RecordList,
    Session,
    Summary,
    Template,
    TemplateList,
    TenantList,
    UsageList,
)
from .parameters import API, FLEET_ONLY, GUARDED, CallerOf, ListQuery, ServicesOf, TenantNames, answers

router = APIRouter(prefix=API, tags=["fleet"], dependencies=GUARDED)
Moment = Annotated[datetime | None, Query(description="A time such as 2027-01-01T00:00:00Z")]


@router.get("/session", responses={200: {"model": Session}, **answers()})
async def get_session(services: ServicesOf, caller: CallerOf) -> Response:
    """Who the caller is, with its tenants."""
    return await fleet.get_session(services, caller)


@router.get("/summary", responses={200: {"model": Summary}, **answers(400, 404)})
async def summarize(services: ServicesOf, caller: CallerOf, tenant: TenantNames) -> Response:
    """The clusters of the caller's tenants, counted by state, version, hub, tenant and template, and those that fail."""
    return await fleet.summarize_clusters(services, caller, tenant)


@router.get("/tenants", responses={200: {"model": TenantList}, **answers()})
async def list_tenants(services: ServicesOf, caller: CallerOf) -> Response:
    """The tenants of the caller."""
    return await fleet.list_tenants(services, caller)


@router.get("/templates", responses={200: {"model": TemplateList}, **answers(400, 404)})
async def list_templates(services: ServicesOf, caller: CallerOf, tenant: TenantNames) -> Response:
    """The templates that the caller's tenants can order, with their parameters as JSON Schema."""
    return await fleet.list_templates(services, caller, tenant)


@router.get("/templates/{id}", responses={200: {"model": Template}, **answers(404)})
async def get_template(services: ServicesOf, caller: CallerOf, id: str) -> Response:  # noqa: A002
    """One template."""
    return await fleet.get_template(services, caller, id)


@router.get("/quotas", dependencies=FLEET_ONLY, responses={200: {"model": QuotaList}, **answers(400, 404)})
async def list_quotas(services: ServicesOf, caller: CallerOf, tenant: TenantNames) -> Response:
    """The quotas of the caller's tenants."""
    return await fleet.list_quotas(services, caller, tenant)


@router.get("/quotas/{id}", dependencies=FLEET_ONLY, responses={200: {"model": Quota}, **answers(404)})
async def get_quota(services: ServicesOf, caller: CallerOf, id: str) -> Response:  # noqa: A002
    """The quota of a tenant."""
    return await fleet.get_quota(services, caller, id)


@router.post("/plan", dependencies=FLEET_ONLY, responses={200: {"model": Plan}, **answers(400, 403, 404, 409, 413, 415, 422)})
async def plan_cluster(services: ServicesOf, caller: CallerOf, body: ClusterPlan) -> Response:
    """Whether a cluster would get quota and a hub now, and why not. Nothing is reserved or created."""
    return await fleet.plan_cluster(services, caller, body.name, body.tenant, body.spec)


@router.get("/records", dependencies=FLEET_ONLY, responses={200: {"model": RecordList}, **answers(400, 404)})
async def list_records(services: ServicesOf, caller: CallerOf, query: ListQuery, tenant: TenantNames) -> Response:
    """What remains of deleted clusters."""
    return await fleet.list_records(services, caller, query, tenant)


@router.get("/records/{id}", dependencies=FLEET_ONLY, responses={200: {"model": Record}, **answers(404)})
async def get_record(services: ServicesOf, caller: CallerOf, id: str) -> Response:  # noqa: A002
    """One record."""
    return await fleet.get_record(services, caller, id)


@router.get("/usage", dependencies=FLEET_ONLY, responses={200: {"model": UsageList}, **answers(400, 404)})
async def sum_usage(
    services: ServicesOf,
    caller: CallerOf,
    tenant: TenantNames,
    since: Moment = None,
    until: Moment = None,
) -> Response:
    """The node hours of clusters that were deleted in a time, by tenant and class."""
    return await fleet.sum_usage(services, caller, tenant, _in_utc(since), _in_utc(until))


def _in_utc(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment
