# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kubeconfig of a cluster of the fleet, read from the hub when it is needed. What it returns is secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .foreign_kubeconfig import kubeconfig_of
from .hypershift import API_VERSION as HYPERSHIFT
from .kube import Kube, Object
from .kube_errors import NotFound
from .orders import working_namespace


def kubeconfig_from(hub: Kube, source: Mapping[str, Any]) -> Object:
    """The kubeconfig that `source` leads to: a Secret of a registered cluster, or what was made for an order."""
    if "secret" in source:
        secret = hub.get("v1", "Secret", str(source["secret"]), str(source["namespace"]))
        return kubeconfig_of(secret, str(source.get("endpoint") or ""))
    name = str(source["order"])
    namespace = working_namespace(str(source["namespace"]), name)
    cluster = hub.find(HYPERSHIFT, "HostedCluster", name, namespace)
    secret_name = (((cluster or {}).get("status") or {}).get("kubeconfig") or {}).get("name")
    if not secret_name:
        raise NotFound(f"The cluster of order {source['namespace']}/{name} has no kubeconfig yet; ask when its control plane is available.")
    return kubeconfig_of(hub.get("v1", "Secret", secret_name, namespace))
