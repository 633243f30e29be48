# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Repairs what killed runs left: reservations without a cluster, and clusters without their reservations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..kube.client import Kube
from ..kube.errors import KubeError
from ..lock.lease import SITE_NAMESPACE
from .hub_store import HubStore
from .kinds import API_VERSION, HUB, QUOTA
from .model import ClusterAssignment
from .observe import observe_live, server_time
from .quota_store import QuotaStore


@dataclass(frozen=True)
class Swept:
    """The uids whose reservations changed, by namespace and by hub, the assignments without a cluster, and what failed.

    An assignment is reported and kept: behind it is a cluster, and its FleetCluster may have been lost by mistake.
    """

    quotas: Mapping[str, list[str]]
    hubs: Mapping[str, list[str]]
    orphans: tuple[ClusterAssignment, ...]
    errors: tuple[str, ...] = ()


def sweep(home: Kube, site_namespace: str = SITE_NAMESPACE) -> Swept:
    """Repair all quotas and hubs. The failure of one, for example in a namespace that is being deleted, ends on that one."""
    quotas, hubs, live, now = QuotaStore(home, site_namespace), HubStore(home), observe_live(home), server_time(home)
    namespaces = {item["metadata"]["namespace"] for item in home.list_all(API_VERSION, QUOTA)}
    names = {item["metadata"]["name"] for item in home.list_all(API_VERSION, HUB)}
    errors: list[str] = []

    def repaired(work: Callable[[str], list[str]], keys: set[str]) -> dict[str, list[str]]:
        results = dict(zip(sorted(keys), home.in_parallel(work, sorted(keys)), strict=True))
        errors.extend(str(each) for each in results.values() if isinstance(each, KubeError))
        return {key: each for key, each in results.items() if each and not isinstance(each, KubeError)}

    return Swept(
        repaired(lambda name: quotas.repair(name, lambda: observe_live(home)), namespaces | {each.namespace for each in live.assigned}),
        repaired(lambda name: hubs.repair(name, lambda: observe_live(home), now), names),
        live.orphans,
        tuple(errors),
    )
