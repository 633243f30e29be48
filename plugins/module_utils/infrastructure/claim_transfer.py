# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Gives the hosts of a cluster to its order once that has another uid, which it has after a restore: the claims, then the marks of Agents.

Run again after a failure: it finds what still has the former uid.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..common.types import Object
from ..kube.client import Kube, retry_on_conflict
from ..kube.errors import KubeError, NotFound
from ..lock.fenced_writer import Change, FencedWriter
from .agent_hosts import API_VERSION, KIND, AgentLabels, agent_namespace
from .claim_record import Claim, ClaimRecord, inventory_of, read_records
from .cluster_owner import ClusterOwner
from .host_choice import merged


@dataclass(frozen=True)
class ClaimTransfer:
    """From the order with the uid `former` to `owner`, under the lock of its order. `owner_labels` name the order on Agents."""

    kube: Kube
    site_namespace: str
    former: str
    owner: ClusterOwner
    labels: AgentLabels
    owner_labels: Mapping[str, str]
    writer: FencedWriter
    check_mode: bool = False

    def run(self) -> list[Change]:
        """In all inventories of the site."""
        return [change for item in read_records(self.kube, self.site_namespace) for change in self._of_inventory(inventory_of(item))]

    def _of_inventory(self, inventory: str) -> Iterator[Change]:
        yield from retry_on_conflict(lambda: self._claims(inventory))
        if namespace := agent_namespace(inventory):
            yield from self._marks(namespace)

    def _claims(self, inventory: str) -> list[Change]:
        record = ClaimRecord(self.kube, self.site_namespace, inventory)
        claims = record.read()
        former, present = claims.get(self.former), claims.get(self.owner.key)
        if former is None:
            return []
        claim = Claim(self.owner, merged(present.hosts if present else {}, former.hosts), self.writer.token)
        if not self.check_mode:
            self.writer.ensure_held()
            record.write({self.former: None, self.owner.key: claim})
        before = {self.former: former, self.owner.key: present}
        return [Change("changed", _shown(record.item, before), _shown(record.item, {self.owner.key: claim}))]

    def _marks(self, namespace: str) -> list[Change]:
        mark: Object = {"metadata": {"labels": {self.labels.claim: self.owner.key, **self.owner_labels}}}
        agents: list[Object] = []
        with contextlib.suppress(NotFound):  # the hub has no Agents
            agents += self.kube.list_all(API_VERSION, KIND, namespace, f"{self.labels.claim}={self.former}")
        changes: list[Change] = []
        for change in self.kube.in_parallel(lambda agent: self.writer.patch(agent, lambda _present: mark), agents):
            if isinstance(change, KubeError):
                raise change
            changes.append(change)
        return changes


def _shown(record: Object, claims: Mapping[str, Claim | None]) -> Object:
    """The record with these claims only: those of other orders do not change."""
    return record | {"data": {key: claim.to_text() for key, claim in claims.items() if claim}}
