# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Clusters and machine pools as OpenShift Cluster Manager has them, from a request and to a ClusterSpec. Pure; it talks to nobody."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...common.types import Object
from ...kube.errors import Invalid
from ..model import (
    AVAILABLE,
    DEGRADED,
    FALSE,
    INFRASTRUCTURE_READY,
    TRUE,
    UNKNOWN,
    ClusterRequest,
    ConditionState,
    NodeSet,
    ObservedCluster,
    State,
)

NAME_LIMIT, POOL_NAME_LIMIT = 54, 30
ZONES = 3
DEFAULT_POOL = "worker"
# A property of the cluster that tells which place on which hub it was made for.
OWNER = "openfleet_place"
STATES: Mapping[str, State] = {
    "waiting": "cluster_accepted",
    "pending": "cluster_accepted",
    "validating": "cluster_accepted",
    "installing": "cluster_provisioning",
    "ready": "ready",
    "updating": "ready",
    # Installed, and its API does not answer now.
    "powering_down": "cluster_provisioned",
    "hibernating": "cluster_provisioned",
    "resuming": "cluster_provisioned",
    "error": "failed",
    "uninstalling": "deprovisioning",
    # For a while the service itself cannot tell.
    "unknown": "cluster_provisioning",
}
INSTALLED = ("ready", "updating", "powering_down", "hibernating", "resuming")
# Failures that another try may not meet: an unknown one, one of the installation itself, no capacity for now. The others, of
# credentials, roles, subnets, tags, quota and versions, come back until somebody changes something.
PASSING = ("", "OCM3999", "OCM5001", "OCM5011")
SECRET_FIELDS = (
    *("access_key_id", "secret_access_key", "private_key", "private_key_id"),
    *("client_secret", "bind_password", "password", "hashed_password"),
)
HIDDEN = "(hidden)"
GCP_FIELDS = (
    *("type", "project_id", "private_key_id", "private_key", "client_email", "client_id"),
    *("auth_uri", "token_uri", "auth_provider_x509_cert_url", "client_x509_cert_url"),
)


def owner_of(hub: str, namespace: str, name: str) -> str:
    """The place that a cluster was made for, as it is noted at the cluster. `hub` is the id of the cluster that the place is on."""
    return f"{hub}/{namespace}/{name}"


def cluster_name(owner: str) -> str:
    """What the cluster of a place is called there, where names of all hubs and tenants of an organization meet."""
    name, mark = owner.rpartition("/")[2], hashlib.sha256(owner.encode()).hexdigest()[:6]
    return f"{name.replace('.', '-')[: NAME_LIMIT - len(mark) - 1].rstrip('-')}-{mark}"


