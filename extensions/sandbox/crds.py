"""CustomResourceDefinitions, read from files. Installing them is up to the caller; other projects' definitions are in `upstream`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

try:
    # HyperShift's CRDs are long: three seconds to read in Python, a tenth of that with libyaml.
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeLoader  # type: ignore[assignment]

__all__ = ["AGENTS_CRD", "COLLECTION_CRDS", "SafeLoader", "crds_in", "load_crd"]

COLLECTION_CRDS = Path(__file__).parents[1] / "crds"
AGENTS_CRD = Path(__file__).parent / "agents_crd.yaml"


def load_crd(path: Path, group: str | None = None) -> dict[str, Any]:
    """The CRD in the file `path`, moved to the API group `group` if that is given."""
    crd = yaml.load(path.read_text(encoding="utf-8"), Loader=SafeLoader)
    if not isinstance(crd, dict) or crd.get("kind") != "CustomResourceDefinition":
        raise ValueError(f"{path} must hold one CustomResourceDefinition, and holds something else.")
    if group is not None:
        crd["spec"]["group"] = group
        crd["metadata"]["name"] = f"{crd['spec']['names']['plural']}.{group}"
    return crd


def crds_in(folder: Path) -> list[dict[str, Any]]:
    """The CRDs in the YAML files of a folder, one in each file."""
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise FileNotFoundError(f"The folder {folder} holds no CRDs (*.yaml).")
    return [load_crd(path) for path in files]
