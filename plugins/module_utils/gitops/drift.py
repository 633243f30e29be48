# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What differs between the files of a repository, the orders on a hub and their clusters. A pure function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..common.types import Object
from ..kube.errors import Invalid
from .order_file import differences, read

IN_SYNC, DIFFERENT, MISSING, UNPLANNED, INVALID = "InSync", "Different", "MissingOnHub", "OnlyOnHub", "InvalidFile"


@dataclass(frozen=True)
class HubOrder:
    """An order on the hub. `cluster` has what its cluster lacks, as its status reports it."""

    item: Object
    cluster: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        metadata = self.item["metadata"]
        return metadata["namespace"], metadata["name"]


@dataclass(frozen=True)
class Drift:
    """One order. `hub` has the fields that differ between its file and the hub, `cluster` what differs between hub and cluster."""

    namespace: str
    name: str
    state: str
    path: str = ""
    hub: list[str] = field(default_factory=list)
    cluster: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"in_sync": self.state == IN_SYNC and not self.cluster}


def covered_namespaces(paths: Sequence[str], folder: str) -> set[str]:
    """The namespaces that have a folder in the repository."""
    inside = [path.removeprefix(f"{folder}/").split("/") for path in paths]
    return {parts[0] for parts in inside if len(parts) > 1}


def find_drift(files: Mapping[str, str], folder: str, orders: Sequence[HubOrder]) -> list[Drift]:
    """Every order of the files and of the hub, sorted by namespace and name."""
    known, found = {order.key: order for order in orders}, dict[tuple[str, str], Drift]()
    for path, text in files.items():
        entry = _of_file(path, text, folder, known)
        found[entry.namespace, entry.name] = entry
    for key, order in known.items():
        if key not in found:
            found[key] = Drift(*key, UNPLANNED, cluster=list(order.cluster))
    return [found[key] for key in sorted(found)]


def _of_file(path: str, text: str, folder: str, known: Mapping[tuple[str, str], HubOrder]) -> Drift:
    namespace, _slash, rest = path.removeprefix(f"{folder}/").rpartition("/")
    name = rest.rpartition(".")[0]
    order = known.get((namespace, name))
    cluster = list(order.cluster) if order else []
    try:
        wanted = read(text)
    except Invalid as error:
        return Drift(namespace, name, INVALID, path, [str(error)], cluster)
    inside = wanted["metadata"]["namespace"], wanted["metadata"]["name"]
    if inside != (namespace, name):
        return Drift(
            namespace, name, INVALID, path, [f"The file has the order {inside[0]}/{inside[1]}, which its path does not name."], cluster
        )
    if order is None:
        return Drift(namespace, name, MISSING, path)
    fields = differences(wanted, order.item)
    return Drift(namespace, name, DIFFERENT if fields else IN_SYNC, path, fields, cluster)
