"""The volumes of the stand-in: for each PersistentVolumeClaim a ConfigMap whose lines are the writes of the application.

A line has the time and the cluster of a write, so that the copy of another cluster shows which writes have survived. Nothing here calls an
API server.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from ....plugins.module_utils.common.timestamps import parse_time
from ....plugins.module_utils.common.types import Object

LABEL = "standin.openfleet.clusters/volume"
ROLE = "standin.openfleet.clusters/role"
SYNCED = "standin.openfleet.clusters/synced"
# A demoted volume was primary, and may have writes that no other cluster has.
PRIMARY, DEMOTED, SECONDARY = "primary", "demoted", "secondary"

STORAGE_CLASS = "replicated"
PROVISIONER = "standin.csi.openfleet.clusters"
REPLICATION_ID = "standin-replication"


@dataclass(frozen=True)
class Volume:
    """The data of one claim on one cluster. `synced` is when a copy was last made: of this one, or from the primary.

    It has the labels of its claim, which a cluster that is secondary may not have.
    """

    namespace: str
    claim: str
    role: str = PRIMARY
    writes: tuple[str, ...] = ()
    synced: datetime.datetime | None = None
    labels: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_object(cls, item: Object) -> Volume:
        metadata = item["metadata"]
        annotations = metadata.get("annotations") or {}
        writes = tuple((item.get("data") or {}).get("writes", "").splitlines())
        claim = metadata["name"].removeprefix("volume-")
        labels = {name: value for name, value in metadata["labels"].items() if name != LABEL}
        return cls(metadata["namespace"], claim, annotations.get(ROLE, PRIMARY), writes, parse_time(annotations.get(SYNCED)), labels)

    @property
    def name(self) -> str:
        return f"volume-{self.claim}"

    @property
    def size(self) -> int:
        return sum(len(line) + 1 for line in self.writes)

    def to_object(self) -> Object:
        annotations = {ROLE: self.role, SYNCED: self.synced.isoformat() if self.synced else ""}
        labels = self.labels | {LABEL: "true"}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self.name, "namespace": self.namespace, "labels": labels, "annotations": annotations},
            "data": {"writes": "".join(f"{line}\n" for line in self.writes)},
        }

    def written_before(self, moment: datetime.datetime) -> tuple[str, ...]:
        """The writes that a replication which lags behind has."""
        return tuple(line for line in self.writes if (parse_time(line.split(" ")[0]) or moment) <= moment)


def new_write(site: str, text: str, now: datetime.datetime) -> str:
    return f"{now.isoformat()} {site} {text}"


def text_of(write: str) -> str:
    return write.split(" ", 2)[2]


def persistent_volume(claim: Object) -> Object:
    """The PersistentVolume that the driver of the storage class creates for a claim."""
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": metadata["namespace"], "name": metadata["name"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": reference | {"uid": metadata["uid"]},
            "csi": {"driver": PROVISIONER, "volumeHandle": f"{metadata['namespace']}/{metadata['name']}"},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": spec.get("storageClassName", ""),
            "volumeMode": spec.get("volumeMode", "Filesystem"),
        },
    }


def is_bound(claim: Object) -> bool:
    return bool((claim.get("status") or {}).get("phase") == "Bound")


def portable(item: Object) -> Object:
    """A claim or volume without what is of one cluster only, as it is stored and restored on another."""
    metadata = item["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "labels") if name in metadata}
    spec = dict(item["spec"])
    if "claimRef" in spec:
        spec["claimRef"] = {name: value for name, value in spec["claimRef"].items() if name not in ("uid", "resourceVersion")}
    return {"apiVersion": "v1", "kind": item["kind"], "metadata": kept, "spec": spec}


def selected(item: Object, selector: Object) -> bool:
    """Whether a label selector matches a claim, or the volume of one."""
    labels = item["metadata"].get("labels") or {}
    if not (selector.get("matchLabels") or {}).items() <= labels.items():
        return False
    return all(_holds(expression, labels) for expression in selector.get("matchExpressions") or [])


def _holds(expression: Object, labels: Object) -> bool:
    key, values = expression["key"], expression.get("values") or []
    operators = {
        "In": labels.get(key) in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }
    return operators[expression["operator"]]
