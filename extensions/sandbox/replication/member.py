"""One group on one cluster while it is reconciled: what was observed, and the writes to it. It blocks."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.controller.work_queue import Key
from ....plugins.module_utils.kube.errors import Conflict
from .faults import INTERVAL, Faults
from .site import CLAIM, NAMESPACE, VOLUME, Site
from .volumes import LABEL, PRIMARY, Volume, selected
from .workloads import uses

FINALIZER = "volumereplicationgroups.ramendr.openshift.io/vrg-protection"


@dataclass
class Member:
    """A group on one cluster: its claims, its volumes by namespace and claim, and the workloads that may use them."""

    site: Site
    vrg: Object
    faults: Faults
    workloads: list[Object]
    is_fenced: bool = False
    claims: list[Object] = field(default_factory=list)
    volumes: dict[tuple[str, str], Volume] = field(default_factory=dict)
    known_volumes: dict[tuple[str, str], Object] = field(default_factory=dict)
    written: list[Object] = field(default_factory=list)

    @classmethod
    def of(cls, site: Site, vrg: Object, is_fenced: bool) -> Member:
        """What the caches of the cluster have for the group. To be called in the thread of the event loop."""
        names = namespaces_of(vrg)
        namespace = site[NAMESPACE].get(Key("", vrg["metadata"]["namespace"]))
        workloads = [workload for name in names for workload in site.workloads(name)]
        member = cls(site, vrg, Faults.of(vrg, namespace), workloads, is_fenced)
        member._select([item for kind in (CLAIM, VOLUME) for name in names for item in site[kind].below(name)])
        return member

    def read_claims(self) -> None:
        """Read claims and volumes from the API server, for a decision that must not be made on an old cache."""
        kube = self.site.kube
        claims = [item for name in namespaces_of(self.vrg) for item in kube.list_all("v1", CLAIM, name)]
        volumes = [item for name in namespaces_of(self.vrg) for item in kube.list_all("v1", VOLUME, name, f"{LABEL}=true")]
        self._select([*claims, *volumes])

    def _select(self, items: list[Object]) -> None:
        mine = [item for item in items if selected(item, self.vrg["spec"]["pvcSelector"])]
        self.claims = [item for item in mine if item["kind"] == CLAIM]
        volumes = [(Volume.from_object(item), item) for item in mine if item["kind"] == VOLUME]
        self.volumes = {(volume.namespace, volume.claim): volume for volume, _item in volumes}
        self.known_volumes = {(volume.namespace, volume.claim): item for volume, item in volumes}

    @property
    def spec(self) -> Object:
        return dict(self.vrg["spec"])

    @property
    def generation(self) -> int:
        return int(self.vrg["metadata"]["generation"])

    @property
    def uid(self) -> str:
        return str(self.vrg["metadata"]["uid"])

    @property
    def wants_primary(self) -> bool:
        return bool(self.spec["replicationState"] == "primary")

    @property
    def is_test(self) -> bool:
        return bool(self.spec.get("dryRun"))

    @property
    def is_source(self) -> bool:
        """Whether its volumes can be written to and are replicated. A test failover writes to a copy that is discarded."""
        return not self.is_test and any(volume.role == PRIMARY for volume in self.volumes.values())

    @property
    def is_target(self) -> bool:
        return not self.wants_primary and not any(volume.role == PRIMARY for volume in self.volumes.values())

    @property
    def is_deleting(self) -> bool:
        return "deletionTimestamp" in self.vrg["metadata"]

    def in_use(self) -> str:
        """The claim that a running workload uses; empty if none is."""
        return next((claim for _namespace, claim in sorted(self.volumes) if uses(self.workloads, claim)), "")

    def write(self, volume: Volume) -> None:
        """Create or change a volume; a Conflict if it has changed since it was observed."""
        key = (volume.namespace, volume.claim)
        wanted = volume.to_object()
        known = self.known_volumes.get(key)
        if known is None:
            self._create_namespaces({volume.namespace})
            item = self.site.kube.create(wanted)
        else:
            item = self.site.kube.patch(known, {"metadata": wanted["metadata"], "data": wanted["data"]})
        self.volumes[key], self.known_volumes[key] = volume, item
        self.written.append(item)

    def mark_synced(self, volume: Volume) -> None:
        """Store when a volume was copied, and leave its data alone: the application may append to them at the same time."""
        key = (volume.namespace, volume.claim)
        annotations = volume.to_object()["metadata"]["annotations"]
        item = self.site.kube.patch(self.known_volumes[key], {"metadata": {"annotations": annotations}}, checked=False)
        self.volumes[key], self.known_volumes[key] = volume, item
        self.written.append(item)

    def create_missing(self, items: list[Object]) -> None:
        """Create what was restored, and the namespaces it is in; what exists is left as it is."""
        self._create_namespaces({item["metadata"]["namespace"] for item in items if "namespace" in item["metadata"]})
        for item in sorted(items, key=lambda item: bool(item["kind"] == CLAIM)):
            self._create(item)

    def _create_namespaces(self, names: set[str]) -> None:
        """Create namespaces that the group protects from another one."""
        for name in sorted(names - {self.vrg["metadata"]["namespace"]}):
            self._create({"apiVersion": "v1", "kind": NAMESPACE, "metadata": {"name": name}})

    def _create(self, item: Object) -> None:
        try:
            self.site.kube.create(item)
        except Conflict:
            return

    def set_finalizer(self, wanted: bool) -> None:
        finalizers = [name for name in self.vrg["metadata"].get("finalizers") or [] if name != FINALIZER]
        changed = [*finalizers, FINALIZER] if wanted else finalizers
        if changed != (self.vrg["metadata"].get("finalizers") or []):
            self.vrg = self.site.kube.patch(self.vrg, {"metadata": {"finalizers": changed}})
            self.written.append(self.vrg)

    def write_status(self, status: Object) -> None:
        """Replace the status if it differs. The annotations that others have stamped stay as they are."""
        if status != self.vrg.get("status"):
            self.vrg = self.site.kube.replace(self.vrg | {"status": status}, subresource="status")
            self.written.append(self.vrg)


def namespaces_of(vrg: Object) -> list[str]:
    return list(vrg["spec"].get("protectedNamespaces") or [vrg["metadata"]["namespace"]])


def interval_of(member: Member) -> datetime.timedelta:
    """The time between two copies. The minutes of the spec are seconds here; a fault can set another time."""
    interval = str(member.spec.get("async", {}).get("schedulingInterval", "0m"))
    seconds = {"m": 1, "h": 60, "d": 24 * 60}[interval[-1]] * int(interval[:-1])
    return datetime.timedelta(seconds=member.faults.seconds.get(INTERVAL, seconds))
