# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Clusters of OpenShift Cluster Manager: the body for a request, and what is observed of one. Pure; it sends nothing."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
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
    ObservedCluster,
    State,
)
from .pools import Pool, node_sets, wanted_pools

NAME_LIMIT = 54
# A property of the cluster that names the cluster reference and the hub it was created for.
OWNER = "openfleet_owner"
STATES: Mapping[str, State] = {
    "waiting": "cluster_accepted",
    "pending": "cluster_accepted",
    "validating": "cluster_accepted",
    "installing": "cluster_provisioning",
    "ready": "ready",
    "updating": "ready",
    # Installed, but its API does not answer.
    "powering_down": "cluster_provisioned",
    "hibernating": "cluster_provisioned",
    "resuming": "cluster_provisioned",
    "error": "failed",
    "uninstalling": "deprovisioning",
    # For a while the service itself does not know.
    "unknown": "cluster_provisioning",
}
INSTALLED = ("ready", "updating", "powering_down", "hibernating", "resuming")
# Failures that a retry may not hit: an unknown one, one of the installation itself, no capacity for now. The others, of credentials,
# roles, subnets, tags, quota and versions, come back until the request or the account changes.
PASSING = ("", "OCM3999", "OCM5001", "OCM5011")
GCP_FIELDS = (
    *("type", "project_id", "private_key_id", "private_key", "client_email", "client_id"),
    *("auth_uri", "token_uri", "auth_provider_x509_cert_url", "client_x509_cert_url"),
)


def owner_of(hub: str, namespace: str, name: str) -> str:
    """What a cluster was created for, as its property says. `hub` is the id of the cluster that has the namespace."""
    return f"{hub}/{namespace}/{name}"


def cluster_name(owner: str) -> str:
    """The cluster's name at the service, where the names of all hubs and tenants of an organization meet."""
    name, mark = owner.rpartition("/")[2], hashlib.sha256(owner.encode()).hexdigest()[:6]
    return f"{name.replace('.', '-')[: NAME_LIMIT - len(mark) - 1].rstrip('-')}-{mark}"


def new_cluster(name: str, owner: str, request: ClusterRequest, class_label: str) -> Object:
    """The body that creates the cluster; Invalid with everything that is missing."""
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
        raise Invalid(f"OpenShift Cluster Manager cannot create such a cluster: {'; '.join(problems)}.", [])
    return body


def properties(owner: str, request: ClusterRequest) -> dict[str, str]:
    given = request.settings.get("properties") or {}
    return {str(key): str(value) for key, value in given.items()} | {OWNER: owner}


def version_id(version: str, channel_group: str) -> str:
    """The version's id at the service: its channel is a part of it, unless that is the stable one."""
    return f"openshift-v{version}" + (f"-{channel_group}" if channel_group != "stable" else "")


def _default_nodes(pool: Pool, class_label: str) -> Object:
    size = pool.size
    return {
        "compute_machine_type": {"id": pool.resource_class},
        "compute_labels": {class_label: pool.resource_class},
        **({"compute": size["replicas"]} if "replicas" in size else {"autoscale_compute": size["autoscaling"]}),
    }


def _cloud_account(cloud: str, settings: Mapping[str, Any], secrets: Mapping[str, Any], problems: list[str]) -> Object:
    """The customer's own cloud account, which the cluster is created in."""
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
    """What of the request cannot be reached by changing the cluster; empty where everything can."""
    requested = {"cloud_provider": request.cloud_provider, "region": request.region, "multi_az": request.multi_az}
    present = {
        "cloud_provider": _id(cluster, "cloud_provider"),
        "region": _id(cluster, "region"),
        "multi_az": bool(cluster.get("multi_az")),
    }
    wrong = [f"{name} is {present[name]}, not {value}" for name, value in requested.items() if value != "" and value != present[name]]
    return "; ".join(wrong)


def observed_cluster(cluster: Object, pools: Sequence[Object], class_label: str, requested: Mapping[str, int]) -> ObservedCluster:
    """The cluster as the service shows it; `requested` are the requested nodes by class."""
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
        node_sets=node_sets(pools, class_label, requested, bool(cluster.get("multi_az")), installed),
        api_url=str((cluster.get("api") or {}).get("url") or ""),
        console_url=str((cluster.get("console") or {}).get("url") or ""),
        version=version_of(cluster),
        running_version=version_of(cluster) if installed else "",
        available_updates=tuple(map(str, (cluster.get("version") or {}).get("available_upgrades") or [])),
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
    """Whether the version is later than the cluster's: the service upgrades by itself too, and never downgrades."""

    def order(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text)]

    return order(version) > order(version_of(cluster))


def _id(item: Object, name: str) -> str:
    return str((item.get(name) or {}).get("id") or "")


def _time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
