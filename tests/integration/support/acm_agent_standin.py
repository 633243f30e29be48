"""A stand-in for the agents of Open Cluster Management on a managed cluster: applies ManifestWorks and answers ManagedClusterViews.

It works when it is called, so that a test chooses what has happened before. What it writes is what the work agent and the view
controller write: the objects of a ManifestWork in deletion are deleted before it. The managed cluster may be the hub itself.
"""

from __future__ import annotations

from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import CLUSTER_VIEW, MANAGED_CLUSTER, MANIFEST_WORK, VERSIONS
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError, NotFound

NOW = "2026-01-01T00:00:00Z"
CLEANUP = "cluster.open-cluster-management.io/manifest-work-cleanup"


class AgentStandIn:
    """The agents of the cluster `name`. `cluster` is its API server."""

    def __init__(self, hub: Kube, name: str, cluster: Kube) -> None:
        self._hub, self._name, self._cluster = hub, name, cluster

    def join(self, status: str = "True", **claims: str) -> None:
        """Register the cluster, or report it available or not."""
        item: Object = {
            "apiVersion": VERSIONS[MANAGED_CLUSTER],
            "kind": MANAGED_CLUSTER,
            "metadata": {"name": self._name},
            "spec": {"hubAcceptsClient": True},
        }
        self._hub.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._name}}, force=True)
        created = self._hub.apply(item, force=True)
        condition = {"type": "ManagedClusterConditionAvailable", "status": status, "lastTransitionTime": NOW}
        said = {"reason": "ManagedClusterAvailable" if status == "True" else "LeaseUpdateStopped", "message": f"Available is {status}"}
        claimed = [{"name": name.replace("_", "."), "value": value} for name, value in claims.items()]
        self._hub.patch(created, {"status": {"conditions": [condition | said], "clusterClaims": claimed}}, subresource="status")

    def leave(self) -> None:
        for work in self._hub.list_all(VERSIONS[MANIFEST_WORK], MANIFEST_WORK, self._name):
            self._hub.patch(work, {"metadata": {"finalizers": None}}, checked=False)
        for kind, namespace in ((MANAGED_CLUSTER, None), ("Namespace", None)):
            version = VERSIONS.get(kind, "v1")
            self._hub.delete({"apiVersion": version, "kind": kind, "metadata": {"name": self._name, "namespace": namespace}})

    def apply_works(self) -> None:
        for work in self._hub.list_all(VERSIONS[MANIFEST_WORK], MANIFEST_WORK, self._name):
            if "deletionTimestamp" in work["metadata"]:
                self._clean_up(work)
                continue
            if CLEANUP not in work["metadata"].get("finalizers", []):
                self._hub.patch(work, {"metadata": {"finalizers": [CLEANUP]}})
            for manifest in work["spec"]["workload"]["manifests"]:
                self._cluster.apply(manifest, force=True)

    def _clean_up(self, work: Object) -> None:
        """Delete the objects that no rule orphans; once they are gone, the work is."""
        option = work["spec"].get("deleteOption") or {}
        rules = (option.get("selectivelyOrphans") or {}).get("orphaningRules") or []
        orphans = {(rule["resource"], rule["name"]) for rule in rules}
        owned = [] if option.get("propagationPolicy") == "Orphan" else work["spec"]["workload"]["manifests"]
        left = False
        for item in owned:
            metadata = item["metadata"]
            if (f"{item['kind'].lower()}s", metadata["name"]) not in orphans:
                self._cluster.delete(item)
                left |= self._cluster.find(item["apiVersion"], item["kind"], metadata["name"], metadata.get("namespace")) is not None
        if not left:
            self._hub.patch(work, {"metadata": {"finalizers": None}}, checked=False)

    def answer_views(self) -> None:
        for view in self._hub.list_all(VERSIONS[CLUSTER_VIEW], CLUSTER_VIEW, self._name):
            scope = view["spec"]["scope"]
            version = f"{scope['apiGroup']}/{scope['version']}" if scope.get("apiGroup") else scope["version"]
            try:
                result = self._cluster.get(version, scope["kind"], scope["name"], scope.get("namespace"))
                status = _status("True", "GetResourceProcessing", "Watching resources successfully") | {"result": result}
            except NotFound:
                plural = f"{scope['kind'].lower()}s.{scope.get('apiGroup', '')}"
                status = _failed(f'{plural} "{scope["name"]}" not found')
            except KubeError as error:
                status = _failed(str(error))
            # Replaced, not merged: fields that the object no longer has must not stay in the result.
            self._hub.replace(view | {"status": status}, "status")


def _failed(message: str) -> Object:
    return _status("False", "GetResourceFailed", f"failed to get resource with err: {message}")


def _status(status: str, reason: str, message: str) -> Object:
    condition = {"type": "Processing", "status": status, "reason": reason, "message": message, "lastTransitionTime": NOW}
    return {"conditions": [condition]}
