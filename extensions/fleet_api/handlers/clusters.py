"""Operations on clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from ....plugins.module_utils.common.types import Object
from ..logic.clusters import Clusters, NewCluster
from ..logic.paging import Page, Query, page
from ..logic.services import Services
from ..logic.views import CLUSTERS, cluster_view, event_view
from ..problems import Problem, invalid
from ..stores.access import GET_KUBECONFIG, LIST_CLUSTERS
from ..stores.events import events_about
from ..stores.identity import Caller
from .answers import conflict_as_precondition, is_unmodified, json_response, object_response, required_version

LONGEST_KEY = 255


def clusters_of(services: Services) -> Clusters:
    return Clusters(services.home, services.caches, services.tenants, services.access, services.source)


def list_answer(services: Services, found: Page) -> Response:
    body: dict[str, Any] = {"items": found.items, "total": found.total, "resourceVersion": str(services.changes.version)}
    return json_response(body | ({"nextCursor": found.next_cursor} if found.next_cursor else {}))


async def list_clusters(services: Services, caller: Caller, query: Query, tenants: Sequence[str]) -> Response:
    names = await services.tenants.chosen(caller, LIST_CLUSTERS, tenants)
    return list_answer(services, page(services.caches.clusters_of(names), query, CLUSTERS, names))


async def create_cluster(
    services: Services, caller: Caller, name: str, tenant: str | None, spec: Mapping[str, Any], labels: Mapping[str, str], key: str | None
) -> Response:
    chosen = await services.tenants.one(caller, LIST_CLUSTERS, tenant)
    return await create(services, caller, NewCluster(name, chosen, spec, labels), key)


async def create(services: Services, caller: Caller, new: NewCluster, key: str | None) -> Response:
    if key is not None and not (0 < len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()):
        raise invalid("Idempotency-Key", f"has 1 to {LONGEST_KEY} printable characters")
    created = await clusters_of(services).create(caller, new, key or "")
    headers = {"Location": f"/api/fleet/v1/clusters/{created.item['metadata']['uid']}"}
    headers |= {"Idempotency-Replayed": "true"} if created.is_replay else {}
    return object_response(cluster_view(created.item), created.item, 202, headers)


async def get_cluster(services: Services, caller: Caller, uid: str, if_none_match: str | None) -> Response:
    return answer(await clusters_of(services).find(caller, uid), if_none_match)


def answer(item: Object, if_none_match: str | None = None) -> Response:
    if is_unmodified(if_none_match, item):
        return Response(status_code=304, headers={"ETag": f'"{item["metadata"]["resourceVersion"]}"'})
    return object_response(cluster_view(item), item)


async def change_cluster(services: Services, caller: Caller, uid: str, changes: Mapping[str, Any], if_match: str | None) -> Response:
    """`changes` has the given fields only: labels and parts of the spec."""
    clusters = clusters_of(services)
    return await change(clusters, caller, await clusters.find(caller, uid), changes, if_match)


async def change(clusters: Clusters, caller: Caller, item: Object, changes: Mapping[str, Any], if_match: str | None) -> Response:
    version = required_version(if_match, item)
    body: Object = {}
    if changes.get("labels"):
        body["metadata"] = {"labels": changes["labels"]}
    if changes.get("spec"):
        body["spec"] = changes["spec"]
    try:
        changed = await clusters.change(caller, item, body, version)
    except Problem as problem:
        raise conflict_as_precondition(problem, version) from problem
    return object_response(cluster_view(changed), changed)


async def delete_cluster(services: Services, caller: Caller, uid: str, if_match: str | None) -> Response:
    clusters = clusters_of(services)
    return await delete(clusters, caller, await clusters.find(caller, uid), if_match)


async def delete(clusters: Clusters, caller: Caller, item: Object, if_match: str | None) -> Response:
    version = required_version(if_match, item)
    try:
        left = await clusters.delete(caller, item, version)
    except Problem as problem:
        raise conflict_as_precondition(problem, version) from problem
    return object_response(cluster_view(left), left, 202)


async def issue_kubeconfig(services: Services, caller: Caller, uid: str, seconds: int) -> Response:
    item = await clusters_of(services).find(caller, uid)
    if not await services.access.allows(caller, GET_KUBECONFIG, item["metadata"]["namespace"]):
        raise Problem("forbidden")
    _require_api_server(item)
    answered = await services.requests.kubeconfig(item, caller.user, seconds)
    if answered.error:
        raise Problem("not-ready", answered.error)
    expires = {"expiresAt": answered.expires_at.isoformat()} if answered.expires_at else {}
    return json_response({"kubeconfig": answered.kubeconfig, **expires}, headers={"Cache-Control": "no-store"})


async def list_events(services: Services, caller: Caller, uid: str) -> Response:
    """The Events about the cluster at home, the latest first."""
    item = await clusters_of(services).find(caller, uid)
    found = await events_about(services.home, item)
    return json_response({"items": [event_view(each) for each in found]})


async def list_workloads(services: Services, caller: Caller, uid: str) -> Response:
    """What runs on the cluster, as its hub sees it now."""
    item = await clusters_of(services).find(caller, uid)
    _require_api_server(item)
    answered = await services.requests.workloads(item)
    if answered.error:
        raise Problem("not-ready", answered.error)
    try:
        return json_response(answered.content())
    except ValueError as error:
        raise Problem(
            "not-ready", "The hub of the cluster answered with something else: report it to the operator of the fleet."
        ) from error


def _require_api_server(item: Object) -> None:
    status = item.get("status") or {}
    if not status.get("apiURL") or "deletionTimestamp" in item["metadata"]:
        raise Problem("not-ready", "The cluster has no API server yet, or is being deleted.")
