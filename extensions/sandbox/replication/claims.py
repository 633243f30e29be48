"""The driver of the storage class: it binds claims to volumes, and lets go of them. It blocks."""

from __future__ import annotations

import contextlib

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.kube.client import Kube
from ....plugins.module_utils.kube.errors import Conflict
from .volumes import STORAGE_CLASS, Volume, is_bound, persistent_volume


def bind(kube: Kube, claim: Object) -> None:
    """Bind a claim of the storage class to a volume, which may be a restored one. A claim is bound only when its data exist."""
    if claim["spec"].get("storageClassName") != STORAGE_CLASS or is_bound(claim):
        return
    metadata = claim["metadata"]
    with contextlib.suppress(Conflict):  # it exists: the copy of a primary
        kube.create(Volume(metadata["namespace"], metadata["name"], labels=metadata.get("labels") or {}).to_object())
    name = claim["spec"].get("volumeName") or f"pvc-{metadata['uid']}"
    volume = kube.find("v1", "PersistentVolume", name)
    if volume is None:
        wanted = persistent_volume(claim)
        volume = kube.create(wanted | {"metadata": {"name": name}})
    if volume["spec"]["claimRef"].get("uid") != metadata["uid"]:
        volume = kube.patch(volume, {"spec": {"claimRef": {"uid": metadata["uid"]}}})
    kube.patch(volume, {"status": {"phase": "Bound"}}, subresource="status", checked=False)
    if "volumeName" not in claim["spec"]:
        claim = kube.patch(claim, {"spec": {"volumeName": name}})
    status = {"phase": "Bound", "accessModes": claim["spec"]["accessModes"], "capacity": volume["spec"]["capacity"]}
    kube.patch(claim, {"status": status}, subresource="status", checked=False)


def create(kube: Kube, wanted: list[Object]) -> None:
    """Create the claims of a StatefulSet, as its controller does; those that exist stay as they are."""
    for claim in wanted:
        with contextlib.suppress(Conflict):
            kube.create(claim)


def release(kube: Kube, claim: Object, is_protected: bool) -> None:
    """Let a deleted claim go, with its PersistentVolume. Its data stay while a group protects them."""
    metadata = claim["metadata"]
    name = claim["spec"].get("volumeName")
    volume = kube.find("v1", "PersistentVolume", name) if name else None
    if volume:
        kube.delete(volume)
        # Its controller, which would remove this finalizer, is not one of the sandbox's.
        kube.patch(volume, {"metadata": {"finalizers": None}}, checked=False)
    if not is_protected:
        kube.delete(Volume(metadata["namespace"], metadata["name"]).to_object())
    kube.patch(claim, {"metadata": {"finalizers": None}}, checked=False)
