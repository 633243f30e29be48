# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What OpenShift Cluster Manager installs into a cluster: objects as syncsets, and add-ons."""

from __future__ import annotations

from ...common.types import Object
from ..base import ProviderError
from ..model import Addon, ResourceSet
from ..resources import OWNER
from .api import segment
from .fenced_api import FencedApi
from .redaction import listed

SYNCSET, ADDON = "Syncset", "AddOnInstallation"


class Syncsets:
    """The resource sets of one cluster, each a syncset of the same name."""

    def __init__(self, service: FencedApi, cluster_path: str) -> None:
        self._service = service
        self._path = f"{cluster_path}/external_configuration/syncsets"

    def apply(self, resource_set: ResourceSet) -> None:
        wanted = {"resources": [_labelled(item, resource_set.name) for item in resource_set.items]}
        found = self._find(resource_set.name)
        if not resource_set.items:
            self._delete(resource_set.name, found)
        elif found is None:
            self._service.post(self._path, SYNCSET, resource_set.name, {"id": resource_set.name, **wanted})
        elif found.get("resources") != wanted["resources"]:
            # The whole list: the service deletes in the cluster what the list has no longer.
            self._service.patch(self._path_of(resource_set.name), SYNCSET, resource_set.name, found, wanted)

    def remove(self, name: str) -> bool:
        """Delete the syncset; True once there is none."""
        found = self._find(name)
        self._delete(name, found)
        return found is None

    def _delete(self, name: str, found: Object | None) -> None:
        if found is not None:
            self._service.delete(self._path_of(name), SYNCSET, name, found)

    def _find(self, name: str) -> Object | None:
        return self._service.api.find(self._path_of(name), f"get syncset {name} of {self._service.name}")

    def _path_of(self, name: str) -> str:
        return f"{self._path}/{segment(name)}"


def _labelled(item: Object, resource_set: str) -> Object:
    """The object with the label by which the objects of a set are found in a cluster of any provider."""
    metadata = item.get("metadata") or {}
    return item | {"metadata": metadata | {"labels": (metadata.get("labels") or {}) | {OWNER: resource_set}}}


def install_addon(service: FencedApi, cluster_path: str, addon: Addon) -> bool:
    """Have the add-on with these parameters; True once it is ready."""
    path = f"{cluster_path}/addons"
    parameters = [{"id": key, "value": value} for key, value in sorted(addon.parameters.items())]
    service.api.hide(addon.parameters.values())
    found = service.api.find(f"{path}/{segment(addon.id)}", f"get add-on {addon.id} of {service.name}")
    if found is None:
        service.post(path, ADDON, addon.id, {"addon": {"id": addon.id}, "parameters": parameters})
        return False
    present = {entry.get("id"): entry.get("value") for entry in listed(found.get("parameters"))}
    if any(present.get(key) != value for key, value in addon.parameters.items()):
        service.patch(f"{path}/{segment(addon.id)}", ADDON, addon.id, found, {"parameters": parameters})
        return False
    if found.get("state") == "failed":
        raise ProviderError(f"The add-on {addon.id} of {service.name} failed: {found.get('state_description') or 'no reason is given'}.")
    return found.get("state") == "ready"
