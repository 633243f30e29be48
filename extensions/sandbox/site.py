"""The site of the sandbox: its namespace, settings and secrets, as a cloud provider creates them on a hub."""

from __future__ import annotations

from typing import Any

import yaml

from ...plugins.module_utils.infrastructure.site_secrets import SECRET
from ...plugins.module_utils.infrastructure.site_settings import CONFIG_MAP
from ...plugins.module_utils.lock.lease import SITE_NAMESPACE

VERSIONS = [*(f"4.17.{patch}" for patch in range(3)), *(f"4.20.{patch}" for patch in range(2))]
RELEASES = {version: f"quay.io/openshift-release-dev/ocp-release:{version}-multi" for version in VERSIONS}
SETTINGS: dict[str, Any] = {
    "parameters": {
        "release_image": {"allowed": list(RELEASES.values())},
        "base_domain": {"allowed": ["example.com"]},
        "idp_issuer": {"allowed": ["https://login.example.com"]},
    },
    "release_images": RELEASES,
    "classes": {
        **{name: {"kind": "agent"} for name in ("fc430", "fc640", "fc830", "gpu-l40s", "gpu-h100")},
        "vm-small": {"kind": "vm", "cores": 4, "memory": "16Gi"},
        "vm-large": {"kind": "vm", "cores": 8, "memory": "32Gi"},
    },
}
SECRETS = {
    "pull_secret": '{"auths": {"sandbox.example": {"auth": "c2FuZGJveDo="}}}',
    "ssh_public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHNhbmRib3hzYW5kYm94c2FuZGJveHNhbmRib3hzYW5k sandbox",
}


def site_objects() -> list[dict[str, Any]]:
    documents = {key: yaml.safe_dump(value, sort_keys=False) for key, value in SETTINGS.items()}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SITE_NAMESPACE}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(CONFIG_MAP), "data": documents},
        {"apiVersion": "v1", "kind": "Secret", "metadata": _metadata(SECRET), "stringData": SECRETS},
    ]


def _metadata(name: str) -> dict[str, str]:
    return {"name": name, "namespace": SITE_NAMESPACE}
