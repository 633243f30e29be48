"""What disaster recovery needs on clusters with replication, as docs/disaster_recovery.md says: permissions, peers, a policy. It blocks."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.lock.lease import SITE_NAMESPACE
from ....plugins.module_utils.registry.model import REGISTRY
from ....plugins.module_utils.registry.store import RegistryStore
from ..access import Access
from .setup import profile_of

RAMEN = "ramendr.openshift.io/v1alpha1"
MANIFESTS = Path(__file__).parents[2] / "eda" / "deploy" / "kubernetes" / "dr"
# The account of the engine, and the one that peers use. The shipped manifests name the first.
CONTROLLER, PEER = "openfleet-clusters", "openfleet-dr-peer"
PEERS = "peers"
RBAC = "rbac.authorization.k8s.io"


def prepare(sites: Mapping[str, Access], policy: str) -> dict[str, Object]:
    """Make the clusters peers of each other under the policy. Returns the kubeconfig of the engine of each."""
    for site in sites.values():
        site.apply(*_accounts())
        site.kubectl("apply", "-k", str(MANIFESTS))
    kubeconfigs = {name: _kubeconfig(site, PEER) for name, site in sites.items()}
    for site in sites.values():
        site.apply(*_secrets(kubeconfigs), *_ramen(list(sites), policy))
        entries = [{"name": name, "kubeconfig_secret": _secret_name(name)} for name in sites]
        RegistryStore(site.kube, REGISTRY).register(SITE_NAMESPACE, PEERS, entries)
    return {name: _kubeconfig(site, CONTROLLER) for name, site in sites.items()}


def _accounts() -> list[Object]:
    subject = {"kind": "ServiceAccount", "name": PEER, "namespace": SITE_NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SITE_NAMESPACE}},
        *(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": SITE_NAMESPACE}}
            for name in (CONTROLLER, PEER)
        ),
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": PEER},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": PEER},
            "subjects": [subject],
        },
    ]


def _kubeconfig(site: Access, account: str) -> Object:
    """The kubeconfig of a cluster with the token of an account."""
    content: Object = json.loads(site.kubeconfig.read_text(encoding="utf-8"))
    token = site.kubectl("create", "token", account, "-n", SITE_NAMESPACE, "--duration=24h").stdout.strip()
    content["users"][0]["user"] = {"token": token}
    return content


def _secret_name(cluster: str) -> str:
    return f"{cluster}-kubeconfig"


def _secrets(kubeconfigs: Mapping[str, Object]) -> list[Object]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": _secret_name(name), "namespace": SITE_NAMESPACE},
            "data": {"kubeconfig": base64.b64encode(json.dumps(content).encode()).decode()},
        }
        for name, content in kubeconfigs.items()
    ]


def _ramen(clusters: list[str], policy: str) -> list[Object]:
    return [
        *(
            {
                "apiVersion": RAMEN,
                "kind": "DRCluster",
                "metadata": {"name": name},
                "spec": {"region": name, "s3ProfileName": profile_of(name)},
            }
            for name in clusters
        ),
        {
            "apiVersion": RAMEN,
            "kind": "DRPolicy",
            "metadata": {"name": policy},
            "spec": {"drClusters": clusters, "schedulingInterval": "1m"},
        },
    ]
