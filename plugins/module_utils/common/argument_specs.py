# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Arguments that several modules share; their documentation is in the fragments of the same names."""

from __future__ import annotations

from typing import Any

Spec = dict[str, dict[str, Any]]

DEFAULT_GROUP = "cloudkit.openshift.io"  # the API group of ClusterOrders

KUBERNETES: Spec = {
    "kubeconfig": {"type": "raw", "no_log": True},
    "context": {"type": "str"},
    "host": {"type": "str"},
    "api_key": {"type": "str", "no_log": True},
    "username": {"type": "str"},
    "password": {"type": "str", "no_log": True},
    "client_cert": {"type": "path", "aliases": ["cert_file"]},
    "client_key": {"type": "path", "no_log": True, "aliases": ["key_file"]},
    "ca_cert": {"type": "path", "aliases": ["ssl_ca_cert"]},
    "validate_certs": {"type": "bool", "aliases": ["verify_ssl"]},
    "proxy": {"type": "str"},
    "no_proxy": {"type": "str"},
    "impersonate_user": {"type": "str"},
    "impersonate_groups": {"type": "list", "elements": "str"},
}
LOCK: Spec = {
    "lock": {
        "type": "dict",
        "options": {
            "namespace": {"type": "str", "required": True},
            "order": {"type": "str", "required": True},
            "holder": {"type": "str", "required": True},
            "token": {"type": "int", "required": True, "no_log": False},
            "duration": {"type": "int", "required": True},
            "acquired": {"type": "str", "required": True},
            "site": {"type": "str", "required": True},
            "version": {"type": "str", "required": True},
        },
    },
}
# The cluster of an order, or one without an order by its name. The name takes precedence: in tasks of templates the
# order is a default.
CLUSTER: Spec = {
    "cluster_order": {"type": "dict"},
    "name": {"type": "str"},
    "namespace": {"type": "str"},
    "provider": {"type": "str"},
}
CLUSTER_RULES: dict[str, Any] = {
    "required_one_of": [("cluster_order", "name")],
    "required_by": {"name": ("namespace", "provider"), "namespace": ("name",)},
}
S3: Spec = {
    "bucket": {"type": "str", "required": True},
    "endpoint_url": {"type": "str", "aliases": ["aws_endpoint_url"]},
    "region": {"type": "str", "aliases": ["aws_region"]},
    "access_key": {"type": "str", "no_log": False, "aliases": ["aws_access_key_id", "aws_access_key"]},
    "secret_key": {"type": "str", "no_log": True, "aliases": ["aws_secret_access_key", "aws_secret_key"]},
    "session_token": {"type": "str", "no_log": True, "aliases": ["aws_session_token"]},
    "profile": {"type": "str", "aliases": ["aws_profile"]},
    "aws_ca_bundle": {"type": "path"},
    "validate_certs": {"type": "bool", "default": True},
    "path_style": {"type": "bool"},
    "encryption_mode": {"type": "str", "choices": ["AES256", "aws:kms"]},
    "encryption_kms_key_id": {"type": "str", "no_log": False},
}
STATE_WRITE: Spec = {
    "epoch": {"type": "int"},
    "expected_revision": {"type": "int"},
    "keep_history": {"type": "int", "default": 1000},
}
WORKLOAD: Spec = {"namespace": {"type": "str", "required": True}, "name": {"type": "str", "required": True}}
# Both connections have the option validate_certs, which here is for both.
DISASTER_RECOVERY: Spec = (
    KUBERNETES
    | S3
    | {
        "validate_certs": {"type": "bool", "aliases": ["verify_ssl"]},
        "site_namespace": {"type": "str", "default": "openfleet-system"},
    }
)
ORDERS: Spec = {
    "api_group": {"type": "str", "default": DEFAULT_GROUP},
    "controller": {"type": "str", "choices": ["self", "external"], "default": "self"},
    "site_namespace": {"type": "str", "default": "openfleet-system"},
    "allowed_addresses": {"type": "list", "elements": "str", "default": []},
}
PLATFORM: Spec = {
    "aap_hostname": {"type": "str", "required": True},
    "aap_token": {"type": "str", "no_log": True},
    "aap_username": {"type": "str"},
    "aap_password": {"type": "str", "no_log": True},
    "aap_oauth_client_id": {"type": "str"},
    "aap_oauth_client_secret": {"type": "str", "no_log": True},
    "aap_validate_certs": {"type": "bool", "default": True},
    "aap_ca_cert": {"type": "path"},
    "aap_request_timeout": {"type": "float", "default": 30.0},
    "deadline": {"type": "int", "default": 1800},
}
FORGE: Spec = {
    "forge": {"type": "str", "choices": ["gitea", "forgejo", "github", "gitlab"], "required": True},
    "forge_url": {"type": "str", "required": True},
    "forge_token": {"type": "str", "required": True, "no_log": True},
    "forge_ca_cert": {"type": "path"},
    "forge_validate_certs": {"type": "bool", "default": True},
    "repository": {"type": "str", "required": True},
    "base_branch": {"type": "str", "default": "main"},
    "path": {"type": "str", "default": "orders"},
}
SELECTION: Spec = {"name": {"type": "str"}, "namespace": {"type": "str"}, "orders": {"type": "list", "elements": "raw", "default": []}}


def connection(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a module that describe the connection to the cluster."""
    return {name: parameters[name] for name in KUBERNETES if parameters.get(name) is not None}
