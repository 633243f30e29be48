"""The status of Deployments and StatefulSets on a cluster without nodes: they run where their volumes are primary. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ....plugins.module_utils.common.types import Object
from .conditions import FALSE, TRUE, Condition, by_type, merged
from .volumes import PRIMARY, Volume, is_bound

API_VERSION = "apps/v1"
DEPLOYMENT, STATEFUL_SET = KINDS = ("Deployment", "StatefulSet")


def claims_of(workload: Object) -> set[str]:
    """The names of the claims that the pods of a workload mount."""
    volumes = workload["spec"]["template"]["spec"].get("volumes") or []
    named = {volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume}
    return named | templated_claims(workload).keys()


def templated_claims(workload: Object) -> dict[str, Object]:
    """The claims that a StatefulSet has for its replicas, by name, also for those that end just now."""
    metadata, spec = workload["metadata"], workload["spec"]
    count = max(spec.get("replicas", 1), (workload.get("status") or {}).get("replicas", 0))
    return {
        f"{template['metadata']['name']}-{metadata['name']}-{number}": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": f"{template['metadata']['name']}-{metadata['name']}-{number}",
                "namespace": metadata["namespace"],
                "labels": (template["metadata"].get("labels") or {}) | (spec["selector"].get("matchLabels") or {}),
            },
            "spec": template["spec"],
        }
        for template in spec.get("volumeClaimTemplates") or []
        for number in range(count)
    }


def is_running(workload: Object) -> bool:
    return bool((workload.get("status") or {}).get("readyReplicas"))


def uses(workloads: Iterable[Object], claim: str) -> bool:
    """Whether a running workload mounts the claim."""
    return any(claim in claims_of(workload) and is_running(workload) for workload in workloads)


def unready_because(workload: Object, claims: Mapping[str, Object], volumes: Mapping[str, Volume], fenced: bool) -> str:
    """Why no pod of the workload can start; empty if all can."""
    for name in sorted(claims_of(workload)):
        if name not in claims or not is_bound(claims[name]):
            return f"PersistentVolumeClaim {name} is not bound"
        if name in volumes and volumes[name].role != PRIMARY:
            return f"the volume of PersistentVolumeClaim {name} is {volumes[name].role}"
        if fenced:
            return f"the cluster is fenced from the volume of PersistentVolumeClaim {name}"
    return ""


def workload_status(workload: Object, unready: str, now: str) -> Object:
    wanted = workload["spec"].get("replicas", 1)
    ready = 0 if unready else wanted
    status: Object = {"observedGeneration": workload["metadata"]["generation"], "replicas": wanted}
    if ready:
        status |= {"readyReplicas": ready, "availableReplicas": ready, "updatedReplicas": ready}
    if workload["kind"] == DEPLOYMENT:
        if wanted > ready:
            status["unavailableReplicas"] = wanted - ready
        known = by_type(workload.get("status"))
        reason = "MinimumReplicasAvailable" if ready == wanted else "MinimumReplicasUnavailable"
        available = Condition("Available", TRUE if ready == wanted else FALSE, reason, unready or f"{ready} of {wanted} replicas run")
        status["conditions"] = [_without_generation(item) for item in merged(known, [available], 0, now)]
    return status


def _without_generation(condition: Object) -> Object:
    return {name: value for name, value in condition.items() if name != "observedGeneration"} | {
        "lastUpdateTime": condition["lastTransitionTime"]
    }
