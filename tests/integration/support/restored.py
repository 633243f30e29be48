"""An order as a backup returns it, with another uid, and the adoption of its cluster."""

from __future__ import annotations

from typing import Any

from .in_process import act
from .orders import Orders


def restore(orders: Orders) -> tuple[str, str]:
    """Delete the order around the controller and create it again. Returns the uid before and the uid after."""
    order = orders.get()
    orders.patch({"metadata": {"finalizers": None}})
    orders.ask_to_delete()
    metadata = {key: order["metadata"][key] for key in ("name", "namespace", "finalizers")}
    restored = orders.kube.create({key: order[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": metadata})
    return order["metadata"]["uid"], restored["metadata"]["uid"]


def adopt(orders: Orders, check: bool = False) -> dict[str, Any]:
    selection = {"name": "demo", "namespace": orders.namespace}
    answer = act("cluster_order_adopt", {"kubeconfig": str(orders.hub.kubeconfig), **selection}, check=check)
    assert not answer.get("failed"), answer
    return answer
