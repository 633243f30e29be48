"""Many protected applications from one: its objects on both clusters and its state in the bucket, copied under other names.

Protecting each of a thousand by the controller would take longer than measuring them.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import LockRecord
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import DRPC, RAMEN, VRG
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore, connect

from ..dr_clusters import CLUSTERS, WORKLOAD, DrClusters

KINDS = ((RAMEN, DRPC), (RAMEN, VRG), ("apps/v1", "Deployment"))
THREADS = 16
EPOCH = 1
KEPT = ("name", "namespace", "labels", "annotations", "finalizers")
# Ours start with the first revision of the first epoch.
STAMPS = ("dr.openfleet.io/epoch", "dr.openfleet.io/revision")


def workload_of(number: int) -> WorkloadRef:
    return WorkloadRef(f"app-{number}", f"app-{number}")


def copy_application(clusters: DrClusters, count: int) -> list[WorkloadRef]:
    """Copy the application so many times, each into a namespace of its own. A leader of epoch `EPOCH` has recorded their states."""
    sites = {name: clusters.site(name).kube for name in CLUSTERS}
    # All copies of the DRPlacementControl first: the other objects name the uid of one of them.
    templates = [(kube, kube.get(version, kind, WORKLOAD.name, WORKLOAD.namespace)) for version, kind in KINDS for kube in sites.values()]
    store = connect(clusters.store_options(), THREADS)
    state = StateStore(DocumentStore(store, WORKLOAD.identity()), WORKLOAD).read().content()

    def copy(number: int) -> WorkloadRef:
        workload = workload_of(number)
        uids: dict[str, str] = {}
        for kube in sites.values():
            kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": workload.namespace}})
        for kube, template in templates:
            created = _create(kube, _renamed(template, workload, uids))
            uids[template["metadata"]["uid"]] = created["metadata"]["uid"]
        _record(store, workload, _renamed(state, workload, uids))
        return workload

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(copy, range(count)))


def release_leases(clusters: DrClusters, workloads: list[WorkloadRef]) -> None:
    """As a leader does that ends, so that another one need not wait until they expire."""
    store = connect(clusters.store_options(), THREADS)

    def release(workload: WorkloadRef) -> None:
        documents, key = DocumentStore(store, workload.identity()), workload.key("lock")
        documents.write(key, LockRecord(epoch=EPOCH).content(), documents.read(key))

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(release, workloads))


def _renamed(content: Any, workload: WorkloadRef, uids: dict[str, str]) -> Any:
    text = json.dumps(content).replace(WORKLOAD.namespace, workload.namespace).replace(WORKLOAD.name, workload.name)
    for old, new in uids.items():
        text = text.replace(old, new)
    return json.loads(text, object_hook=_first_generation)


def _first_generation(item: Object) -> Object:
    stamps = {name: "1" for name in STAMPS if name in item}
    return item | stamps | ({"observedGeneration": 1} if "observedGeneration" in item else {})


def _create(kube: Kube, item: Object) -> Object:
    metadata = {name: value for name, value in item["metadata"].items() if name in KEPT}
    created = kube.create({name: item[name] for name in ("apiVersion", "kind", "spec")} | {"metadata": metadata})
    if "status" in item:
        kube.replace(created | {"status": item["status"]}, subresource="status")
    return created


def _record(store: ObjectStore, workload: WorkloadRef, content: Object) -> None:
    """The lock, the state and its decision, as they are after a while. The protocol that writes them is measured elsewhere."""
    documents = DocumentStore(store, workload.identity())
    stamp = {"epoch": EPOCH, "revision": 1}
    documents.write(workload.key("lock"), LockRecord("bench", "bench", EPOCH).content(), None)
    documents.write(workload.key("state"), content | stamp | {"leader": "bench"}, None)
    documents.write(workload.key("decision"), {"decision": content["decision"]} | stamp, None)
