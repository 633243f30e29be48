# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Repairs what killed runs and removed finalizers left: reservations and Secrets without a cluster, clusters without reservations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from ..kube.client import Kube
from ..kube.errors import Forbidden, KubeError
from ..lock.lease import SITE_NAMESPACE
from .hub_store import HubStore
from .kinds import API_VERSION, HUB, QUOTA
from .model import ClusterAssignment, FleetQuota, Hub
from .observe import LiveClusters, observe_live, server_time
from .quota_store import QuotaStore
from .secret_copies import SecretCopies
from .up_to_date import is_up_to_date


@dataclass(frozen=True)
class Swept:
    """The uids whose reservations changed, by namespace and by hub, the assignments without a cluster, and what failed.

    An assignment is reported and kept: behind it is a cluster, and its FleetCluster may have been lost by mistake. `outdated` are the
    namespaces and names of clusters that are not as a reconcile leaves them. One is under way, or is missing.
    """

    quotas: Mapping[str, list[str]]
    hubs: Mapping[str, list[str]]
    orphans: tuple[ClusterAssignment, ...]
    errors: tuple[str, ...] = ()
    outdated: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class _Reservations:
    quotas: Mapping[str, FleetQuota]  # by namespace
    hubs: Mapping[str, Hub]


def _list_reservations(home: Kube) -> _Reservations:
    quotas, hubs = map(FleetQuota.from_object, home.list_all(API_VERSION, QUOTA)), map(Hub.from_object, home.list_all(API_VERSION, HUB))
    return _Reservations({each.namespace: each for each in quotas}, {each.name: each for each in hubs})


def sweep(home: Kube, site_namespace: str = SITE_NAMESPACE) -> Swept:
    """Repair all quotas and hubs. The failure of one, for example in a namespace that is being deleted, ends on that one.

    Reservations are listed before and after the clusters. What differs both times is read again, with its clusters after it, before it is
    repaired: while clusters come and go, the lists differ for a moment.
    """
    quotas, hubs, copies, now = QuotaStore(home, site_namespace), HubStore(home), SecretCopies(home), server_time(home)
    earlier, live, later = _list_reservations(home), observe_live(home), _list_reservations(home)
    tenants = {*earlier.quotas, *later.quotas, *(each.namespace for each, _own in live.assigned)}
    namespaces = {name for name in tenants if not any(quotas.matches(name, each.quotas.get(name), live) for each in (earlier, later))}
    common = earlier.hubs.keys() & later.hubs.keys()
    names = {name for name in common if not any(hubs.matches(each.hubs[name], live, now) for each in (earlier, later))}
    errors: list[str] = []

    def repaired(work: Callable[[str], list[str]], keys: set[str]) -> dict[str, list[str]]:
        results = dict(zip(sorted(keys), home.in_parallel(work, sorted(keys)), strict=True))
        errors.extend(str(each) for each in results.values() if isinstance(each, KubeError))
        return {key: each for key, each in results.items() if each and not isinstance(each, KubeError)}

    return Swept(
        repaired(lambda name: quotas.repair(name, lambda: observe_live(home)), namespaces),
        repaired(lambda name: hubs.repair(name, lambda: observe_live(home), now, partial(_delete_copy, copies, name)), names),
        live.orphans,
        tuple(errors),
        _outdated(live, later),
    )


def _outdated(live: LiveClusters, reserved: _Reservations) -> frozenset[tuple[str, str]]:
    pairs = [*live.assigned, *((each, None) for each in live.unassigned if each.hub or each.is_deleting)]
    return frozenset(
        (each.namespace, each.name)
        for each, assignment in pairs
        if not is_up_to_date(each, assignment, reserved.quotas.get(each.namespace), reserved.hubs.get(each.hub))
    )


def _delete_copy(copies: SecretCopies, hub: str, uid: str) -> None:
    """The copies are not listed: that would need the permission to read them."""
    with contextlib.suppress(Forbidden):  # then the engine cannot have written one either
        copies.delete(uid, hub)
