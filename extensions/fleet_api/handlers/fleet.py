"""Operations of tenants besides those on clusters: session, summary, tenants, templates, quotas, plans, records and usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import Response

from ....plugins.module_utils.common.timestamps import parse_time
from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.fleet.record_archive import as_line, usage
from ....plugins.module_utils.fleet.schedule import Weights
from ..logic.clusters import NewCluster
from ..logic.paging import Query, page
from ..logic.plans import Site, parsed_hubs, parsed_quota, plan, quota_view
from ..logic.services import Services
from ..logic.summary import summary
from ..logic.templates import offered
from ..logic.views import RECORDS, record_view
from ..problems import not_found
from ..stores.access import ALL_NAMESPACES, LIST_CLUSTERS, LIST_HUBS, LIST_QUOTAS, LIST_RECORDS
from ..stores.identity import Caller
from .answers import json_response
from .clusters import clusters_of


async def list_tenants(services: Services, caller: Caller) -> Response:
    visible = await services.tenants.visible(caller, LIST_CLUSTERS)
    return json_response({"items": [{"id": name, "name": name} for name in visible.names]})


async def get_session(services: Services, caller: Caller) -> Response:
    visible = await services.tenants.visible(caller, LIST_CLUSTERS)
    is_operator = visible.everywhere and await services.access.allows(caller, LIST_HUBS, ALL_NAMESPACES)
    ends = {"expiresAt": datetime.fromtimestamp(caller.expires, UTC).isoformat()} if caller.expires else {}
    return json_response({"user": caller.user, "tenants": visible.names, "operator": is_operator, **ends})


async def summarize_clusters(services: Services, caller: Caller, tenants: Sequence[str]) -> Response:
    names = await services.tenants.chosen(caller, LIST_CLUSTERS, tenants)
    return json_response(summary(services.caches.clusters_of(names)))


# Templates


async def _templates(services: Services, caller: Caller, tenants: Sequence[str]) -> list[dict[str, Any]]:
    names = await services.tenants.chosen(caller, LIST_CLUSTERS, tenants)
    return offered(services.caches.hubs.all(), {name: services.caches.labels_of(name) for name in names})


async def list_templates(services: Services, caller: Caller, tenants: Sequence[str]) -> Response:
    return json_response({"items": await _templates(services, caller, tenants)})


async def get_template(services: Services, caller: Caller, name: str) -> Response:
    found = next((each for each in await _templates(services, caller, ()) if each["name"] == name), None)
    if found is None:
        raise not_found()
    return json_response(found)


# Quotas and plans


def quota_of(services: Services, tenant: str) -> dict[str, Any]:
    default = services.caches.quota(services.settings.site_namespace)
    return quota_view(tenant, parsed_quota(services.caches.quota(tenant)), parsed_quota(default))


async def list_quotas(services: Services, caller: Caller, tenants: Sequence[str]) -> Response:
    names = await services.tenants.chosen(caller, LIST_QUOTAS, tenants)
    return json_response({"items": [quota_of(services, name) for name in names]})


async def get_quota(services: Services, caller: Caller, tenant: str) -> Response:
    (name,) = await services.tenants.chosen(caller, LIST_QUOTAS, [tenant])
    if not services.caches.has_namespace(name):
        raise not_found()
    return json_response(quota_of(services, name))


async def plan_cluster(services: Services, caller: Caller, name: str, tenant: str | None, spec: Mapping[str, Any]) -> Response:
    chosen = await services.tenants.one(caller, LIST_CLUSTERS, tenant)
    item: Object = await clusters_of(services).dry_run(caller, NewCluster(name, chosen, spec, {}))
    caches, scheduling = services.caches, services.settings.scheduling
    site = Site(
        parsed_quota(caches.quota(chosen)),
        parsed_quota(caches.quota(services.settings.site_namespace)),
        parsed_hubs(caches.hubs.all()),
        caches.labels_of(chosen),
        datetime.now(UTC),
        timedelta(seconds=scheduling.hub_timeout),
        Weights(**scheduling.weights.model_dump()),
    )
    return json_response(plan(item, site))


# Records


async def list_records(services: Services, caller: Caller, query: Query, tenants: Sequence[str]) -> Response:
    names = await services.tenants.chosen(caller, LIST_RECORDS, tenants)
    found = page(services.caches.records_of(names), query, RECORDS, names)
    return json_response({"items": found.items} | ({"nextCursor": found.next_cursor} if found.next_cursor else {}))


async def get_record(services: Services, caller: Caller, uid: str) -> Response:
    visible = await services.tenants.visible(caller, LIST_RECORDS)
    names = None if visible.everywhere else visible.names
    found = next((item for item in services.caches.records_of(names) if item["metadata"]["uid"] == uid), None)
    if found is None:
        raise not_found()
    return json_response(record_view(found))


async def sum_usage(services: Services, caller: Caller, tenants: Sequence[str], since: datetime | None, until: datetime | None) -> Response:
    """The node hours of clusters that were deleted in this time."""
    names = await services.tenants.chosen(caller, LIST_RECORDS, tenants)
    records = [item for item in services.caches.records_of(names) if _is_between(item, since, until)]
    sums = usage(map(as_line, records))
    clusters = {name: sum(item["metadata"]["namespace"] == name for item in records) for name in names}
    return json_response({"items": [{"tenant": name, "clusters": clusters[name], "nodeHours": sums.get(name, {})} for name in names]})


def _is_between(record: Object, since: datetime | None, until: datetime | None) -> bool:
    deleted = parse_time(record["spec"]["deleted"])
    return deleted is not None and (since is None or deleted >= since) and (until is None or deleted < until)
