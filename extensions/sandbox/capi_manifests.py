"""What Cluster API is installed from, as objects: its own manifests led to webhooks on this machine, and a ClusterClass to try it with.

Pure functions: reading the manifests, and sending the objects, is up to the caller.
"""

from __future__ import annotations

import base64
import copy

from ...plugins.module_utils.common.types import Object

CLASS_NAME = "in-memory"
WORKER_CLASS = "default-worker"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta2"
CONTROL_PLANE = "controlplane.cluster.x-k8s.io/v1beta2"
CORE = "cluster.x-k8s.io/v1beta2"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io/v1beta2"


def led_to(objects: list[Object], manager: str, url: str, authority: bytes) -> list[Object]:
    """CRDs and webhook configurations that call the manager's webhooks at `url` rather than a service of the cluster.

    All managers' configurations have the same names, so each gets the manager's in front.
    """
    led = copy.deepcopy(objects)
    for each in led:
        if each["kind"] == "CustomResourceDefinition":
            webhooks = [each["spec"]["conversion"]["webhook"]] if "webhook" in each["spec"].get("conversion", {}) else []
        else:
            webhooks = each["webhooks"]
            each["metadata"]["name"] = f"{manager}-{each['metadata']['name']}"
        for webhook in webhooks:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"{url}{path}", "caBundle": base64.b64encode(authority).decode()}
    return led


def of_in_memory(objects: list[Object]) -> list[Object]:
    """The part of the dev provider's manifests that is not about containers."""

    def wanted(resource: str) -> bool:
        return not resource.startswith("docker")

    kept = []
    for each in copy.deepcopy(objects):
        if "webhooks" in each:
            each["webhooks"] = [webhook for webhook in each["webhooks"] if wanted(webhook["rules"][0]["resources"][0])]
        if each["kind"] != "CustomResourceDefinition" or wanted(each["spec"]["names"]["plural"]):
            kept.append(each)
    return kept


def cluster_class(namespace: str) -> list[Object]:
    """A ClusterClass whose machines are in the memory of the dev provider, and the templates it refers to.

    Its topology has a control plane and one class of workers. Machines take a second to start, so that there is something to see.
    """
    provisioning = {"provisioning": {"startupDuration": "1s", "startupJitter": "0.2"}}
    machine = {"backend": {"inMemory": dict.fromkeys(("vm", "node", "apiServer", "etcd"), provisioning)}}

    def template(api_version: str, kind: str, spec: Object) -> Object:
        return {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": CLASS_NAME, "namespace": namespace},
            "spec": {"template": {"spec": spec}},
        }

    cluster = template(INFRASTRUCTURE, "DevClusterTemplate", {"backend": {"inMemory": {}}})
    machines = template(INFRASTRUCTURE, "DevMachineTemplate", machine)
    control_plane = template(
        CONTROL_PLANE,
        "KubeadmControlPlaneTemplate",
        {"kubeadmConfigSpec": {"clusterConfiguration": {"apiServer": {"certSANs": ["localhost", "127.0.0.1"]}}}},
    )
    join = template(BOOTSTRAP, "KubeadmConfigTemplate", {"format": "cloud-config"})

    def reference(to: Object) -> Object:
        return {"templateRef": {"apiVersion": to["apiVersion"], "kind": to["kind"], "name": CLASS_NAME}}

    workers = {"class": WORKER_CLASS, "bootstrap": reference(join), "infrastructure": reference(machines)}
    return [
        cluster,
        machines,
        control_plane,
        join,
        {
            "apiVersion": CORE,
            "kind": "ClusterClass",
            "metadata": {"name": CLASS_NAME, "namespace": namespace},
            "spec": {
                "infrastructure": reference(cluster),
                "controlPlane": {**reference(control_plane), "machineInfrastructure": reference(machines)},
                "workers": {"machineDeployments": [workers]},
            },
        },
    ]
