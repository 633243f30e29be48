# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writes objects of managed clusters by ManifestWorks on the hub, fenced by their stamps.

The stamp is on the object in the ManifestWork, and each write is a compare-and-swap of the ManifestWork. What is written
reaches the cluster when its agent applies it; a reader says when.
"""

from __future__ import annotations

from collections.abc import Callable

from ...common.types import Object
from ...kube.client import Kube, retry_on_conflict
from ...kube.errors import Invalid, NotFound
from ..interfaces import Deployed, ObjectRef, Outcome, Refused, Stamp
from ..kinds import MANIFEST_WORK, VERSIONS
from ..read_results import Unauthorized
from ..stamps import merged, refusal, stamped
from .names import work_name
from .works import manifest_of, work_of


class AcmDeployer:
    """ResourceDeployer on a hub."""

    def __init__(self, hub: Kube) -> None:
        self._hub = hub

    def during(self, _acting: Callable[[], bool]) -> AcmDeployer:
        """An agent applies a ManifestWork at any time after it is written: stamps fence it, and time does not."""
        return self

    def apply(self, cluster: str, item: Object, stamp: Stamp) -> Outcome:
        try:
            return retry_on_conflict(lambda: self._apply(cluster, item, stamp))
        except NotFound:
            return Unauthorized(f"The hub has no namespace {cluster}: import the cluster.")
        except Invalid as error:
            return Refused(str(error))

    def delete(self, cluster: str, ref: ObjectRef, stamp: Stamp) -> Outcome:
        return retry_on_conflict(lambda: self._delete(cluster, ref, stamp))

    def delete_later(self, cluster: str, ref: ObjectRef, stamp: Stamp) -> None:
        """The agent deletes the object when it finds its ManifestWork in deletion."""
        self.delete(cluster, ref, stamp)

    def _apply(self, cluster: str, item: Object, stamp: Stamp) -> Outcome:
        metadata = item["metadata"]
        ref = ObjectRef(item["apiVersion"], item["kind"], metadata.get("namespace", ""), metadata["name"])
        wanted = work_of(cluster, stamped(item, cluster, stamp), ref)
        existing = self._find(cluster, ref)
        if existing is None:
            self._hub.create(wanted)
            return Deployed(changed=True)
        if refused := _refusal(existing, ref, stamp):
            return refused
        if existing["metadata"].get("deletionTimestamp"):
            return Refused(f"ManifestWork {cluster}/{work_name(ref)} is being deleted: wait until the hub no longer has it.")
        new = merged(existing, wanted)
        if new == existing:
            return Deployed(changed=False)
        written = self._hub.replace(new)
        return Deployed(written["metadata"]["resourceVersion"] != existing["metadata"]["resourceVersion"])

    def _delete(self, cluster: str, ref: ObjectRef, stamp: Stamp) -> Outcome:
        existing = self._find(cluster, ref)
        if existing is None:
            return Deployed(changed=False)
        if refused := _refusal(existing, ref, stamp):
            return refused
        if existing["metadata"].get("deletionTimestamp"):
            return Deployed(changed=False)
        return Deployed(self._hub.delete(existing, unchanged=True))

    def _find(self, cluster: str, ref: ObjectRef) -> Object | None:
        return self._hub.find(VERSIONS[MANIFEST_WORK], MANIFEST_WORK, work_name(ref), cluster)


def _refusal(work: Object, ref: ObjectRef, stamp: Stamp) -> Outcome | None:
    manifest = manifest_of(work, ref)
    if manifest is None:
        return Refused(f"ManifestWork {work['metadata']['namespace']}/{work['metadata']['name']} is for another object: delete it.")
    return refusal(manifest, stamp)
