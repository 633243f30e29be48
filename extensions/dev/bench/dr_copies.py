"""Many protected applications from one: its objects on both clusters and its state in the bucket, copied under other names.

Protecting each of a thousand by the controller would take longer than measuring them.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.decision import DecisionStore
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import FIELDS, StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.term import begin_term
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import DRPC, RAMEN, VRG
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore, connect

from ..dr_clusters import CLUSTERS, WORKLOAD, DrClusters

KINDS = ((RAMEN, DRPC), (RAMEN, VRG), ("apps/v1", "Deployment"))
THREADS = 16
KEPT = ("name", "namespace", "labels", "annotations", "finalizers")
# Ours start with the first revision of the first epoch.
STAMPS = ("dr.openfleet.io/epoch", "dr.openfleet.io/revision")


def workload_of(number: int) -> WorkloadRef:
    return WorkloadRef(f"app-{number}", f"app-{number}")


def copy_application(clusters: DrClusters, count: int) -> dict[str, int]:
    """Copy the application so many times, each into a namespace of its own; returns the epoch of each."""
    sites = {name: clusters.site(name).kube for name in CLUSTERS}
    templates = {
        name: [kube.get(version, kind, WORKLOAD.name, WORKLOAD.namespace) for version, kind in KINDS] for name, kube in sites.items()
    }
    store = connect(clusters.store_options(), THREADS)
    state = StateStore(DocumentStore(store, WORKLOAD.identity()), WORKLOAD).read().content()

    def copy(number: int) -> tuple[str, int]:
        workload = workload_of(number)
        uids: dict[str, str] = {}
        for name, kube in sites.items():
            kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": workload.namespace}})
            for template in templates[name]:
                created = _create(kube, _renamed(template, workload, uids))
                if template["kind"] == DRPC:
                    uids[template["metadata"]["uid"]] = created["metadata"]["uid"]
        return str(workload), _record(store, workload, _renamed(state, workload, uids))

    with ThreadPoolExecutor(THREADS) as threads:
        return dict(threads.map(copy, range(count)))


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


def _record(store: ObjectStore, workload: WorkloadRef, content: Object) -> int:
    """Write the state under the first epoch."""
    lease, documents = Lease(store, workload, "bench", "bench"), DocumentStore(store, workload.identity())
    lease.try_acquire()
    begin_term(store, lease)
    state = StateStore(documents, workload, "bench").write(lease.epoch, {name: content[name] for name in FIELDS})
    DecisionStore(documents, workload).publish(state)
    return lease.epoch
