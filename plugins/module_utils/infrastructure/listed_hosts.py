# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A list of hosts as an inventory, for example a group of Ansible's inventory. The hosts themselves have no mark, only the record has."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .host_choice import Host, Names
from .host_claims import Inventory


@dataclass
class ListedInventory(Inventory):
    """The hosts of a list. `title` is the name that the site gave it."""

    title: str
    hosts: Iterable[Host]

    def __post_init__(self) -> None:
        slug = re.sub(r"[^a-z0-9-]", "-", self.title.lower()).strip("-")
        # Two titles may have the same characters left.
        digest = "" if slug == self.title else f"-{hashlib.sha256(self.title.encode()).hexdigest()[:8]}"
        self.name = f"listed-{slug[:40]}{digest}"
        self._hosts = {host.name: host for host in self.hosts}

    def marked(self) -> list[Host]:
        return []

    def unmarked(self) -> list[Host]:
        return list(self._hosts.values())

    def is_settled(self, host: Host) -> bool:  # noqa: ARG002 - it has no marks
        return True

    def mark(self, hosts: Names) -> list[str]:  # noqa: ARG002 - the same
        return []

    def unmark(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name in self._hosts and self._hosts[name].in_use]


def listed_host(item: Mapping[str, Any]) -> Host:
    """A host as a task describes it."""
    return Host(
        item["name"],
        frozenset([item["resource_class"]]),
        item["failure_domain"] or "",
        is_free=item["available"] and not item["in_use"],
        is_clean=item["clean"],
        in_use=item["in_use"],
        problem="" if item["available"] else "is not available",
    )
