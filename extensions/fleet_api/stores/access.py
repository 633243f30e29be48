"""What a caller may do, by SubjectAccessReview. Decisions are used for a few seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.fleet.kinds import GROUP
from ....plugins.module_utils.kube.client import Kube
from ....plugins.module_utils.kube.errors import Forbidden, KubeError
from ....plugins.module_utils.kube.kinds import register
from .cluster_source import ClusterSource, FleetClusters
from .expiring import Expiring
from .home import Home, problem_of_own
from .identity import AUTHENTICATED, Caller

register("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
register("authentication.k8s.io", "TokenReview", "tokenreviews", namespaced=False)

ALL_NAMESPACES = ""


@dataclass(frozen=True)
class Action:
    """A verb on a resource of the fleet."""

    verb: str
    resource: str
    subresource: str = ""


GET_CLUSTERS = Action("get", "fleetclusters")
LIST_CLUSTERS, CREATE_CLUSTERS = Action("list", "fleetclusters"), Action("create", "fleetclusters")
CHANGE_CLUSTERS, DELETE_CLUSTERS = Action("patch", "fleetclusters"), Action("delete", "fleetclusters")
LIST_QUOTAS, LIST_RECORDS, LIST_HUBS = Action("list", "fleetquotas"), Action("list", "clusterrecords"), Action("list", "hubs")
CHANGE_QUOTAS, CHANGE_HUBS = Action("patch", "fleetquotas"), Action("patch", "hubs")
GET_KUBECONFIG = Action("create", "fleetclusters", "kubeconfig")


class Denied(Forbidden):
    """A review says that the caller may not do it. As the error that the caller would get, it is believed of a ready API server only."""


class Access:
    """The decisions of the home cluster."""

    def __init__(self, home: Home, seconds: float, source: ClusterSource) -> None:
        self._home = home
        self._source = source
        self._decisions: Expiring[asyncio.Future[bool]] = Expiring(seconds)

    async def allows(self, caller: Caller, action: Action, namespace: str) -> bool:
        """Whether the caller may do it in the namespace, or in all."""
        key = (caller.key, action, namespace)
        decision = self._decisions.get(key)
        if decision is None:
            # Requests that come meanwhile wait for this one.
            decision = asyncio.ensure_future(self._review(caller, action, namespace))
            decision.add_done_callback(lambda done: self._forget_failure(key, done))
            self._decisions.put(key, decision)
        return await asyncio.shield(decision)

    async def allowed(self, caller: Caller, action: Action, namespaces: Iterable[str]) -> tuple[str, ...]:
        """Those of the namespaces in which the caller may do it, sorted."""
        names = sorted({*namespaces})
        answers = await asyncio.gather(*(self.allows(caller, action, name) for name in names))
        return tuple(name for name, allowed in zip(names, answers, strict=True) if allowed)

    def _forget_failure(self, key: Hashable, done: asyncio.Future[bool]) -> None:
        if done.cancelled() or done.exception():
            self._decisions.drop(key)

    async def _review(self, caller: Caller, action: Action, namespace: str) -> bool:
        is_cluster = action.resource == FleetClusters.resource
        group, resource = (self._source.group, self._source.resource) if is_cluster else (GROUP, action.resource)
        attributes = {"group": group, "resource": resource, "verb": action.verb}
        attributes |= {"namespace": namespace} if namespace else {}
        attributes |= {"subresource": action.subresource} if action.subresource else {}
        groups = [*dict.fromkeys((*caller.groups, AUTHENTICATED))]
        extra = {name: [*values] for name, values in caller.extra.items()}
        review: Object = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": {"user": caller.user, "groups": groups, "extra": extra, "resourceAttributes": attributes},
        }

        def ask(kube: Kube) -> bool:
            if not (kube.create(review).get("status") or {}).get("allowed"):
                raise Denied(f"{caller.user} may not {action.verb} {resource}")
            return True

        try:
            return await self._home.ask(ask)
        except Denied:
            return False
        except KubeError as error:
            raise problem_of_own(error) from error
