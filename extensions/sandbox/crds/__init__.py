"""The CustomResourceDefinitions of the sandbox, read from their files. Installing them is up to the caller.

A package, because Ansible's import of collections takes the folder with the YAML files for the module, whatever stands beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

try:
    # HyperShift's own CRDs are long: three seconds to read in Python, a tenth of that with libyaml.
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeLoader  # type: ignore[assignment]

__all__ = ["COLLECTION_CRDS", "SANDBOX_CRDS", "SafeLoader", "load_crd", "sandbox_crds"]

SANDBOX_CRDS = Path(__file__).parent
COLLECTION_CRDS = Path(__file__).parents[2] / "crds"


def load_crd(path: Path, group: str | None = None) -> dict[str, Any]:
    """The CRD in the file `path`, moved to the API group `group` if that is given."""
    crd = yaml.load(path.read_text(encoding="utf-8"), Loader=SafeLoader)
    if not isinstance(crd, dict) or crd.get("kind") != "CustomResourceDefinition":
        raise ValueError(f"{path} must hold one CustomResourceDefinition, and holds something else.")
    if group is not None:
        crd["spec"]["group"] = group
        crd["metadata"]["name"] = f"{crd['spec']['names']['plural']}.{group}"
    return crd


def sandbox_crds(hypershift: Path | None = None, *, order_group: str | None = None) -> list[dict[str, Any]]:
    """All CRDs of a sandbox hub: ClusterOrder, in the API group `order_group` if that is given, ClusterRegistry, and HyperShift's.

    `hypershift` is a folder with HyperShift's own CRDs, to take in place of the sandbox's small ones.
    """
    ours = [load_crd(path, order_group if path.stem == "clusterorders" else None) for path in _files(COLLECTION_CRDS)]
    return ours + [load_crd(path) for path in _files(hypershift or SANDBOX_CRDS)]


def _files(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise FileNotFoundError(f"The folder {folder} holds no CRDs (*.yaml).")
    return files
