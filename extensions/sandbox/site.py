"""The site of the sandbox: its namespace and its settings, as a cloud provider creates them on a hub."""

from __future__ import annotations

from typing import Any

import yaml

from ...plugins.module_utils.infrastructure.site_settings import CONFIG_MAP
from ...plugins.module_utils.lock.lease import SITE_NAMESPACE

RELEASES = [f"quay.io/openshift-release-dev/ocp-release:4.17.{patch}-multi" for patch in range(3)]
PARAMETERS = {
    "release_image": {"allowed": RELEASES},
    "base_domain": {"allowed": ["example.com"]},
    "idp_issuer": {"allowed": ["https://login.example.com"]},
}


def site_objects() -> list[dict[str, Any]]:
    metadata = {"name": CONFIG_MAP, "namespace": SITE_NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SITE_NAMESPACE}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"parameters": yaml.safe_dump(PARAMETERS)}},
    ]
