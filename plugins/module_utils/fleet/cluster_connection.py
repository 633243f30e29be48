# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A connection from a hub to the cluster of an order, with the administrator's kubeconfig, which never leaves the hub.

A cluster belongs to its tenant, so what it answers is not trusted: it has little time, and what it sends is limited in size.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..common.third_party import urllib3
from ..common.types import Object
from ..kube.client import Kube
from ..kube.connections import Limits
from ..kube.untrusted import self_contained, target_of
from ..orders.model import ClusterOrder
from ..orders.observe import cluster_ref, provider_type, recorded_cluster
from ..providers.factory import ProviderFactory

TOTAL_SECONDS, REQUEST_SECONDS = 20.0, 8.0  # the facade waits for 30 seconds
RESPONSE_BYTES, TOTAL_BYTES = 2**20, 2**22


@dataclass(frozen=True)
class ClusterConnection:
    """The connection, and the kubeconfig that it is made from."""

    kube: Kube
    kubeconfig: Object = field(repr=False)


def connect(
    hub: Kube, order: ClusterOrder, response_bytes: int = RESPONSE_BYTES, total_bytes: int = TOTAL_BYTES
) -> ClusterConnection | None:
    """The connection; None for a cluster that is not created yet."""
    if not provider_type(order):
        return None
    provider = ProviderFactory.for_cluster(provider_type(order), cluster_ref(hub, order))
    content = self_contained(provider.kubeconfig(recorded_cluster(order)).content, "The cluster has a kubeconfig")
    timeout = urllib3.Timeout(connect=REQUEST_SECONDS, read=REQUEST_SECONDS)
    # The address was checked by its provider, where a tenant has named it.
    limits = Limits(response_bytes, total_bytes, TOTAL_SECONDS)
    return ClusterConnection(Kube(target_of(content), timeout, tries=2, limits=limits), content)
