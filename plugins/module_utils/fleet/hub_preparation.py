# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A hub's own side: definitions, namespaces and permissions that its engine and its agent need, and the credential for the home cluster.

Deployments are not part of it: their image and settings are the site's choice.
"""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime, timedelta

from ..common.types import Object
from ..kube.client import Kube
from .shipped_manifests import CRDS, DEPLOY, Applied, ensure, read_manifests

DEFINITIONS = ("clusterorders.yaml", "addresspools.yaml")
CREATED = (
    "namespace.yaml",
    "service_account.yaml",
    "cluster_role.yaml",
    "cluster_role_binding.yaml",
    "role.yaml",
    "role_binding.yaml",
    "tenant_cluster_role.yaml",
    "operator_cluster_role.yaml",
    "policy_config_map.yaml",
    "policy_orders.yaml",
    "policy_orders_binding.yaml",
    "policy_namespaces.yaml",
    "policy_namespaces_binding.yaml",
)
OF_THE_AGENT = (*CREATED[1:6], "policy.yaml", "policy_binding.yaml")
CREDENTIAL, KEY = "openfleet-fleet-home", "kubeconfig"  # the Secret that the agent reads, in the site's namespace
RENEW_BEFORE = timedelta(days=30)


def prepare(hub: Kube, site_namespace: str, *, check_mode: bool = False) -> list[Applied]:
    """Create what is missing on the hub. The namespace of the site comes first."""
    files = [CRDS / name for name in DEFINITIONS]
    files += [DEPLOY / name for name in CREATED] + [DEPLOY / "fleet_agent" / name for name in OF_THE_AGENT]
    items = [_in_site(item, site_namespace) for item in read_manifests(files)]
    return ensure(hub, items, check_mode=check_mode)


def needs_credential(hub: Kube, site_namespace: str, now: datetime) -> bool:
    """Whether the agent has no credential, or one that ends soon."""
    item = hub.find("v1", "Secret", CREDENTIAL, site_namespace)
    if item is None:
        return True
    expires = _expiry(str((item.get("data") or {}).get(KEY, "")))
    return expires is None or expires - now < RENEW_BEFORE


def store_credential(hub: Kube, site_namespace: str, kubeconfig: Object, *, check_mode: bool = False) -> bool:
    """Write the kubeconfig for the home cluster. Returns whether it differs from the present one."""
    text = json.dumps(kubeconfig, sort_keys=True)
    present = hub.find("v1", "Secret", CREDENTIAL, site_namespace)
    data = {KEY: base64.b64encode(text.encode()).decode()}
    if present and present.get("data") == data:
        return False
    if not check_mode:
        metadata = {"name": CREDENTIAL, "namespace": site_namespace}
        hub.apply({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data}, force=True)
    return True


def _in_site(item: Object, site_namespace: str) -> Object:
    """The object with the namespace of the site instead of that of the manifests."""
    shipped = "openfleet-system"
    if shipped == site_namespace:
        return item
    replaced: Object = json.loads(json.dumps(item).replace(f'"{shipped}"', json.dumps(site_namespace)))
    return replaced


def _expiry(data: str) -> datetime | None:
    """When the token of a kubeconfig expires; None for one that is not ours."""
    try:
        config = json.loads(base64.b64decode(data))
        payload = str(config["users"][0]["user"]["token"]).split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return datetime.fromtimestamp(int(claims["exp"]), UTC)
    except (ValueError, KeyError, IndexError, TypeError, binascii.Error, OverflowError):
        return None
