"""A host that changes between its choice and its mark: the others that were claimed with it do not stay claimed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from unittest.mock import Mock

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.claim_record import Claim, ClaimRecord
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.cluster_owner import ClusterOwner
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.host_choice import Host, HostShortage, Names
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.host_claims import HostClaims, Inventory


class Memory(ClaimRecord):
    def __init__(self) -> None:
        self.claims: dict[str, Claim] = {}

    def read(self) -> dict[str, Claim]:
        return dict(self.claims)

    def write(self, changes: Mapping[str, Claim | None]) -> None:
        self.claims = {key: claim for key, claim in {**self.claims, **changes}.items() if claim}


class Vanishing(Inventory):
    """Two hosts, of which one vanishes when it is marked."""

    name = "test"

    def __init__(self) -> None:
        self.free, self.mine = {"a", "b"}, set[str]()

    def _host(self, name: str, claimed: str = "") -> Host:
        return Host(name, frozenset(["small"]), claimed_class=claimed, is_free=not claimed)

    def marked(self) -> list[Host]:
        return [self._host(name, "small") for name in sorted(self.mine)]

    def unmarked(self) -> list[Host]:
        return [self._host(name) for name in sorted(self.free - self.mine)]

    def is_settled(self, host: Host) -> bool:
        return host.name in self.mine

    def mark(self, hosts: Names) -> list[str]:
        names = {each for group in hosts.values() for each in group}
        lost = sorted(names & {"b"} & self.free)
        self.free -= {"b"}
        self.mine |= names - {*lost}
        return lost

    def unmark(self, names: Iterable[str]) -> list[str]:
        self.mine -= {*names}
        return []


def test_a_shortage_after_a_lost_host_leaves_no_claim() -> None:
    record, inventory, writer = Memory(), Vanishing(), Mock(token=1)
    claims: Any = HostClaims(record, inventory, ClusterOwner("orders", "demo", "u1"), writer)
    with pytest.raises(HostShortage):
        claims.present({"small": 2})
    assert record.claims == {} and inventory.mine == set()
