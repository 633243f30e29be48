# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reserves and releases quota by compare-and-swap on the FleetQuota of a namespace. What fits, `quota` decides.

Reservations are keyed by the uid of the cluster, so a repeated call changes nothing, and a killed one leaves nothing half done.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Conflict, NotFound
from ..lock.lease import SITE_NAMESPACE
from .compare_and_swap import merge_patch, swap_status
from .kinds import API_VERSION, QUOTA, QUOTA_NAME
from .model import Amounts, FleetQuota, QuotaReservation
from .observe import LiveClusters
from .quota import Admission, Claim, Limits, Refusal, Reservations, admit, claim_of, limits_of, smallest, used


class QuotaStore:
    """The quotas of the tenants of one home cluster. The quota in the site's namespace is the default for those without limits."""

    def __init__(self, home: Kube, site_namespace: str = SITE_NAMESPACE) -> None:
        self._home = home
        self._site_namespace = site_namespace

    def reserve(self, namespace: str, claims: Sequence[Claim], cached: Mapping[str, FleetQuota] | None = None) -> Mapping[str, Refusal]:
        """Reserve what fits, in one write, and return what was refused, by uid. What is reserved already stays.

        `cached` are all quotas by namespace, as a cache has them.
        """
        default = self._default() if cached is None else cached.get(self._site_namespace)

        def admitted(quota: FleetQuota) -> Admission:
            return admit(limits_of(quota, default), quota.reservations, claims)

        return self._swap(namespace, admitted, (cached or {}).get(namespace)).refused

    def reduce(self, namespace: str, uid: str, present: Amounts, amounts: Amounts) -> None:
        """Reduce a reservation to what the hub reports as still in use.

        One that is no longer the `present` one is a conflict: it may be of a later spec, and who observes again knows it.
        """

        def reduced(quota: FleetQuota) -> Admission:
            own = quota.reservations.get(uid)
            if own is None:
                return Admission(quota.reservations)
            if own.amounts != present:
                raise Conflict(f"The reservation of {own.name} in the quota of {namespace} has changed since it was observed")
            return Admission({**quota.reservations, uid: QuotaReservation(own.name, smallest(present, amounts))})

        self._swap(namespace, reduced)

    def release(self, namespace: str, uids: Iterable[str]) -> None:
        """Release the reservations of clusters whose hubs report them deleted. A quota that does not exist has none.

        It is not created: the API server refuses that while it deletes the namespace, which waits for its clusters.
        """
        gone = {*uids}

        def released(quota: FleetQuota) -> Admission:
            return Admission({uid: each for uid, each in quota.reservations.items() if uid not in gone})

        with contextlib.suppress(NotFound):
            self._swap(namespace, released, read=lambda: self._home.get(API_VERSION, QUOTA, QUOTA_NAME, namespace))

    def repair(self, namespace: str, live: Callable[[], LiveClusters]) -> list[str]:
        """Release what no cluster has, and reserve again, whatever the limits, what clusters with an assignment lost.

        `live` is called after each read of the quota: a cluster exists before its reservation, so one that is missing from the later list
        was deleted. Returns the uids that changed.
        """
        changed: list[str] = []

        def repaired(quota: FleetQuota) -> Admission:
            restored = _repaired(namespace, quota.reservations, live())
            changed[:] = sorted({*quota.reservations} ^ {*restored})
            return Admission(restored)

        self._swap(namespace, repaired)
        return changed

    def matches(self, namespace: str, quota: FleetQuota | None, live: LiveClusters) -> bool:
        """Whether a quota that was read before the clusters needs no repair."""
        reservations = quota.reservations if quota else {}
        status = (quota.raw.get("status") or {}) if quota else {}
        return not _status_changes(status, _repaired(namespace, reservations, live))

    def _default(self) -> FleetQuota | None:
        site = self._home.find(API_VERSION, QUOTA, QUOTA_NAME, self._site_namespace)
        return FleetQuota.from_object(site) if site else None

    def _swap(
        self,
        namespace: str,
        compute: Callable[[FleetQuota], Admission],
        known: FleetQuota | None = None,
        read: Callable[[], Object] | None = None,
    ) -> Admission:
        def change(item: Object) -> tuple[Object, Admission]:
            result = compute(FleetQuota.from_object(item))
            return _status_changes(item.get("status") or {}, result.reservations), result

        return swap_status(self._home, read or (lambda: self._existing(namespace)), change, known.raw if known else None)

    def _existing(self, namespace: str) -> Object:
        """The quota of the namespace. One without limits is created for a tenant that has none, to hold its reservations."""
        item = self._home.find(API_VERSION, QUOTA, QUOTA_NAME, namespace)
        if item is not None:
            return item
        metadata = {"name": QUOTA_NAME, "namespace": namespace}
        try:
            return self._home.create({"apiVersion": API_VERSION, "kind": QUOTA, "metadata": metadata, "spec": {}})
        except Conflict:
            return self._home.get(API_VERSION, QUOTA, QUOTA_NAME, namespace)


def _repaired(namespace: str, reservations: Reservations, live: LiveClusters) -> Reservations:
    kept = {uid: each for uid, each in reservations.items() if uid in live.hubs}
    lost = [claim_of(each, own) for each, own in live.assigned if each.namespace == namespace and each.uid not in kept]
    return admit(Limits(hard={}), kept, lost).reservations


def _status_changes(status: Object, reservations: Reservations) -> Object:
    """Also corrects a sum that does not match its reservations."""
    stored = {"reservations": {uid: each.to_status() for uid, each in reservations.items()}, "used": used(reservations)}
    present = {name: status.get(name) or {} for name in stored}
    return merge_patch(present, stored)
