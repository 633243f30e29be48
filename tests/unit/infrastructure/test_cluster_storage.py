"""The storage classes that the settings of a site become, and when they can be used."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.cluster_storage import storage_objects, storage_state
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid

IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
FAST = {"provisioner": "csi.example.com", "parameters": {"pool": "ssd", "replicas": 3, "thin": True}, "mount_options": ["noatime"]}


def test_remote_and_local_classes_and_the_default() -> None:
    fast, scratch = storage_objects({"fast": FAST, "scratch": {"backend": "local", "reclaim_policy": "Retain"}}, "fast")
    assert fast == {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast", "annotations": {IS_DEFAULT: "true"}},
        "provisioner": "csi.example.com",
        "parameters": {"pool": "ssd", "replicas": "3", "thin": "true"},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": True,
        "mountOptions": ["noatime"],
    }
    assert scratch["metadata"]["annotations"] == {IS_DEFAULT: "false"}
    assert (scratch["provisioner"], scratch["volumeBindingMode"]) == ("kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    assert (scratch["allowVolumeExpansion"], scratch["reclaimPolicy"]) == (False, "Retain")


@pytest.mark.parametrize(
    ("classes", "default", "message"),
    [
        ({"fast": {}}, "", 'storage class fast: setting backend is "remote", and then provisioner is required'),
        ({"fast": {"backend": "tape"}}, "", 'storage class fast: setting backend must be one of "local", "remote", not "tape"'),
        ({"fast": FAST | {"reclaimPolicy": "Delete"}}, "", "setting reclaimPolicy is not known to this storage class"),
        ({"fast": "csi.example.com"}, "", "storage class fast: its settings must be a mapping"),
        ({"fast": FAST}, "fas", "the default fas is not one of the storage classes"),
    ],
)
def test_mistake_is_named(classes: dict[str, Any], default: str, message: str) -> None:
    with pytest.raises(Invalid) as caught:
        storage_objects(classes, default)
    assert message in str(caught.value)


def test_a_class_is_ready_once_its_driver_is_there() -> None:
    objects = storage_objects({"fast": FAST, "scratch": {"backend": "local"}}, "")
    missing = storage_state(objects, ["other.example.com"])
    assert (missing.ready, missing.reason) == (False, "DriverMissing")
    assert missing.message == "The cluster does not have the driver csi.example.com of the storage class fast"
    assert storage_state(objects, ["csi.example.com"]).ready
