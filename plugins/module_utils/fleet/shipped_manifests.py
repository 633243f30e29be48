# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Objects of the manifests that the collection ships, and how they are brought to a cluster: a definition is updated, others are created.

An object that exists belongs to the site, which may have changed it, so it stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..common.third_party import yaml
from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Conflict, NotFound
from ..kube.kinds import register

ROOT = Path(__file__).parents[3] / "extensions"
CRDS, DEPLOY = ROOT / "crds", ROOT / "eda/deploy/kubernetes"
DEFINITION = "CustomResourceDefinition"

register("apiextensions.k8s.io", DEFINITION, "customresourcedefinitions", namespaced=False)
register("rbac.authorization.k8s.io", "Role", "roles")
register("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
register("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False)
register("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False)


@dataclass(frozen=True)
class Applied:
    """An object that was created or updated; in check mode, would be."""

    kind: str
    name: str
    created: bool


def read_manifests(files: Iterable[Path], namespace: str = "") -> list[Object]:
    """The objects of these files, in their order. With a `namespace`, those without one are in it."""
    items: list[Object] = [item for file in files for item in yaml.safe_load_all(file.read_text(encoding="utf-8")) if item]
    if namespace:
        items = [item | {"metadata": {"namespace": namespace} | item["metadata"]} for item in items]
    return items


def ensure(kube: Kube, items: Iterable[Object], *, check_mode: bool = False) -> list[Applied]:
    """Create what is missing and update definitions. Returns what changed, in order."""
    found = (_ensure(kube, item, check_mode) for item in items)
    return [each for each in found if each]


def _ensure(kube: Kube, item: Object, check_mode: bool) -> Applied | None:
    kind, metadata = item["kind"], item["metadata"]
    before = kube.find(item["apiVersion"], kind, metadata["name"], metadata.get("namespace"))
    if before is None:
        try:
            kube.create(item, dry_run=check_mode)
        except Conflict:
            return None  # another run was faster
        except NotFound:
            if not check_mode:
                raise  # in check mode, its namespace was not created either
        return Applied(kind, metadata["name"], created=True)
    if kind != DEFINITION:
        return None
    after = kube.apply(item, force=True, dry_run=True)
    if after["spec"] == before["spec"]:
        return None
    if not check_mode:
        kube.apply(item, force=True)
    return Applied(kind, metadata["name"], created=False)
