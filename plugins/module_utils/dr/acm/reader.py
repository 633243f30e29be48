# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads objects of managed clusters by ManagedClusterViews on the hub.

Clusters are never asked themselves, so a hanging one delays nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TypeVar

from ...common.types import Object
from ...kube.client import Kube
from ...kube.errors import Conflict, KubeError
from ..interfaces import ObjectRef
from ..kinds import CLUSTER_VIEW, MANAGED_CLUSTER, MANIFEST_WORK, VERSIONS
from ..read_results import Absent, Found, Listed, ListResult, Pending, ReadResult, Unreachable
from .names import view_name, work_name
from .views import answer, unavailable, view_of, viewed

Result = TypeVar("Result")


class AcmReader:
    """ResourceReader on a hub. Without `create_views` it reads only views that exist."""

    def __init__(self, hub: Kube, *, create_views: bool = True) -> None:
        self._hub = hub
        self._create_views = create_views

    def get(self, clusters: Sequence[str], ref: ObjectRef) -> dict[str, ReadResult]:
        return self._for_each(clusters, lambda cluster: self._get(cluster, ref))

    def list(self, clusters: Sequence[str], api_version: str, kind: str, namespace: str = "") -> dict[str, ListResult]:
        """The objects that have a view. A list with an unknown object is unknown."""
        return self._for_each(clusters, lambda cluster: self._list(cluster, api_version, kind, namespace))

    def forget(self, clusters: Sequence[str], ref: ObjectRef) -> None:
        self._for_each(clusters, lambda cluster: self._hub.delete(view_of(cluster, ref)))

    def _get(self, cluster: str, ref: ObjectRef) -> ReadResult:
        if unknown := unavailable(self._managed_cluster(cluster), cluster):
            return unknown
        # The work first: a view that is read later is not older.
        work = self._hub.find(VERSIONS[MANIFEST_WORK], MANIFEST_WORK, work_name(ref), cluster)
        view = self._hub.find(VERSIONS[CLUSTER_VIEW], CLUSTER_VIEW, view_name(ref), cluster)
        if view is None:
            return self._request_view(cluster, ref)
        if viewed(view) != ref:
            return Unreachable(f"ManagedClusterView {cluster}/{view_name(ref)} is for another object: delete it.")
        return answer(view, work)

    def _request_view(self, cluster: str, ref: ObjectRef) -> ReadResult:
        if not self._create_views:
            return Unreachable(f"{ref}: the hub has no ManagedClusterView {cluster}/{view_name(ref)}.")
        with contextlib.suppress(Conflict):  # another reader has just created it
            self._hub.create(view_of(cluster, ref))
        return Pending(f"{ref}: the view was just requested, and the cluster has not reported yet.")

    def _list(self, cluster: str, api_version: str, kind: str, namespace: str) -> ListResult:
        if unknown := unavailable(self._managed_cluster(cluster), cluster):
            return unknown
        works = {work["metadata"]["name"]: work for work in self._hub.list_all(VERSIONS[MANIFEST_WORK], MANIFEST_WORK, cluster)}
        items: list[Object] = []
        for view in self._hub.list_all(VERSIONS[CLUSTER_VIEW], CLUSTER_VIEW, cluster):
            ref = viewed(view)
            if (ref.api_version, ref.kind) != (api_version, kind) or namespace not in ("", ref.namespace):
                continue
            found = answer(view, works.get(work_name(ref)))
            if isinstance(found, Found):
                items.append(found.item)
            elif not isinstance(found, Absent):
                return found
        return Listed(items)

    def _managed_cluster(self, name: str) -> Object | None:
        return self._hub.find(VERSIONS[MANAGED_CLUSTER], MANAGED_CLUSTER, name)

    def _for_each(self, clusters: Sequence[str], work: Callable[[str], Result]) -> dict[str, Result]:
        results: dict[str, Result] = {}
        for cluster, result in zip(clusters, self._hub.in_parallel(work, clusters), strict=True):
            if isinstance(result, KubeError):
                raise result
            results[cluster] = result
        return results
