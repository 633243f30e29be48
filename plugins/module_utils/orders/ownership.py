# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a working namespace belongs to an order: by the order's uid, not by names, which tenants choose and use again."""

from __future__ import annotations

from ..common.types import Object
from ..kube.errors import KubeError
from .model import ClusterOrder, Names


class NamespaceTaken(KubeError):
    """The working namespace of the order exists and does not belong to it. The next attempt finds it deleted, or fails again."""

    retryable = True


def owns_namespace(order: ClusterOrder, namespace: Object) -> bool:
    """Whether this Namespace was created for this very order: not for an earlier one of the same name, and not by a tenant.

    An external controller sets only the label with the order's name. That is enough until a run has added the uid: which of the orders
    with that name it is for, `working_namespace.find_namespace` decides.
    """
    metadata = namespace["metadata"]
    labels = metadata.get("labels") or {}
    wanted = order.labels
    if order.names.external_controller:  # which chooses the namespace's name too
        return all(labels.get(name) == value for name, value in wanted.items() if name == order.names.order_label or name in labels)
    return metadata["name"] == order.working_namespace and wanted.items() <= labels.items()


def former_uids(namespace: Object, names: Names) -> tuple[str, ...]:
    """The uids of the orders that had the cluster in this Namespace before an adoption. Only the controller can write them there."""
    text = (namespace["metadata"].get("annotations") or {}).get(names.former_uids_annotation) or ""
    return tuple(filter(None, text.split(",")))


def _taken_message(order: ClusterOrder, namespace: Object) -> str:
    """Which order a namespace belongs to that another order needs."""
    labels, name = namespace["metadata"].get("labels") or {}, namespace["metadata"]["name"]
    owner = f"{labels.get(order.names.order_namespace_label, '')}/{labels.get(order.names.order_label, '')}"
    if owner == f"{order.namespace}/{order.name}":
        return f"The namespace {name} belongs to an earlier ClusterOrder {owner} with the uid {labels.get(order.names.order_uid_label)}."
    return f"The namespace {name} does not belong to ClusterOrder {order.namespace}/{order.name}."


def require_own(order: ClusterOrder, namespace: Object) -> None:
    """Raise NamespaceTaken unless the Namespace belongs to the order."""
    if not owns_namespace(order, namespace):
        raise NamespaceTaken(f"{_taken_message(order, namespace)} Delete the namespace, or give the order another name.")
