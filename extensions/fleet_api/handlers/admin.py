"""Operations of the operators of a fleet. For all others there is nothing here.

Whether a caller is one is asked of the home cluster: each operation needs its permission in all namespaces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from ....plugins.module_utils.common.timestamps import format_time
from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.fleet.kinds import API_VERSION, QUOTA, QUOTA_NAME, RETRY
from ....plugins.module_utils.kube.client import Kube
from ....plugins.module_utils.kube.errors import KubeError
from ..logic.clusters import NewCluster
from ..logic.paging import Query, page
from ..logic.plans import parsed_quota, quota_view
from ..logic.services import Services
from ..logic.summary import summary
from ..logic.views import CLUSTERS, HUBS, cluster_view, hub_view
from ..problems import Problem, invalid, not_found
from ..stores.access import (
    CHANGE_CLUSTERS,
    CHANGE_HUBS,
    CHANGE_QUOTAS,
    CREATE_CLUSTERS,
    DELETE_CLUSTERS,
    LIST_CLUSTERS,
    LIST_HUBS,
    LIST_QUOTAS,
    Action,
)
from ..stores.home import problem_of
from ..stores.identity import Caller
from .answers import conflict_as_precondition, json_response, object_response, required_version
from .clusters import answer, change, clusters_of, create, delete, list_answer
from .fleet import quota_of


async def list_clusters(services: Services, caller: Caller, query: Query) -> Response:
    await services.tenants.require(caller, LIST_CLUSTERS)
    return list_answer(services, page(services.caches.clusters_of(None), query, CLUSTERS, ["*"]))


async def summarize_clusters(services: Services, caller: Caller) -> Response:
    await services.tenants.require(caller, LIST_CLUSTERS)
    return json_response(summary(services.caches.clusters_of(None)))


async def create_cluster(services: Services, caller: Caller, new: NewCluster, key: str | None) -> Response:
    """Create a cluster of any tenant. The policy of the home cluster asks for a permission to adopt an order."""
    await services.tenants.require(caller, CREATE_CLUSTERS)
    if new.adopted and not (new.spec.get("placement") or {}).get("hub"):
        raise invalid("spec.placement.hub", "names the hub with the order that is adopted")
    return await create(services, caller, new, key)


async def get_cluster(services: Services, caller: Caller, uid: str, if_none_match: str | None) -> Response:
    return answer(await clusters_of(services).find_any(caller, uid, LIST_CLUSTERS), if_none_match)


async def delete_cluster(services: Services, caller: Caller, uid: str, if_match: str | None) -> Response:
    clusters = clusters_of(services)
    return await delete(clusters, caller, await clusters.find_any(caller, uid, DELETE_CLUSTERS), if_match)


async def set_expiry(services: Services, caller: Caller, uid: str, expires_at: str | None, if_match: str | None) -> Response:
    clusters = clusters_of(services)
    item = await clusters.find_any(caller, uid, CHANGE_CLUSTERS)
    return await change(clusters, caller, item, {"spec": {"expiresAt": expires_at}}, if_match)


async def retry_cluster(services: Services, caller: Caller, uid: str) -> Response:
    """Have a failed cluster tried again now. The home engine passes the request on to the hub."""
    clusters = clusters_of(services)
    item = await clusters.find_any(caller, uid, CHANGE_CLUSTERS)
    changed = await clusters.change(caller, item, {"metadata": {"annotations": {RETRY: format_time(datetime.now(UTC))}}})
    return object_response(cluster_view(changed), changed, 202)


# Hubs


async def list_hubs(services: Services, caller: Caller, query: Query) -> Response:
    await services.tenants.require(caller, LIST_HUBS)
    found = page(services.caches.hubs.all(), query, HUBS, ["*"])
    return json_response({"items": found.items} | ({"nextCursor": found.next_cursor} if found.next_cursor else {}))


async def get_hub(services: Services, caller: Caller, name: str) -> Response:
    item = await _hub(services, caller, name, LIST_HUBS)
    return object_response(hub_view(item), item)


async def set_schedulable(services: Services, caller: Caller, name: str, schedulable: bool) -> Response:
    changed = await _schedulable(services, caller, name, schedulable)
    return object_response(hub_view(changed), changed)


async def drain_hub(services: Services, caller: Caller, name: str) -> Response:
    """Stop new clusters, and list those that are on the hub. A bound cluster never moves by itself."""
    changed = await _schedulable(services, caller, name, False)
    on_it = [item for item in services.caches.clusters_of(None) if (item.get("status") or {}).get("hub") == name]
    shown = sorted(on_it, key=lambda item: (item["metadata"]["namespace"], item["metadata"]["name"]))
    return json_response({"hub": hub_view(changed), "clusters": [cluster_view(item) for item in shown]})


async def _hub(services: Services, caller: Caller, name: str, action: Action) -> Object:
    await services.tenants.require(caller, action)
    item = services.caches.hub(name)
    if item is None:
        raise not_found()
    return item


async def _schedulable(services: Services, caller: Caller, name: str, schedulable: bool) -> Object:
    item = await _hub(services, caller, name, CHANGE_HUBS)
    return await _as(services, caller, lambda kube: kube.patch(item, {"spec": {"schedulable": schedulable}}, checked=False))


# Quotas


async def list_quotas(services: Services, caller: Caller) -> Response:
    await services.tenants.require(caller, LIST_QUOTAS)
    names = sorted({item["metadata"]["namespace"] for item in services.caches.quotas.all()})
    return json_response({"items": [quota_of(services, name) for name in names]})


async def set_quota(services: Services, caller: Caller, tenant: str, spec: Mapping[str, Any], if_match: str | None) -> Response:
    """Set the limits of a tenant. What is reserved already stays."""
    await services.tenants.require(caller, CHANGE_QUOTAS)
    if not services.caches.has_namespace(tenant):
        raise not_found()
    item: Object = {"apiVersion": API_VERSION, "kind": QUOTA, "metadata": {"name": QUOTA_NAME, "namespace": tenant}, "spec": dict(spec)}
    version: str | None = None

    def write(kube: Kube) -> Object:
        nonlocal version
        present = kube.find(API_VERSION, QUOTA, QUOTA_NAME, tenant)
        if present is None:
            if if_match:
                raise Problem("precondition-failed", "The tenant has no quota of its own.")
            return kube.create(item, strict=True)
        version = required_version(if_match, present)
        metadata = item["metadata"] | {"resourceVersion": present["metadata"]["resourceVersion"]}
        return kube.replace(item | {"metadata": metadata}, strict=True)

    try:
        written = await _as(services, caller, write)
    except Problem as problem:
        raise conflict_as_precondition(problem, version) from problem
    default = services.caches.quota(services.settings.site_namespace)
    return object_response(quota_view(tenant, parsed_quota(written), parsed_quota(default)), written)


async def _as(services: Services, caller: Caller, work: Callable[[Kube], Object]) -> Object:
    try:
        return await services.home.act(caller, work)
    except KubeError as error:
        raise problem_of(error) from error
