"""The shipped manifests of Kubernetes as objects."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

MANIFESTS = Path(sys.prefix) / "collections/ansible_collections/openfleet/clusters/extensions/eda/deploy/kubernetes"


def manifest(name: str) -> Any:
    return yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text(encoding="utf-8"))
