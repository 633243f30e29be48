# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which Namespace of a hub is an order's working namespace. It reads through a reader, and decides no action.

Our own has a name of our own. An external controller chooses the name, `<namespace>-<name>` or a random one, writes it to the order's
`status.clusterReference`, and labels the namespace with the order's name. The label alone does not say which order of that name it is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..common.types import Object
from ..kube.client import Kube
from .model import ClusterOrder
from .ownership import owns_namespace


class NamespaceReader(Protocol):
    """Where namespaces are read."""

    @property
    def kube(self) -> Kube: ...

    def named(self, name: str) -> Object | None: ...

    def labelled(self, order: ClusterOrder) -> Sequence[Object]:
        """The namespaces with the label of the order's name."""


def find_namespace(order: ClusterOrder, reader: NamespaceReader) -> Object | None:
    """The working namespace; None where it does not exist. The caller checks that it belongs to the order."""
    if not order.names.external_controller:
        return reader.named(order.working_namespace)
    if order.recorded_namespace and (found := reader.named(order.recorded_namespace)):
        return found
    usual = order.names.working_namespace(order.namespace, order.name)
    own = [item for item in reader.labelled(order) if owns_namespace(order, item)]
    own = [item for item in own if "deletionTimestamp" not in item["metadata"]] or own
    marked = [item for item in own if item["metadata"]["labels"].get(order.names.order_uid_label) == order.uid]
    named = [item for item in own if item["metadata"]["name"] == usual]
    if marked or named:
        return (marked or named)[0]
    if len(own) == 1 and not _has_namesake(order, reader.kube):
        return own[0]
    return reader.named(usual)  # of another order, if it exists


def _has_namesake(order: ClusterOrder, kube: Kube) -> bool:
    """Whether another namespace has an order of the same name, which the label could mean as well."""
    orders = kube.list_all(order.names.api_version, "ClusterOrder", field_selector=f"metadata.name={order.name}")
    return any(item["metadata"]["name"] == order.name and item["metadata"]["namespace"] != order.namespace for item in orders)
