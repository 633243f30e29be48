"""One cluster of the stand-in: the caches of the kinds that it serves, and the writes to them. What to write is decided elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ....plugins.module_utils.common.third_party import urllib3
from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.controller.informer import Informer
from ....plugins.module_utils.kube.client import Kube
from ....plugins.module_utils.kube.config import target
from .drclusters import fenced_by, is_cut_off
from .stores import Stores
from .volumes import LABEL
from .workloads import API_VERSION as APPS
from .workloads import KINDS as WORKLOADS

RAMEN = "ramendr.openshift.io/v1alpha1"
GROUP, CONTROL, CLUSTER = "VolumeReplicationGroup", "DRPlacementControl", "DRCluster"
CSI_ADDONS, FENCE = "csiaddons.openshift.io/v1alpha1", "NetworkFence"
NAMESPACE, CLAIM, VOLUME = "Namespace", "PersistentVolumeClaim", "ConfigMap"
FIELD_MANAGER = "replication-standin"
# A cluster that does not answer must not hold up the others.
TIMEOUT = urllib3.Timeout(connect=1, read=5)


def connect(kubeconfig: Path) -> Kube:
    """The cluster of the kubeconfig, whatever the environment names."""
    return Kube(target({"kubeconfig": str(kubeconfig)}, {}), TIMEOUT, tries=1, field_manager=FIELD_MANAGER)


class Site:
    """A cluster. `changed` gets this site and each object that changes."""

    def __init__(self, name: str, kube: Kube, changed: Callable[[Site, Object], None]) -> None:
        def notify(before: Object | None, after: Object | None) -> None:
            changed(self, after or before or {})

        kinds = {GROUP: RAMEN, CONTROL: RAMEN, CLUSTER: RAMEN, FENCE: CSI_ADDONS, NAMESPACE: "v1", CLAIM: "v1"} | dict.fromkeys(
            WORKLOADS, APPS
        )
        self.name = name
        self.kube = kube
        self.stores = Stores(kube)
        self.informers = {kind: Informer(kube, version, kind, notify) for kind, version in kinds.items()}
        self.informers[VOLUME] = Informer(kube, "v1", VOLUME, notify, selector=f"{LABEL}=true")

    def __getitem__(self, kind: str) -> Informer:
        return self.informers[kind]

    @property
    def reachable(self) -> bool:
        return all(informer.listed.is_set() for informer in self.informers.values()) and not self[GROUP].broken_for()

    def workloads(self, namespace: str) -> list[Object]:
        return [item for kind in WORKLOADS for item in self[kind].below(namespace)]

    def fences(self) -> set[str]:
        """The names of the clusters that are fenced from this one, by a NetworkFence or by a person."""
        by_hand = {str(cluster["metadata"]["name"]) for cluster in self[CLUSTER].all() if is_cut_off(cluster)}
        return by_hand | {name for fence in self[FENCE].all() if (name := fenced_by(fence))}

    def remember(self, item: Object) -> None:
        if item["kind"] in self.informers:
            self[item["kind"]].remember(item)
