# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The settings and secrets of a request for a cluster of OpenShift Cluster Manager, as argument specs, and the credentials in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model import ClusterRequest
from .api import CLIENT_ID, TOKEN_URL, URL
from .secret import AccessSecret

SETTINGS: Mapping[str, Any] = {
    "url": {"type": "str", "default": URL, "description": "The address of OpenShift Cluster Manager's API."},
    "token_url": {"type": "str", "default": TOKEN_URL, "description": "Where an offline token is exchanged for an access token."},
    "client_id": {"type": "str", "default": CLIENT_ID, "description": "The client that the offline token was issued for."},
    "product": {"type": "str", "choices": ["osd", "rosa"], "default": "osd", "description": "The kind of managed OpenShift."},
    "channel_group": {"type": "str", "default": "stable", "description": "The channel that versions come from."},
    "ccs": {"type": "bool", "default": False, "description": "Whether to create the cluster in the customer's own cloud account."},
    "aws_account_id": {"type": "str", "description": "The customer's account, with ccs on aws."},
    "autoscaling": {
        "type": "list",
        "elements": "dict",
        "description": "Classes of which an autoscaler decides the number of nodes.",
        "options": {
            "resource_class": {"type": "str", "required": True, "description": "One of those in node_requests."},
            "min_replicas": {"type": "int", "required": True, "description": "Never fewer nodes."},
            "max_replicas": {"type": "int", "required": True, "description": "Never more nodes."},
        },
    },
    "properties": {"type": "dict", "description": "Properties of the cluster at the service, strings by name."},
}
SECRETS: Mapping[str, Any] = {
    "token": {"type": "str", "no_log": True, "description": "The offline token. Without it, the one in the Secret is used."},
    "aws_access_key_id": {"type": "str", "no_log": True, "description": "Of the customer's account, with ccs on aws."},
    "aws_secret_access_key": {"type": "str", "no_log": True, "description": "Of the customer's account, with ccs on aws."},
    "gcp_service_account": {"type": "str", "no_log": True, "description": "The key file of a service account, with ccs on gcp."},
}


def access_of(request: ClusterRequest, secret: AccessSecret) -> dict[str, str]:
    """How the request reaches the service, which the Secret records for later calls."""
    where = {"url": URL, "token_url": TOKEN_URL, "client_id": CLIENT_ID}
    token = request.secrets.get("token") or secret.access().token
    return {"token": token, **{key: str(request.settings.get(key) or default) for key, default in where.items()}}
