# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The NodePools of a request, one for each resource class. Pure; it sends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...common.types import Object
from ...kube.errors import Invalid
from ...kube.kinds import register
from ..base import ClusterRef
from ..model import ClusterRequest, NodeRequest
from ..objects import metadata, node_set_name

GROUP = "hypershift.openshift.io"
API_VERSION = f"{GROUP}/v1beta1"
register(GROUP, "NodePool", "nodepools", after="HostedCluster")
REPLACE, IN_PLACE = "Replace", "InPlace"
# Replace needs a spare machine in each pool, which a bare-metal pool rarely has.
IN_PLACE_PLATFORMS = ("Agent", "None")
# An annotation with the class whose own settings a NodePool has. No other class can take them over.
CLASS_SETTINGS = "openfleet.clusters/class-settings"
# The settings of a request with something for each class: their field in the spec of a NodePool, and the type of one
# class's value.
BY_CLASS: Mapping[str, tuple[str, type]] = {
    "node_platforms": ("platform", dict),
    "node_labels": ("nodeLabels", dict),
    "node_taints": ("taints", list),
}


def node_pools(ref: ClusterRef, request: ClusterRequest) -> list[Object]:
    """The NodePools of the request; Invalid where a setting by class has the wrong form."""
    for setting, (_field, kind) in BY_CLASS.items():
        for resource_class, value in request.settings[setting].items():
            if not isinstance(value, kind):
                word = "a dict" if kind is dict else "a list"
                raise Invalid(f"settings.{setting}.{resource_class} is not {word}.", [setting])
    return [_node_pool(ref, request, nodes) for nodes in request.node_requests]


def _node_pool(ref: ClusterRef, request: ClusterRequest, nodes: NodeRequest) -> Object:
    settings, resource_class = request.settings, nodes.resource_class
    kind = str(settings["platform"].get("type"))
    own = {field: settings[setting][resource_class] for setting, (field, _kind) in BY_CLASS.items() if resource_class in settings[setting]}
    platform = own.pop("platform", settings["node_platform"])
    spec = {
        "release": {"image": request.version},
        "management": {
            "upgradeType": settings.get("upgrade_type") or (IN_PLACE if kind in IN_PLACE_PLATFORMS else REPLACE),
            "autoRepair": False,
        },
        "platform": {**({"agent": {}} if kind == "Agent" else {}), **platform, "type": kind},
        **own,
    }
    pool = node_pool(ref, nodes, spec)
    if any(resource_class in settings[setting] for setting in BY_CLASS):
        pool["metadata"]["annotations"] = {CLASS_SETTINGS: resource_class}
    return pool


def node_pool(ref: ClusterRef, nodes: NodeRequest, spec: Mapping[str, Any]) -> Object:
    """The NodePool of a resource class with this spec, and the number of nodes of the request."""
    name = f"{ref.name}-{node_set_name(nodes.resource_class)}"
    own = {"clusterName": ref.name, "replicas": nodes.number_of_nodes}
    return {
        "apiVersion": API_VERSION,
        "kind": "NodePool",
        "metadata": metadata(ref, name, {ref.class_label: nodes.resource_class}),
        "spec": {key: value for key, value in {**spec, **own}.items() if value is not None},
    }


def has_class_settings(pool: Object) -> bool:
    return CLASS_SETTINGS in (pool["metadata"].get("annotations") or {})


def with_upgrade_type(wanted: Object, present: Object) -> Object:
    """The wanted NodePool with the upgrade type that it was created with: HyperShift refuses another."""
    management = wanted["spec"]["management"]
    kept = present["spec"].get("management", {}).get("upgradeType", management["upgradeType"])
    return {**wanted, "spec": {**wanted["spec"], "management": {**management, "upgradeType": kept}}}
