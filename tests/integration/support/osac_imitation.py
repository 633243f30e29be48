"""An imitation of OSAC's controller of ClusterOrders, as its builds from November 2025 on behave; written from a description.

It holds the order by its own finalizer, makes the namespace, the account and its binding, writes phase, conditions and cluster reference of
its own with optimistic locking, and posts the whole order to a webhook, without credentials, again on every reconcile and for ever. The
name of the namespace is random in earlier builds and `<namespace>-<name>` in later ones. When the order is deleted it deletes the namespace
at once, whatever finalizers of ours the order has, and removes its own once the namespace is gone.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import urllib3
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Conflict, KubeError

GROUP = "cloudkit.openshift.io"
FINALIZER, OURS = f"{GROUP}/finalizer", f"{GROUP}/infrastructure"
ACCOUNT = "cloudkit"
RECONCILE_SECONDS = 0.3
SETTLED_POSTS = 5


class OsacImitation:
    """`post` sends a webhook and answers with its code. `writes` counts what it wrote to each order's status.

    `random_names` are those of the namespaces.
    """

    def __init__(self, kube: Kube, namespace: str, post: Callable[[str, Object], int], *, random_names: bool = False) -> None:
        self.writes: Counter[str] = Counter()
        self.posts: Counter[str] = Counter()
        self._kube = kube
        self._namespace = namespace
        self._post = post
        self._random_names = random_names
        self._over = threading.Event()
        self._names: dict[str, str] = {}

    @contextlib.contextmanager
    def running(self) -> Iterator[OsacImitation]:
        thread = threading.Thread(target=self._work, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    def settled(self, version: Callable[[], str], name: str) -> bool:
        """Whether nothing was written while this controller reconciled, and posted, several times."""
        before, posts = version(), self.posts[name]
        until(lambda: self.posts[name] >= posts + SETTLED_POSTS, "the other controller posts again and again")
        return version() == before

    def _work(self) -> None:
        while not self._over.wait(RECONCILE_SECONDS):
            with contextlib.suppress(KubeError, urllib3.exceptions.HTTPError):  # it tries again at the next reconcile
                for order in self._kube.list_all(f"{GROUP}/v1alpha1", "ClusterOrder", self._namespace):
                    self._reconcile(order)

    def _reconcile(self, order: Object) -> None:
        if order["metadata"].get("deletionTimestamp"):
            self._delete(order)
            return
        finalizers = order["metadata"].get("finalizers", [])
        if FINALIZER not in finalizers:
            order = self._kube.patch(order, {"metadata": {"finalizers": [*finalizers, FINALIZER]}})
        namespace = self._dependencies(order)
        cluster = self._kube.find("hypershift.openshift.io/v1beta1", "HostedCluster", order["metadata"]["name"], namespace)
        conditions = {item["type"]: item["status"] for item in ((cluster or {}).get("status") or {}).get("conditions", [])}
        ready = conditions.get("Available") == "True"
        reference = {"namespace": namespace, "serviceAccountName": ACCOUNT, "roleBindingName": ACCOUNT}
        reference["hostedClusterName"] = order["metadata"]["name"] if cluster else ""
        verdicts = {"Accepted": True, "NamespaceCreated": True, "ControlPlaneAvailable": ready, "Progressing": not ready}
        self._write(order, "Ready" if ready else "Progressing", verdicts, reference)
        self._send("create-hosted-cluster", order)

    def _working(self, metadata: Object) -> str:
        """The name of the order's namespace, chosen once."""
        usual, chosen = f"{metadata['namespace']}-{metadata['name']}", f"cluster-{metadata['name']}-{secrets.token_hex(3)}"
        return self._names.setdefault(metadata["uid"], chosen if self._random_names else usual)

    def _dependencies(self, order: Object) -> str:
        name = self._working(order["metadata"])
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": ACCOUNT, "namespace": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": name}],
        }
        labels = {f"{GROUP}/clusterorder": order["metadata"]["name"]}
        for item in (
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": name}},
            binding,
        ):
            with contextlib.suppress(Conflict):  # it is there already
                self._kube.create(item)
        return name

    def _write(self, order: Object, phase: str, verdicts: dict[str, bool], reference: Object) -> None:
        """Its own conditions, by type, as Kubernetes' helper for them does; others stay."""
        status = order.get("status") or {}
        conditions = {item["type"]: item for item in status.get("conditions", [])}
        for kind, holds in verdicts.items():
            value = "True" if holds else "False"
            if conditions.get(kind, {}).get("status") != value:
                now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                conditions[kind] = {"type": kind, "status": value, "reason": "Osac", "message": "", "lastTransitionTime": now}
        wanted = status | {"phase": phase, "conditions": list(conditions.values()), "clusterReference": reference}
        if wanted != status:
            self._kube.replace(order | {"status": wanted}, subresource="status")
            self.writes[order["metadata"]["name"]] += 1

    def _delete(self, order: Object) -> None:
        metadata = order["metadata"]
        if (order.get("status") or {}).get("phase") != "Deleting":
            order = self._kube.replace(order | {"status": (order.get("status") or {}) | {"phase": "Deleting"}}, subresource="status")
            self.writes[metadata["name"]] += 1
        if OURS in metadata.get("finalizers", []):
            self._send("delete-hosted-cluster", order)
        namespace = self._kube.find("v1", "Namespace", self._working(metadata))
        if namespace:
            self._kube.delete(namespace)
        elif FINALIZER in metadata.get("finalizers", []):
            left = [name for name in metadata["finalizers"] if name != FINALIZER]
            self._kube.patch(order, {"metadata": {"finalizers": left}})

    def _send(self, endpoint: str, order: Object) -> None:
        if self._post(endpoint, order) == 202:
            self.posts[order["metadata"]["name"]] += 1
