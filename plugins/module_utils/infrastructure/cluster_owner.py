# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The cluster that has hosts, addresses and records of a site, as inventories, pools and DNS zones record it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClusterOwner:
    """The cluster of an order, or one without an order, whose `uid` is empty. `group` is the API group of the order."""

    namespace: str
    name: str
    uid: str = ""
    group: str = ""

    @property
    def key(self) -> str:
        return self.uid or f"{self.namespace}.{self.name}"
