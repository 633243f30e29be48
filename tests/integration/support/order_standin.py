"""Stands in for the engine of a hub: orders of a fleet become Ready, follow their specs, and are deleted. It runs no playbook."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.assigned_order import UID_LABEL
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError

ORDERS, ORDER = "cloudkit.openshift.io/v1alpha1", "ClusterOrder"
FINALIZER = "cloudkit.openshift.io/finalizer"
POLL_SECONDS = 0.3
SHARE = 0.5  # of the orders that wait for it, which a pass brings forward


class OrderStandin:
    """Passes over all orders again and again; an API server that does not answer delays it."""

    def __init__(self, hub: Access, randomness: random.Random) -> None:
        self._hub = hub
        self._random = randomness
        self._ended = threading.Event()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def orders(self) -> list[Object]:
        return list(self._hub.kube.list_all(ORDERS, ORDER, label_selector=UID_LABEL))

    def _run(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            with contextlib.suppress(KubeError):
                for order in self.orders():
                    if self._random.random() < SHARE:
                        self._advance(order)

    def _advance(self, order: Object) -> None:
        metadata, kube = order["metadata"], self._hub.kube
        finalizers = metadata.get("finalizers") or []
        with contextlib.suppress(KubeError):  # the agent has changed it meanwhile
            if "deletionTimestamp" in metadata:
                kube.patch(order, {"metadata": {"finalizers": [name for name in finalizers if name != FINALIZER] or None}})
            elif FINALIZER not in finalizers:
                kube.patch(order, {"metadata": {"finalizers": [*finalizers, FINALIZER]}})
            elif (order.get("status") or {}).get("observedGeneration") != metadata["generation"]:
                kube.patch(order, {"status": _ready(order)}, subresource="status")


def _ready(order: Object) -> Object:
    requests = order["spec"].get("nodeRequests") or []
    sets = [
        {"resourceClass": each["resourceClass"], "requested": each["numberOfNodes"], "ready": each["numberOfNodes"]} for each in requests
    ]
    return {
        "phase": "Ready",
        "observedGeneration": order["metadata"]["generation"],
        "apiURL": f"https://{order['metadata']['namespace']}.example.com",
        "nodeRequests": requests,
        "nodeSets": sets,
    }
