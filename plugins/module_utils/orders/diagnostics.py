# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Diagnostics of one order and its cluster for a support case, as one archive without secrets.

Secrets are redacted in three ways: the content of a Secret is not written; its values are replaced wherever else they occur; and so is
everything that looks like a private key or a signed token. Archives of an unchanged order are identical.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import json
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..common import bounded_yaml
from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import KubeError, NotFound
from ..kube.oc import OcClient, kubeconfig_of
from ..lock.lease import read
from ..providers.factory import ProviderFactory
from .model import ClusterOrder, Names
from .observe import cluster_ref, provider_type, recorded_cluster
from .tenant import HIDDEN, LAST_APPLIED, shown

# Shorter values are words that occur elsewhere by chance.
LEAST_SECRET = 8
LOOKS_SECRET = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}", re.DOTALL
)
NAMED_SECRET = re.compile(r"auth$|pass|token|secret|key|certificate-data", re.IGNORECASE)
IN_CLUSTER = "nodes,namespaces,events"
IN_OPENSHIFT = "clusterversions.config.openshift.io,clusteroperators.config.openshift.io"

Files = dict[str, str]


def collect(kube: Kube, names: Names, namespace: str, name: str, client: str | None = None) -> Files:
    """The files of the archive by name; NotFound where the order and its objects do not exist."""
    item = kube.find(names.api_version, "ClusterOrder", name, namespace)
    order = ClusterOrder.from_object(item, names) if item else None
    working = order.working_namespace if order else names.working_namespace(namespace, name)
    with OcClient.connected(kubeconfig_of(kube.target), client) as hub:
        objects = [entry for entry in hub.everything(working) if entry["kind"] != "Event"]
        if order is None and not objects:
            raise NotFound(f"There is no ClusterOrder {namespace}/{name}, and nothing in the namespace {working}.")
        events = hub.get("events", ["--namespace", working]) + hub.get(
            "events", ["--namespace", namespace, f"--field-selector=involvedObject.kind=ClusterOrder,involvedObject.name={name}"]
        )
    inside, problems = _inside(kube, order, client)
    lock = {key: str(value) for key, value in vars(read(kube, namespace, name, site=names.site_namespace)).items()}
    files = {
        "summary.txt": _summary(namespace, name, order, lock),
        "order.json": _json(shown(order) if order else None),
        "lock.json": _json(lock),
        "jobs.json": _json(_jobs(order, lock)),
        "hub/Event.json": _json([_plain(event) for event in events]),
        **_by_kind("hub", objects),
        **_by_kind("cluster", inside),
        "not_read.txt": "".join(f"{line}\n" for line in [*hub.problems, *problems]),
    }
    redaction = _Redaction(entry for entry in [*objects, *inside] if entry["kind"] == "Secret")
    return {path: redaction.apply(text) for path, text in files.items()}


def archive(folder: str, files: Mapping[str, str]) -> bytes:
    """The texts as a compressed tar file."""
    content = io.BytesIO()
    # Without times and owners, so that the same texts are the same archive.
    with gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path, text in sorted(files.items()):
            data = text.encode()
            entry = tarfile.TarInfo(f"{folder}/{path}")
            entry.size, entry.mode = len(data), 0o600
            tar.addfile(entry, io.BytesIO(data))
    return content.getvalue()


