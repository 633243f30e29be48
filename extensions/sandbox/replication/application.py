"""An application for demos and tests: a Deployment with one claim, which writes lines while it runs where its volume is primary."""

from __future__ import annotations

import datetime
import time
from dataclasses import dataclass

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.kube.client import Kube, retry_on_conflict
from ..screen import UserError
from .volumes import PRIMARY, STORAGE_CLASS, Volume, new_write, text_of
from .workloads import API_VERSION as APPS
from .workloads import DEPLOYMENT, is_running

POLL_SECONDS = 0.05


class NotWritable(UserError):
    """The application does not run on the cluster, or its volume is not primary there."""


@dataclass(frozen=True)
class Application:
    """The application `name` in a namespace that exists on each cluster. All its objects have the label `app`."""

    name: str
    namespace: str

    @property
    def labels(self) -> dict[str, str]:
        return {"app": self.name}

    def objects(self, replicas: int) -> list[Object]:
        """The claim and the Deployment; a cluster where the application must not run has it with no replicas."""
        metadata = {"name": self.name, "namespace": self.namespace, "labels": self.labels}
        container = {"name": "writer", "image": "registry.example.com/writer:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": self.name}}]
        template = {"metadata": {"labels": self.labels}, "spec": {"containers": [container], "volumes": volumes}}
        spec = {"replicas": replicas, "selector": {"matchLabels": self.labels}, "template": template}
        return [self.claim(), {"apiVersion": APPS, "kind": DEPLOYMENT, "metadata": metadata, "spec": spec}]

    def claim(self) -> Object:
        metadata = {"name": self.name, "namespace": self.namespace, "labels": self.labels}
        spec = {
            "storageClassName": STORAGE_CLASS,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}

    def scale(self, kube: Kube, replicas: int) -> None:
        item = kube.get(APPS, DEPLOYMENT, self.name, self.namespace)
        kube.patch(item, {"spec": {"replicas": replicas}}, checked=False)

    def runs(self, kube: Kube) -> bool:
        item = kube.find(APPS, DEPLOYMENT, self.name, self.namespace)
        return item is not None and is_running(item)

    def write(self, kube: Kube, site: str, text: str) -> None:
        """Append a line, as the running application does. NotWritable where it does not run, or reaches only a copy."""

        def append() -> None:
            item = self._volume(kube)
            if item is None or Volume.from_object(item).role != PRIMARY or not self.runs(kube):
                raise NotWritable(f"The application {self.namespace}/{self.name} cannot write on {site}: it does not run as primary there.")
            lines = (*Volume.from_object(item).writes, new_write(site, text, datetime.datetime.now(datetime.UTC)))
            kube.patch(item, {"data": {"writes": "".join(f"{line}\n" for line in lines)}})

        retry_on_conflict(append)

    def read(self, kube: Kube) -> list[str]:
        """The texts of all writes that the cluster has."""
        item = self._volume(kube)
        return [text_of(line) for line in Volume.from_object(item).writes] if item else []

    def until_read(self, kube: Kube, text: str, seconds: float = 180) -> None:
        """Wait until the cluster has a write: a synchronous one counts only then."""
        deadline = time.monotonic() + seconds
        while text not in self.read(kube):
            if time.monotonic() > deadline:
                raise UserError(f"The write {text!r} of {self.namespace}/{self.name} does not arrive within {seconds} s.")
            time.sleep(POLL_SECONDS)

    def _volume(self, kube: Kube) -> Object | None:
        return kube.find("v1", "ConfigMap", Volume(self.namespace, self.name).name, self.namespace)
