"""The web console of a hosted cluster: no console runs, but its address is published as the console's operator does. It blocks."""

from __future__ import annotations

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.kube.client import Kube

NAMESPACE, CONFIG_MAP = "openshift-config-managed", "console-public"


def publish(kube: Kube, cluster: Object) -> None:
    """Publish the address in the hosted cluster; a cluster without a domain has none."""
    dns = cluster["spec"].get("dns", {})
    if not dns.get("baseDomain"):
        return
    domain = ".".join(part for part in (dns.get("baseDomainPrefix", cluster["metadata"]["name"]), dns["baseDomain"]) if part)
    metadata = {"name": CONFIG_MAP, "namespace": NAMESPACE}
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, force=True)
    data = {"consoleURL": f"https://console-openshift-console.apps.{domain}"}
    kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, force=True)