class _Redaction:
    """Redacts the values of Secrets."""

    def __init__(self, secrets: Iterable[Object]) -> None:
        values = {value for secret in secrets for value in _values(secret)}
        # The longest first: one may be a part of another.
        self._values = sorted((value for value in values if len(value) >= LEAST_SECRET), key=len, reverse=True)

    def apply(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return LOOKS_SECRET.sub(HIDDEN, text)


def _values(secret: Object) -> Iterator[str]:
    """The values of a Secret: encoded, decoded, and as JSON writes them."""
    for encoded in (secret.get("data") or {}).values():
        yield encoded
        try:
            text = base64.b64decode(encoded).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
        for value in (text.strip(), *_inner(text)):
            yield value
            yield json.dumps(value, ensure_ascii=False)[1:-1]


def _inner(text: str) -> Iterator[str]:
    """The values below names such as `token` in a Secret that is a document itself, a pull secret or a kubeconfig."""

    def under(value: Any, named_so: bool) -> Iterator[str]:
        if isinstance(value, dict):
            for name, inner in value.items():
                yield from under(inner, bool(NAMED_SECRET.search(str(name))))
        elif isinstance(value, list):
            for inner in value:
                yield from under(inner, named_so)
        elif named_so and isinstance(value, str):
            yield value

    try:
        yield from under(bounded_yaml.load(text), named_so=False)
    except bounded_yaml.BadYaml:
        return


def _inside(kube: Kube, order: ClusterOrder | None, client: str | None) -> tuple[list[Object], list[str]]:
    """Objects of the cluster itself, and why others are missing: most support cases are about a broken cluster."""
    kind = provider_type(order) if order else ""
    if order is None or not kind:
        return [], ["The cluster was not read: it does not exist yet."]
    try:
        found = ProviderFactory.for_cluster(kind, cluster_ref(kube, order)).kubeconfig(recorded_cluster(order))
        with OcClient.connected(found.content, client) as cluster:
            objects = cluster.get(IN_CLUSTER, ["--all-namespaces"])
            problems = list(cluster.problems)
            # Only OpenShift has these kinds, so their absence is no problem.
            return objects + cluster.get(IN_OPENSHIFT, []), problems
    except KubeError as error:
        return [], [f"The cluster was not read: {error}"]


def _by_kind(folder: str, objects: Iterable[Object]) -> Files:
    kinds: dict[str, list[Object]] = {}
    for item in objects:
        kinds.setdefault(item["kind"], []).append(_plain(item))
    return {f"{folder}/{kind}.json": _json(items) for kind, items in kinds.items()}


def _plain(item: Object) -> Object:
    """An object without managedFields, and a Secret with its keys only."""
    metadata = {key: value for key, value in item["metadata"].items() if key != "managedFields"}
    if LAST_APPLIED in (metadata.get("annotations") or {}):
        metadata["annotations"] = {key: value for key, value in metadata["annotations"].items() if key != LAST_APPLIED}
    plain = {**item, "metadata": metadata}
    for field in ("data", "stringData"):
        if item["kind"] == "Secret" and item.get(field):
            plain[field] = dict.fromkeys(item[field], HIDDEN)
    return plain


def _jobs(order: ClusterOrder | None, lock: Mapping[str, str]) -> list[Object]:
    """The known writers of the order: the last run, the holder of the lock, and the managers of its fields."""
    if order is None:
        return [{"holder": lock["holder"]}]
    written = [
        {"manager": entry.get("manager"), "part": entry.get("subresource") or "spec", "time": entry.get("time")}
        for entry in order.raw["metadata"].get("managedFields") or []
    ]
    return [{"job": order.status.get("job")}, {"holder": lock["holder"]}, *written]


def _summary(namespace: str, name: str, order: ClusterOrder | None, lock: Mapping[str, str]) -> str:
    if order is None:
        return f"ClusterOrder {namespace}/{name} is gone.\n"
    status = order.status
    lines = [
        f"ClusterOrder {namespace}/{name}",
        f"Template:  {order.template_id}",
        f"Phase:     {order.phase or 'not prepared by a run yet'}",
        f"Provider:  {provider_type(order) or 'none yet'}",
        f"Lock:      {lock['holder'] or 'free'}, token {lock['token']}",
    ]
    if failure := status.get("failure"):
        lines.append(f"Failure:   {failure['reason']}: {failure['message']}")
    width = max((len(item["type"]) for item in status.get("conditions", [])), default=0)
    lines += [f"{item['type']:{width}}  {item['status']:7}  {item['reason']}: {item['message']}" for item in status.get("conditions", [])]
    return "\n".join(lines) + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
