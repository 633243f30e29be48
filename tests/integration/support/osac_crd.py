"""A stand-in for OSAC's CRD of orders: it drops and refuses the same status fields as OSAC's."""

from __future__ import annotations

from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import COLLECTION_CRDS, load_crd

KEPT = ("phase", "conditions", "clusterReference", "nodeRequests")
PHASES = ["Progressing", "Failed", "Ready", "Deleting"]


def stand_in(group: str) -> dict[str, Any]:
    """Our CRD with the smaller status of OSAC's. In the group osac.openshift.io a node set has other fields than ours."""
    crd = load_crd(COLLECTION_CRDS / "clusterorders.yaml", group)
    (version,) = crd["spec"]["versions"]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    fields = {name: status["properties"][name] for name in KEPT}
    fields["phase"]["enum"] = PHASES
    for name in ("conditions", "nodeRequests"):
        fields[name] = {"type": "array", "items": fields[name]["items"]}
    if group == "osac.openshift.io":
        text = {"type": "string"}
        node_set = {"type": "object", "required": ["name"], "properties": {"name": text, "fabricInterface": text}}
        keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
        fields |= {"apiEndpoint": text, "nodeSets": {"type": "array", "items": node_set, **keys}}
    status["properties"] = fields
    return crd


def replace_crds(hub: Access, *crds: dict[str, Any]) -> None:
    hub.kubectl("delete", "crd", "clusterorders.cloudkit.openshift.io")
    hub.install_crds(*crds)