def rounded(nodes: int, multi_az: bool) -> int:
    """So many nodes, or the next number that fills all zones evenly, which is all that the service accepts."""
    return -(-nodes // ZONES) * ZONES if multi_az else nodes


# Machine pools


@dataclass(frozen=True)
class Pool:
    """Nodes to be: a fixed number, or between two where an autoscaler decides. Their class is the cloud's name of a machine type."""

    resource_class: str
    asked: int
    multi_az: bool
    limits: tuple[int, int] | None = None

    @property
    def size(self) -> Object:
        """Its size as a machine pool has it."""
        if self.limits is None:
            return {"replicas": rounded(self.asked, self.multi_az)}
        least, most = (rounded(limit, self.multi_az) for limit in self.limits)
        return {"autoscaling": {"min_replicas": least, "max_replicas": most}}

    def is_size_of(self, pool: Object) -> bool:
        return all(pool.get(key) == value for key, value in self.size.items()) and bool(pool.get("autoscaling")) == bool(self.limits)

    def body(self, class_label: str) -> Object:
        labels = {class_label: self.resource_class}
        return {"id": pool_name(self.resource_class), "instance_type": self.resource_class, "labels": labels, **self.size}


def pool_name(resource_class: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", resource_class.lower()).strip("-")
    return (name if name[:1].isalpha() else f"class-{name}")[:POOL_NAME_LIMIT].rstrip("-")


def wanted_pools(request: ClusterRequest) -> list[Pool]:
    """The pools of a request, a class each; the first is the one that the service makes with the cluster."""
    scaled = {item["resource_class"]: (item["min_replicas"], item["max_replicas"]) for item in request.settings.get("autoscaling") or []}
    pools = [
        Pool(item.resource_class, item.number_of_nodes, request.multi_az, scaled.get(item.resource_class)) for item in request.node_requests
    ]
    return [pool for pool in pools if pool.asked or pool.limits]


def class_of(pool: Object, class_label: str) -> str:
    """The class of a pool of ours; one without is nobody's order, and is neither counted nor changed."""
    return str((pool.get("labels") or {}).get(class_label) or "")


def asked_nodes(pools: Sequence[Pool]) -> dict[str, int]:
    return {pool.resource_class: pool.asked for pool in pools if pool.limits is None}


def node_sets(pools: Sequence[Object], class_label: str, asked: Mapping[str, int], multi_az: bool, installed: bool) -> tuple[NodeSet, ...]:
    """The nodes by class. `asked` are those that were asked for, before a number was rounded.

    The service does not tell how many nodes of a pool are ready: of an installed cluster those count that it has to have, without
    those that only fill up the zones. Until then it takes no further pools, so those that are still to be made are shown as asked for.
    """
    found = {class_of(pool, class_label): pool for pool in pools}
    sets = [_node_set(pool, name, asked.get(name), multi_az, installed) for name, pool in found.items() if name]
    missing = [] if installed else [NodeSet(pool_name(name), name, nodes, 0) for name, nodes in asked.items() if name not in found]
    return (*sets, *missing)


def _node_set(pool: Object, resource_class: str, asked: int | None, multi_az: bool, installed: bool) -> NodeSet:
    limits = pool.get("autoscaling")
    nodes = int((limits or {}).get("min_replicas") or pool.get("replicas") or 0)
    if asked is not None and rounded(asked, multi_az) == nodes:
        nodes = asked
    return NodeSet(str(pool.get("id", "")), resource_class, None if limits else nodes, nodes if installed else 0)


# Clusters


def new_cluster(name: str, owner: str, request: ClusterRequest, class_label: str) -> Object:
    """What to ask for; Invalid with all that is missing."""
    settings, secrets = request.settings, request.secrets
    problems = [f"{option} is required" for option in ("cloud_provider", "region") if not getattr(request, option)]
    body: Object = {
        "name": name,
        "product": {"id": settings.get("product") or "osd"},
        "cloud_provider": {"id": request.cloud_provider},
        "region": {"id": request.region},
        "multi_az": request.multi_az,
        "properties": properties(owner, request),
    }
    if settings.get("ccs"):
        body["ccs"] = {"enabled": True}
        body |= _cloud_account(request.cloud_provider, settings, secrets, problems)
    if request.version:
        group = str(settings.get("channel_group") or "stable")
        body["version"] = {"id": version_id(request.version, group), "channel_group": group}
    if pools := wanted_pools(request):
        body["nodes"] = _default_nodes(pools[0], class_label)
    if problems:
        raise Invalid(f"OpenShift Cluster Manager cannot make such a cluster: {'; '.join(problems)}.", [])
    return body


def properties(owner: str, request: ClusterRequest) -> dict[str, str]:
    given = request.settings.get("properties") or {}
    return {str(key): str(value) for key, value in given.items()} | {OWNER: owner}


def version_id(version: str, channel_group: str) -> str:
    """The version's id there: its channel is a part of it, unless that is the stable one."""
    return f"openshift-v{version}" + (f"-{channel_group}" if channel_group != "stable" else "")


def _default_nodes(pool: Pool, class_label: str) -> Object:
    size = pool.size
    return {
        "compute_machine_type": {"id": pool.resource_class},
        "compute_labels": {class_label: pool.resource_class},
        **({"compute": size["replicas"]} if "replicas" in size else {"autoscale_compute": size["autoscaling"]}),
    }


def _cloud_account(cloud: str, settings: Mapping[str, Any], secrets: Mapping[str, Any], problems: list[str]) -> Object:
    """The customer's own cloud account, which the cluster is made in."""
    if cloud == "gcp":
        try:
            account = json.loads(secrets.get("gcp_service_account") or "")
            return {"gcp": {key: str(account[key]) for key in GCP_FIELDS}}
        except (ValueError, TypeError, KeyError):
            problems.append("with ccs on gcp, secrets.gcp_service_account is required: the key file of a service account, a JSON text")
            return {}
    needed = {
        "account_id": settings.get("aws_account_id"),
        "access_key_id": secrets.get("aws_access_key_id"),
        "secret_access_key": secrets.get("aws_secret_access_key"),
    }
    if cloud == "aws" and not all(needed.values()):
        problems.append(
            "with ccs on aws, settings.aws_account_id, secrets.aws_access_key_id and secrets.aws_secret_access_key are required"
        )
    return {"aws": needed} if cloud == "aws" else {}


def refused_change(cluster: Object, request: ClusterRequest) -> str:
    """What of the request can't be had by changing the cluster, in words; empty where all can."""
    asked = {"cloud_provider": request.cloud_provider, "region": request.region, "multi_az": request.multi_az}
    present = {
        "cloud_provider": _id(cluster, "cloud_provider"),
        "region": _id(cluster, "region"),
        "multi_az": bool(cluster.get("multi_az")),
    }
    wrong = [f"{name} is {present[name]}, not {value}" for name, value in asked.items() if value != "" and value != present[name]]
    return "; ".join(wrong)


def spec_of(cluster: Object, pools: Sequence[Object], class_label: str, asked: Mapping[str, int]) -> ObservedCluster:
    """The cluster as the service shows it; `asked` are the nodes that were asked for by class."""
    state = str(cluster.get("state") or "unknown")
    status: State = STATES.get(state, "cluster_provisioning")
    detail = cluster.get("status") or {}
    code, message = str(detail.get("provision_error_code") or ""), str(detail.get("provision_error_message") or "")
    installed = state in INSTALLED
    details = ": ".join(filter(None, [code, message or str(detail.get("description") or "")]))
    if status == "failed" and not details:
        details = "OpenShift Cluster Manager gives no reason; its log of the installation may"
    return ObservedCluster(
        internal_id=str(cluster.get("id") or ""),
        external_id=str(cluster.get("external_id") or ""),
        status=status,
        status_details=details or ("" if status == "ready" else state),
        additional_info={"name": str(cluster.get("name") or "")},
        cloud_provider=_id(cluster, "cloud_provider"),
        region=_id(cluster, "region"),
        multi_az=bool(cluster.get("multi_az")),
        node_sets=node_sets(pools, class_label, asked, bool(cluster.get("multi_az")), installed),
        api_url=str((cluster.get("api") or {}).get("url") or ""),
        console_url=str((cluster.get("console") or {}).get("url") or ""),
        version=version_of(cluster),
        retryable=status != "failed" or code in PASSING,
        installed=installed,
        updating=state == "updating",
        created_at=_time(cluster.get("creation_timestamp")),
        conditions=_conditions(cluster, state, details),
    )


def _conditions(cluster: Object, state: str, details: str) -> dict[str, ConditionState]:
    installed, answers = state in INSTALLED, STATES.get(state) == "ready"
    ready = installed or bool((cluster.get("status") or {}).get("dns_ready"))
    reason = f"State{''.join(part.title() for part in state.split('_'))}"
    health = str(cluster.get("health_state") or "unknown")
    sick = {"unhealthy": TRUE, "healthy": FALSE}.get(health, UNKNOWN if not answers else FALSE)
    return {
        INFRASTRUCTURE_READY: ConditionState(TRUE if ready else FALSE, reason),
        AVAILABLE: ConditionState(TRUE if answers else FALSE, reason, "" if answers else details),
        DEGRADED: ConditionState(sick, f"Health{health.title()}"),
    }


def version_of(cluster: Object) -> str:
    version = cluster.get("version") or {}
    return str(cluster.get("openshift_version") or version.get("raw_id") or str(version.get("id") or "").removeprefix("openshift-v"))


def is_upgrade(cluster: Object, version: str) -> bool:
    """Whether the version is a later one than the cluster's: the service upgrades by itself too, and nothing goes back."""

    def order(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text)]

    return order(version) > order(version_of(cluster))


def shown(kind: str, name: str, body: Object) -> Object:
    """An object of the service as changes and diffs show it: with a kind and a name, without secrets."""
    if kind == "AddOnInstallation" and "parameters" in body:
        # Any of them may be one.
        body = {**body, "parameters": [{"id": entry.get("id"), "value": HIDDEN} for entry in listed(body["parameters"])]}
    content = {key: value for key, value in without_secrets(body).items() if key not in ("kind", "id", "href", "name")}
    return {"kind": kind, "metadata": {"name": name}, **content}


def without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        if value.get("kind") == "Secret":
            hidden = {field: dict.fromkeys(value[field] or {}, HIDDEN) for field in ("data", "stringData") if field in value}
            return {**value, **hidden}
        return {key: HIDDEN if key in SECRET_FIELDS else without_secrets(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_secrets(inner) for inner in value]
    return value


def listed(value: Any) -> list[Object]:
    """Objects inside another: the description has them as a list, and the service also as a page with `items`."""
    return list((value.get("items") if isinstance(value, Mapping) else value) or [])


def _id(item: Object, name: str) -> str:
    return str((item.get(name) or {}).get("id") or "")


def _time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
