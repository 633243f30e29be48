# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The storage classes of a new cluster, by name as in the settings of the site, and whether their drivers exist. Pure; it sends nothing.

A class is `local`, on disks of the nodes whose volumes exist already, or `remote`, on a storage system that a driver provisions from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..common.argument_checker import ArgumentChecker, Problems
from ..common.argument_spec_reader import read_options
from ..common.text import did_you_mean
from ..common.types import Object
from .errors import SiteMistake
from .part_state import PartState

RESOURCE_SET = "storage"
IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
IN_TREE = "kubernetes.io/"  # provisioners of Kubernetes itself, which have no CSIDriver
LOCAL, REMOTE = "local", "remote"
NO_PROVISIONER = f"{IN_TREE}no-provisioner"
CLASS = {
    "backend": {"type": "str", "choices": [LOCAL, REMOTE], "default": REMOTE},
    "provisioner": {"type": "str"},
    "parameters": {"type": "dict", "default": {}},
    "reclaim_policy": {"type": "str", "choices": ["Delete", "Retain"], "default": "Delete"},
    "volume_binding_mode": {"type": "str", "choices": ["Immediate", "WaitForFirstConsumer"]},
    "allow_volume_expansion": {"type": "bool"},
    "mount_options": {"type": "list", "elements": "str", "default": []},
}
CHECKER = ArgumentChecker("storage class", noun="setting")


def storage_objects(classes: Mapping[str, Any], default: str) -> list[Object]:
    """The storage classes, of which `default` is for claims without a class. Invalid lists every mistake."""
    options, problems = read_options({"options": CLASS, "required_if": [["backend", REMOTE, ["provisioner"]]]}, []), Problems()
    objects = []
    for name, given in classes.items():
        mistakes: Problems = []
        if isinstance(given, Mapping):
            objects.append(_storage_class(str(name), CHECKER.check(options, given, mistakes), name == default))
        else:
            mistakes.append("its settings must be a mapping")
        problems.extend(f"storage class {name}: {mistake}" for mistake in mistakes)
    if default and default not in classes:
        problems.append(f"the default {default} is not one of the storage classes{did_you_mean(default, [str(name) for name in classes])}")
    if problems:
        raise SiteMistake(f"The storage classes cannot be applied: {'; '.join(problems)}.", ["classes"])
    return objects


def storage_state(objects: Collection[Object], drivers: Collection[str]) -> PartState:
    """Ready once every driver that the classes name is one of the cluster's `drivers`."""
    missing = [
        f"the driver {item['provisioner']} of the storage class {item['metadata']['name']}"
        for item in objects
        if not item["provisioner"].startswith(IN_TREE) and item["provisioner"] not in drivers
    ]
    if missing:
        return PartState(False, "DriverMissing", f"The cluster does not have {', '.join(missing)}")
    return PartState(True, "StorageReady", f"{len(objects)} storage classes")


def _storage_class(name: str, settings: Mapping[str, Any], is_default: bool) -> Object:
    local = settings.get("backend") == LOCAL
    # Without a wait for the pod, a volume of a local disk could be on another node than the pod.
    binding = settings.get("volume_binding_mode") or ("WaitForFirstConsumer" if local else "Immediate")
    item: Object = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": {IS_DEFAULT: str(is_default).lower()}},
        "provisioner": settings.get("provisioner") or NO_PROVISIONER,
        "reclaimPolicy": settings.get("reclaim_policy"),
        "volumeBindingMode": binding,
        "allowVolumeExpansion": settings.get("allow_volume_expansion", not local),
    }
    if parameters := settings.get("parameters"):
        item["parameters"] = {str(key): _text(value) for key, value in parameters.items()}
    if options := settings.get("mount_options"):
        item["mountOptions"] = list(options)
    return item


def _text(value: Any) -> str:
    """Parameters are strings, also if YAML parses a number or a boolean."""
    return str(value).lower() if isinstance(value, bool) else str(value)
