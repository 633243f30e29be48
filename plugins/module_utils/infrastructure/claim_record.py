# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The claims of an inventory as they are stored: a ConfigMap in the site's namespace, a key for each cluster. `host_claims` makes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..common.types import Object
from ..kube.client import Kube
from .cluster_owner import ClusterOwner
from .host_choice import Names

KIND = "ConfigMap"
LABEL = "openfleet.clusters/host-claims"


@dataclass(frozen=True)
class Claim:
    """The hosts of one cluster by class, and the token of the lock under which they were claimed."""

    owner: ClusterOwner
    hosts: Names
    token: int = 0
    orphaned_since: str = ""

    @classmethod
    def from_text(cls, text: str) -> Claim | None:
        """None for junk: the marks of the hosts protect them all the same."""
        try:
            stored = json.loads(text)
            named = (str(stored["namespace"]), str(stored["name"]), str(stored.get("uid", "")), str(stored.get("group", "")))
            hosts = {str(name): tuple(map(str, names)) for name, names in stored["hosts"].items()}
            return cls(ClusterOwner(*named), hosts, int(stored["token"]), str(stored.get("orphanedSince", "")))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def to_text(self) -> str:
        optional = {"uid": self.owner.uid, "group": self.owner.group, "orphanedSince": self.orphaned_since}
        return json.dumps(
            {
                "namespace": self.owner.namespace,
                "name": self.owner.name,
                **{name: value for name, value in optional.items() if value},
                "token": self.token,
                "hosts": {name: list(hosts) for name, hosts in self.hosts.items()},
            }
        )


class ClaimRecord:
    """The ConfigMap with all claims of an inventory."""

    def __init__(self, kube: Kube, namespace: str, inventory: str) -> None:
        self._kube = kube
        self.item: Object = {
            "apiVersion": "v1",
            "kind": KIND,
            "metadata": {"name": f"host-claims-{inventory}", "namespace": namespace, "labels": {LABEL: inventory}},
        }
        self._found: Object | None = None

    def read(self) -> dict[str, Claim]:
        metadata = self.item["metadata"]
        self._found = self._kube.find("v1", KIND, metadata["name"], metadata["namespace"])
        return claims_of(self._found or {})

    def write(self, changes: Mapping[str, Claim | None]) -> None:
        """Write these claims, and remove those that are None; Conflict where the object has changed since it was read."""
        data = {key: claim.to_text() if claim else None for key, claim in changes.items()}
        if self._found is None:
            self._kube.create(self.item | {"data": data})
        else:
            self._kube.patch(self._found, {"data": data})


def read_records(kube: Kube, site_namespace: str) -> list[Object]:
    """The records of all inventories of the site."""
    return list(kube.list_all("v1", KIND, site_namespace, LABEL))


def inventory_of(item: Object) -> str:
    """The inventory that a record is for."""
    return str(item["metadata"]["labels"][LABEL])


def claims_of(item: Object) -> dict[str, Claim]:
    """The claims of a record by the key of their cluster."""
    claims = {key: Claim.from_text(text) for key, text in (item.get("data") or {}).items()}
    return {key: claim for key, claim in claims.items() if claim}


def orphaned(items: Iterable[Object], group: str, uids: set[str]) -> Iterator[tuple[Object, Claim]]:
    """The claims of orders of this API group that are not among these, with the records that they are in."""
    for item in items:
        for claim in claims_of(item).values():
            if claim.owner.uid and claim.owner.uid not in uids and claim.owner.group in ("", group):
                yield item, claim
