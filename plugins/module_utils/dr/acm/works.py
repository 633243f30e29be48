# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The content of a ManifestWork: one object, and its namespace. It sends nothing."""

from __future__ import annotations

from ...common.types import Object
from ..interfaces import ObjectRef
from ..kinds import MANIFEST_WORK, VERSIONS
from .names import work_name


def manifest_of(work: Object, ref: ObjectRef) -> Object | None:
    """The object in a ManifestWork."""
    manifests = ((work.get("spec") or {}).get("workload") or {}).get("manifests") or []
    return next((item for item in manifests if _is(item, ref)), None)


def work_of(cluster: str, item: Object, ref: ObjectRef) -> Object:
    """The ManifestWork for an object. The namespace of the object stays when the work is deleted."""
    manifests, spec = [item], {}
    if ref.namespace:
        manifests = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ref.namespace}}, item]
        rule = {"group": "", "resource": "namespaces", "name": ref.namespace}
        spec = {"deleteOption": {"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {"orphaningRules": [rule]}}}
    return {
        "apiVersion": VERSIONS[MANIFEST_WORK],
        "kind": MANIFEST_WORK,
        "metadata": {"name": work_name(ref), "namespace": cluster},
        "spec": spec | {"workload": {"manifests": manifests}},
    }


def _is(item: Object, ref: ObjectRef) -> bool:
    metadata = item.get("metadata") or {}
    found = (item.get("apiVersion"), item.get("kind"), metadata.get("namespace", ""), metadata.get("name"))
    return found == (ref.api_version, ref.kind, ref.namespace, ref.name)
