# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Flux's own manifests: read from a file or a URL, verified by their digest, and checked to have nothing but Flux in them.

What is applied to every cluster is what the site has pinned. The digest decides, wherever the bytes come from.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..common.bounded_yaml import BadYaml, load_all
from ..common.third_party import urllib3
from ..common.types import Object
from ..kube.connections import Budget, Limits, TooLarge, pool_classes
from ..kube.errors import Invalid, Unreachable
from ..kube.transport import CONNECT_SECONDS, reason_of
from .kinds import GROUP_SUFFIX, NAMESPACE

MAX_BYTES = 8 * 2**20  # the manifests of Flux 2.9 have about 1 MiB
MAX_NODES = 500_000
FETCH_SECONDS = 60.0
REDIRECTS = 3
CRD = "CustomResourceDefinition"
APIEXTENSIONS, RBAC = "apiextensions.k8s.io", "rbac.authorization.k8s.io"
# Whatever else a file has, such as a webhook or a Secret, is not applied with an administrator's permissions.
CLUSTER_KINDS = {("", "Namespace"), (APIEXTENSIONS, CRD), (RBAC, "ClusterRole"), (RBAC, "ClusterRoleBinding")}
NAMESPACED_KINDS = {
    *(("", kind) for kind in ("ConfigMap", "ResourceQuota", "Service", "ServiceAccount")),
    ("apps", "Deployment"),
    ("networking.k8s.io", "NetworkPolicy"),
    *((RBAC, kind) for kind in ("Role", "RoleBinding")),
}
DIGEST = re.compile(r"[0-9a-f]{64}")
REMEDY = "use the install manifest of a Flux release"


@dataclass(frozen=True)
class ManifestSource:
    """Where the manifests are, as a `path` or a `url`, and the digest that pins them."""

    sha256: str
    path: str = ""
    url: str = ""
    version: str = ""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> ManifestSource:
        """From the option `manifests`; Invalid says what is wrong with it."""
        known = {name: str(options.get(name) or "") for name in ("sha256", "path", "url", "version")}
        known["sha256"] = known["sha256"].removeprefix("sha256:").lower()
        if not DIGEST.fullmatch(known["sha256"]):
            raise Invalid("manifests.sha256 must be the SHA-256 digest of the manifests: 64 hexadecimal digits.", ["manifests"])
        if bool(known["path"]) == bool(known["url"]):
            raise Invalid("manifests needs one of path and url.", ["manifests"])
        if known["url"] and urlsplit(known["url"]).scheme not in ("http", "https"):
            raise Invalid("manifests.url must be an http or https address.", ["manifests"])
        return cls(**known)


@dataclass(frozen=True)
class FluxManifests:
    """The objects of one version of Flux, pinned by `digest`."""

    digest: str
    version: str
    crds: tuple[Object, ...]
    controllers: tuple[Object, ...]


def read_manifests(source: ManifestSource) -> FluxManifests:
    """The manifests of the source; Invalid where they are not those that the digest pins, Unreachable where they cannot be fetched."""
    content = _fetch(source.url) if source.url else _read(source.path)
    digest = hashlib.sha256(content).hexdigest()
    if digest != source.sha256:
        raise Invalid(
            f"The manifests at {source.path or _shown(source.url)} have the SHA-256 digest {digest}, not {source.sha256}: check that they"
            " are those of the version you want, then set the digest.",
            ["manifests"],
        )
    return parse_manifests(content, source)


def parse_manifests(content: bytes, source: ManifestSource) -> FluxManifests:
    try:
        documents = load_all(content, MAX_BYTES, MAX_NODES)
    except BadYaml as error:
        raise Invalid(f"The file with Flux's manifests {error}.", ["manifests"]) from None
    items = [document for document in documents if document]
    if problems := list(_problems(items)):
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise Invalid(f"The file with Flux's manifests is refused: {'; '.join(problems[:3])}{more}; {REMEDY}.", ["manifests"])
    crds = tuple(item for item in items if item["kind"] == CRD)
    return FluxManifests(source.sha256, source.version, crds, tuple(item for item in items if item["kind"] != CRD))


def _problems(items: list[Any]) -> Iterator[str]:
    kinds = []
    for number, item in enumerate(items, 1):
        metadata = item.get("metadata") if isinstance(item, dict) else None
        parts = [item.get("apiVersion"), item.get("kind"), metadata.get("name")] if isinstance(metadata, dict) else []
        if not metadata or not all(isinstance(part, str) and part for part in parts):
            yield f"document {number} is not a Kubernetes object"
            continue
        api_version, kind, name = map(str, parts)
        kinds.append(kind)
        yield from _misplaced((api_version.rpartition("/")[0], kind), name, metadata.get("namespace"), item)
    yield from (f"it has no {kind}" for kind in (CRD, "Deployment") if kind not in kinds)


def _misplaced(key: tuple[str, str], name: str, namespace: Any, item: Object) -> Iterator[str]:
    called = f"{key[1]} {name}"[:100]
    if key in CLUSTER_KINDS:
        if key[1] == "Namespace" and name != NAMESPACE:
            yield f"{called} is not {NAMESPACE}"
        spec = item.get("spec")
        if key[1] == CRD and not str(spec.get("group") if isinstance(spec, dict) else "").endswith(GROUP_SUFFIX):
            yield f"{called} is of another project"
    elif key not in NAMESPACED_KINDS:
        yield f"{called} is of a kind that Flux does not need"
    elif namespace != NAMESPACE:
        yield f"{called} is not in the namespace {NAMESPACE}"


def _read(path: str) -> bytes:
    try:
        with Path(path).expanduser().open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Invalid(f"The file {path} with Flux's manifests cannot be read: {error.strerror}.", ["manifests"]) from None
    if len(content) > MAX_BYTES:
        raise Invalid(f"The file {path} is larger than {MAX_BYTES // 2**20} MiB; {REMEDY}.", ["manifests"])
    return content


def _fetch(url: str) -> bytes:
    """The content, within the limits of size and time of the whole conversation, redirects included."""
    pool = urllib3.PoolManager(timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=FETCH_SECONDS), retries=False)
    limits = Limits(response_bytes=MAX_BYTES, total_bytes=2 * MAX_BYTES, total_seconds=FETCH_SECONDS)
    pool.pool_classes_by_scheme = pool_classes(Budget(limits))
    where = _shown(url)
    try:
        response = pool.request("GET", url, retries=urllib3.Retry(REDIRECTS, connect=0, read=0, status=0, other=0), decode_content=False)
    except (urllib3.exceptions.HTTPError, TooLarge) as error:
        raise Unreachable(
            f"Flux's manifests cannot be fetched from {where} ({reason_of(error)}); check the address and the network, and try again."
        ) from error
    finally:
        pool.clear()
    if response.status != 200:
        raise Unreachable(f"Flux's manifests cannot be fetched: {where} answers {response.status}; check the address.")
    return response.data


def _shown(url: str) -> str:
    """The address without a password in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
