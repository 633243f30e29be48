# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Answers requests for the workloads of a cluster: lists them in the cluster, once, within the limits of a cluster that is not trusted.

Where Flux of the hub applies to the cluster, its objects for the order are workloads too.
"""

from __future__ import annotations

from ..common.types import Object
from ..gitops.from_hub import objects_of_hub
from ..kube.client import Kube
from ..kube.errors import KubeError, NotFound
from ..orders.gitops import is_from_hub
from ..orders.model import ClusterOrder, Names
from ..providers.base import ProviderError
from .cluster_connection import connect
from .workloads import KINDS, to_json, workload_of
from .workloads_request import WorkloadsAnswer

RESPONSE_BYTES, TOTAL_BYTES = 2**23, 2**24


def answer_workloads(hub: Kube, names: Names, order: Object | None) -> WorkloadsAnswer:
    """The workloads of the cluster of this order; None where this hub has no such cluster."""
    if order is None or "deletionTimestamp" in order["metadata"]:
        return WorkloadsAnswer(error="This hub does not have the cluster, or it is being deleted.")
    try:
        parsed = ClusterOrder.from_object(order, names)
        connection = connect(hub, parsed, RESPONSE_BYTES, TOTAL_BYTES)
        if connection is None:
            return WorkloadsAnswer(error="The cluster is not created yet.")
        found = _objects(connection.kube) + (objects_of_hub(hub, parsed.working_namespace) if is_from_hub(parsed) else [])
        return WorkloadsAnswer(to_json(map(workload_of, found)))
    except (KubeError, ProviderError) as error:
        return WorkloadsAnswer(error=f"The cluster does not list its workloads now: {error}")


def _objects(cluster: Kube) -> list[Object]:
    found: list[Object] = []
    for api_version, kind in KINDS:
        try:
            found += cluster.list_all(api_version, kind)
        except NotFound:
            continue  # a cluster without Flux
    return found
