# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a ManagedClusterView says of an object on a managed cluster. It sends nothing.

A view has the last result, with no word on its age. So it counts only while the managed cluster is available, and only if it has not
an older stamp than the ManifestWork.
"""

from __future__ import annotations

from ...common.types import Object
from ..interfaces import ObjectRef
from ..kinds import CLUSTER_VIEW, VERSIONS
from ..read_results import Absent, Found, Pending, ReadResult, Unauthorized, Unknown, Unreachable
from ..stamps import BadStamp, position
from .names import view_name
from .works import manifest_of

PROCESSING, FAILED = "Processing", "GetResourceFailed"
AVAILABLE = "ManagedClusterConditionAvailable"


def condition(item: Object, kind: str) -> Object:
    conditions = (item.get("status") or {}).get("conditions") or []
    return next((entry for entry in conditions if entry.get("type") == kind), {})


def unavailable(managed_cluster: Object | None, name: str) -> Unknown | None:
    """Why the views of a cluster are not current; None if they are."""
    if managed_cluster is None:
        return Unauthorized(f"The hub has no ManagedCluster {name}: import the cluster.")
    available = condition(managed_cluster, AVAILABLE)
    if available.get("status") == "True":
        return None
    return Unreachable(f"ManagedCluster {name} is not available: {available.get('message') or 'its agent has not reported yet'}")


def view_of(cluster: str, ref: ObjectRef) -> Object:
    group, _slash, version = ref.api_version.rpartition("/")
    scope = {"apiGroup": group, "version": version, "kind": ref.kind, "name": ref.name, "namespace": ref.namespace}
    return {
        "apiVersion": VERSIONS[CLUSTER_VIEW],
        "kind": CLUSTER_VIEW,
        "metadata": {"name": view_name(ref), "namespace": cluster},
        "spec": {"scope": {key: value for key, value in scope.items() if value}},
    }


def viewed(view: Object) -> ObjectRef:
    scope = view["spec"]["scope"]
    version = "/".join(part for part in (scope.get("apiGroup"), scope.get("version")) if part)
    return ObjectRef(version, str(scope.get("kind", "")), scope.get("namespace", ""), str(scope.get("name", "")))


def answer(view: Object, work: Object | None) -> ReadResult:
    """The answer of a view of an available cluster, beside the ManifestWork for the same object."""
    found = _result(view)
    wanted = manifest_of(work, viewed(view)) if work else None
    if wanted is None or not isinstance(found, Found | Absent):
        return found
    try:
        behind = isinstance(found, Absent) or position(found.item) < position(wanted)
    except BadStamp as error:
        return Unreachable(f"{viewed(view)}: {error}.")
    return Pending(f"{viewed(view)}: the cluster has not reported the last change of its ManifestWork yet.") if behind else found


def _result(view: Object) -> ReadResult:
    processing, what = condition(view, PROCESSING), viewed(view)
    message = str(processing.get("message") or "")
    if processing.get("status") == "True":
        result = (view.get("status") or {}).get("result")
        return Found(result) if isinstance(result, dict) else Pending(f"{what}: the view has no result yet.")
    if processing.get("reason") != FAILED:
        return Pending(f"{what}: the view is not ready: {message or 'the agent of the cluster has not reported yet'}")
    # The agent has nothing but this text of an API error.
    if message.endswith(" not found"):
        return Absent()
    return Unauthorized(f"{what}: {message}") if " is forbidden" in message else Unreachable(f"{what}: {message}")
