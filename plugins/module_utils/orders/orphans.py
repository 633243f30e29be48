# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is left on a hub of orders that no longer exist: working namespaces, Leases, entries of pools, hosts. Pure; `sweep` acts on it.

A deleted order keeps its Lease, because the token of a lock must not begin again while anything with an older token can exist. That can
no longer be once the namespace of the order is gone as well, and only then a Lease is an orphan. An allocation and a claim of hosts are
orphans once the working namespace is gone: until then the cluster may use them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ..common.timestamps import format_time, parse_time
from ..common.types import Object
from ..infrastructure import address_pools, claim_record
from ..infrastructure.cluster_owner import ClusterOwner
from ..kube.client import Kube
from ..lock import lease
from .model import Names, label_value

KINDS = ("Namespace", "Lease", address_pools.KIND, claim_record.KIND)


@dataclass(frozen=True)
class Orphan:
    """An object on the hub, and the order that it was created for. `uid` is empty where the object does not record it."""

    item: Object
    namespace: str
    name: str
    uid: str = ""
    since: datetime | None = None

    @property
    def kind(self) -> str:
        return str(self.item["kind"])

    def shown(self) -> Object:
        """For a task's result."""
        order = {"namespace": self.namespace, "name": self.name, "uid": self.uid or None}
        since = format_time(self.since) if self.since else None
        return {"kind": self.kind, "name": self.item["metadata"]["name"], "order": order, "since": since}


def read_orphans(kube: Kube, names: Names) -> list[Orphan]:
    """What the hub has at this moment: five lists. The orders come last, so that a new one is never missed."""
    pools = address_pools.read_pools(kube, names.site_namespace)
    claims = claim_record.read_records(kube, names.site_namespace)
    leases = kube.list_all(lease.API_VERSION, "Lease", names.site_namespace, lease.selector())
    namespaces = kube.list_all("v1", "Namespace")
    return find_orphans(names, kube.list_all(names.api_version, "ClusterOrder"), namespaces, leases, pools, claims)


def find_orphans(
    names: Names,
    orders: Iterable[Object],
    namespaces: Iterable[Object],
    leases: Iterable[Object],
    pools: Iterable[Object] = (),
    claims: Iterable[Object] = (),
) -> list[Orphan]:
    """The working namespaces, Leases, allocations and claims among these whose order is not among these.

    `namespaces` are all of the hub, `claims` the records of all inventories.
    """
    uids = {(item["metadata"]["namespace"], label_value(item["metadata"]["name"])): item["metadata"]["uid"] for item in orders}
    present = {item["metadata"]["name"]: item for item in namespaces}
    found = [_of_namespace(names, item, uids) for item in present.values()]
    found += [_of_lease(names, item, present) for item in leases]
    used = {*uids.values(), *((item["metadata"].get("labels") or {}).get(names.order_uid_label, "") for item in present.values())}
    found += [_of_owner(item, each.owner, each.orphaned_since) for item, each in address_pools.orphaned(pools, names.group, used)]
    found += [_of_owner(item, each.owner, each.orphaned_since) for item, each in claim_record.orphaned(claims, names.group, used)]
    return [orphan for orphan in found if orphan]


def _of_namespace(names: Names, item: Object, uids: dict[tuple[str, str], str]) -> Orphan | None:
    labels = item["metadata"].get("labels") or {}
    namespace, name, uid = (labels.get(label, "") for label in (names.order_namespace_label, names.order_label, names.order_uid_label))
    if not namespace or not name:
        return None
    owner = uids.get((namespace, name))
    return None if owner and uid in ("", owner) else Orphan(item, namespace, name, uid, orphaned_since(names, item))


def _of_lease(names: Names, item: Object, present: dict[str, Object]) -> Orphan | None:
    state = lease.state_of(item)
    if state is None or state.namespace in present or names.working_namespace(state.namespace, state.order) in present:
        return None
    return Orphan(item, state.namespace, state.order, since=orphaned_since(names, item))


def _of_owner(item: Object, owner: ClusterOwner, since: str) -> Orphan:
    return Orphan(item, owner.namespace, owner.name, owner.uid, parse_time(since))


def orphaned_since(names: Names, item: Object) -> datetime | None:
    """When the object was reported first, as it records it."""
    return parse_time((item["metadata"].get("annotations") or {}).get(names.orphaned_annotation))
