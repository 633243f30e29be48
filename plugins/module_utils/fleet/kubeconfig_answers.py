# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Answers requests for kubeconfigs: with a short-lived token of an account inside the cluster. Its results are secret.

The kubeconfig of the administrator stays on the hub. A cluster belongs to its tenant, so what it answers is not trusted, and never
repeated.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ..common.timestamps import parse_time
from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Conflict, KubeError
from ..orders.model import ClusterOrder, Names
from ..providers.base import ProviderError
from .cluster_connection import connect
from .kubeconfig_request import ACCESS_NAMESPACE, BadRequest, KubeconfigAnswer, KubeconfigRequest, kubeconfig_for

RBAC = "rbac.authorization.k8s.io"
TOKEN_LIMIT = 16384


def answer(hub: Kube, names: Names, request: Object, order: Object | None) -> KubeconfigAnswer:
    """The answer to a request, for the order of the cluster that it names; None where this hub has no such cluster."""
    try:
        wanted = KubeconfigRequest.from_secret(request)
        if order is None or "deletionTimestamp" in order["metadata"]:
            return KubeconfigAnswer(error="This hub does not have the cluster, or it is being deleted.")
        return _issue(hub, ClusterOrder.from_object(order, names), wanted)
    except BadRequest as error:
        return KubeconfigAnswer(error=str(error))
    except (KubeError, ProviderError) as error:
        return KubeconfigAnswer(error=f"The kubeconfig cannot be read now: {error}")


def _issue(hub: Kube, order: ClusterOrder, wanted: KubeconfigRequest) -> KubeconfigAnswer:
    connection = connect(hub, order)
    if connection is None:
        return KubeconfigAnswer(error="The cluster is not created yet: wait until it is Ready.")
    cluster, content = connection.kube, connection.kubeconfig
    account = _ensure_account(cluster, wanted)
    token, expires = cluster.request_token(account, wanted.expiration_seconds)
    if not token or len(token) > TOKEN_LIMIT or not token.isascii() or not token.isprintable():
        return KubeconfigAnswer(error="The API server of the cluster issued no token: check the account in the cluster.")
    # A cluster may give a token for longer than was asked; it is not shown for longer.
    latest = datetime.now(UTC) + timedelta(seconds=wanted.expiration_seconds)
    entry = next(
        (each["cluster"] for each in content["clusters"] if each["name"] == _cluster_name(content)), content["clusters"][0]["cluster"]
    )
    return KubeconfigAnswer(kubeconfig_for(order.name, entry, token), "", min(parse_time(expires) or latest, latest))


def _cluster_name(content: Object) -> str:
    current = content.get("current-context")
    contexts = (each.get("context") or {} for each in content.get("contexts") or () if each.get("name") == current)
    return str(next(contexts, {}).get("cluster") or "")


def _ensure_account(cluster: Kube, wanted: KubeconfigRequest) -> Object:
    """The account of the user in the cluster, which administrates it."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": wanted.account, "namespace": ACCESS_NAMESPACE}}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": wanted.account},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": wanted.account, "namespace": ACCESS_NAMESPACE}],
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ACCESS_NAMESPACE}}
    for item in (namespace, account, binding):
        try:
            cluster.create(item)
        except Conflict:
            continue  # it exists: the user has asked before
    return account
