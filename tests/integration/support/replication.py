"""An application that is protected on two clusters by VolumeReplicationGroups, for tests of disaster recovery and of the stand-in.

Only kinds of Ramen and Kubernetes are used, so the tests hold for Ramen's own cluster operator too.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.application import Application
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.faults import FAULT
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.setup import profile_of

RAMEN = "ramendr.openshift.io/v1alpha1"
GROUP = "volumereplicationgroup"
_numbers = itertools.count(1)
soon = functools.partial(until, seconds=180)


class Protected:
    """The application `app` in a namespace of its own on each cluster."""

    def __init__(self, sites: Mapping[str, Access], namespace: str) -> None:
        self.sites = sites
        self.namespace = namespace
        self.app = Application("app", namespace)

    def fault(self, site: str, text: str) -> None:
        """Set the fault of all groups of the namespace on one cluster; an empty one ends it."""
        kube = self.sites[site].kube
        namespace = kube.get("v1", "Namespace", self.namespace)
        kube.patch(namespace, {"metadata": {"annotations": {FAULT: text or None}}}, checked=False)

    def place(self, site: str, replicas: int = 1) -> None:
        """Create the application on a cluster."""
        for item in self.app.objects(replicas):
            self.sites[site].kube.apply(item, force=True)

    def place_component(self, site: str, kind: str, name: str, replicas: int) -> None:
        """Create a Deployment or StatefulSet beside the first one, which mounts the same claim."""
        (_claim, deployment) = self.app.objects(replicas)
        spec = deployment["spec"] | ({"serviceName": "app"} if kind == "StatefulSet" else {})
        item = deployment | {"kind": kind, "metadata": deployment["metadata"] | {"name": name}, "spec": spec}
        self.sites[site].kube.apply(item, force=True)

    def replicas(self, site: str) -> dict[str, int]:
        """What the specs of all Deployments and StatefulSets have."""
        kube = self.sites[site].kube
        items = [item for kind in ("Deployment", "StatefulSet") for item in kube.list_all("apps/v1", kind, namespace=self.namespace)]
        return {item["metadata"]["name"]: item["spec"]["replicas"] for item in items}

    def group(self, site: str, state: str, annotations: dict[str, str] | None = None, **spec: Any) -> None:
        """Create the group on a cluster, or replace its spec; without `sync` it is replicated every second."""
        kind: dict[str, Any] = {} if "sync" in spec else {"async": {"schedulingInterval": "1m"}}
        wanted = {
            "pvcSelector": {"matchLabels": self.app.labels},
            "replicationState": state,
            "s3Profiles": [profile_of(name) for name in self.sites],
            **kind,
            **spec,
        }
        kube = self.sites[site].kube
        known = kube.find(RAMEN, "VolumeReplicationGroup", "app", self.namespace)
        metadata = {"name": "app", "namespace": self.namespace, "annotations": annotations or {}}
        item = {"apiVersion": RAMEN, "kind": "VolumeReplicationGroup", "metadata": metadata, "spec": wanted}
        if known:
            kube.patch(known, [{"op": "replace", "path": "/spec", "value": wanted}], checked=False)
        else:
            kube.create(item)

    def get(self, site: str) -> dict[str, Any]:
        item = self.sites[site].get(GROUP, "app", "-n", self.namespace)
        return item if isinstance(item, dict) else {}

    def status(self, site: str) -> dict[str, Any]:
        status = self.get(site).get("status", {})
        return status if isinstance(status, dict) else {}

    def conditions(self, site: str) -> dict[str, tuple[str, str]]:
        """Status and reason of each condition of the current generation."""
        generation = self.get(site).get("metadata", {}).get("generation")
        found = self.status(site).get("conditions", [])
        return {item["type"]: (item["status"], item["reason"]) for item in found if item["observedGeneration"] == generation}

    def until_state(self, site: str, state: str) -> None:
        """Wait until the current generation of the group has a state."""

        def reached() -> bool:
            item = self.get(site)
            status = item.get("status", {})
            return bool((status.get("state"), status.get("observedGeneration")) == (state, item["metadata"]["generation"]))

        soon(reached, f"the group is {state} on {site}")

    def until_condition(self, site: str, kind: str, status: str, reason: str) -> None:
        soon(lambda: self.conditions(site).get(kind) == (status, reason), f"{kind} is {status}/{reason} on {site}")

    def until_running(self, site: str) -> None:
        soon(lambda: self.app.runs(self.sites[site].kube), f"the application runs on {site}")

    def write(self, site: str, *texts: str) -> None:
        for text in texts:
            self.app.write(self.sites[site].kube, site, text)

    def read(self, site: str) -> list[str]:
        return self.app.read(self.sites[site].kube)

    def until_read(self, site: str, text: str) -> None:
        self.app.until_read(self.sites[site].kube, text)

    def scale(self, site: str, replicas: int) -> None:
        self.app.scale(self.sites[site].kube, replicas)

    def deploy(self, primary: str, secondary: str, **spec: Any) -> None:
        """Run the application on one cluster, protected by the other; the first copy of its data exists."""
        self.place(primary)
        self.group(primary, "primary", **spec)
        self.group(secondary, "secondary", **spec)
        self.until_running(primary)
        self.until_state(primary, "Primary")
        self.until_state(secondary, "Secondary")
        self.write(primary, "first")
        self.until_read(secondary, "first")


@contextlib.contextmanager
def protected(sites: Mapping[str, Access]) -> Iterator[Protected]:
    """An application in a new namespace of each cluster. Afterwards its groups are deleted, and the namespaces too."""
    name = f"dr-{os.getpid()}-{next(_numbers)}"
    for site in sites.values():
        site.kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, force=True)
    application = Protected(sites, name)
    try:
        yield application
    finally:
        for site in sites.values():
            site.kube.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
