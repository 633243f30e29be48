# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The references of items: the objects that they mean, and the items that must be written first. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable

from ..common.types import Object
from .document import Item, Named
from .kinds import EDA_ORGANIZATIONS, RULEBOOKS
from .model import Association, Reference
from .resolve import Resolver, Target, Unresolved
from .snapshot import Snapshot


class References:
    """Resolves the references of items. `needs` has the items that must be written before an item; `problems` gets unknown names."""

    def __init__(self, resolver: Resolver, snapshot: Snapshot, problems: list[str]) -> None:
        self._resolver = resolver
        self._snapshot = snapshot
        self._problems = problems
        self.needs: dict[Item, set[Item]] = {}

    def targets(self, item: Item) -> dict[str, dict[Named, Target]]:
        """What each reference of the item means, by its field. One that the object itself shows has no target."""
        targets: dict[str, dict[Named, Target]] = {}
        found = self._snapshot.find(item)
        for member, named in item.named():
            kinds = member.kinds if isinstance(member, Reference) else (member.kind,)
            if member.name == "rulebook":
                target = self._rulebook(item, named, found)
            elif found and not any(self._was_read(key) for key in kinds) and self._shows(item, member, named, found[0]):
                continue
            else:
                target = self.resolve(item, member.name, kinds, named)
            if target:
                targets.setdefault(member.name, {})[named] = target
                if not member.deferred:
                    self.need(item, target)
        return targets

    def resolve(self, item: Item, name: str, kinds: Iterable[str], named: Named) -> Target | None:
        """What the field `name` of the item means."""
        try:
            return self._resolver.resolve(kinds, named, item.organization)
        except Unresolved as error:
            self._problems.append(f"{item.where}: {name} names {error}.")
            return None

    def need(self, item: Item, target: Target) -> None:
        """Have the item written after this target."""
        if target.item is not None and target.item is not item:
            self.needs.setdefault(item, set()).add(target.item)

    def _rulebook(self, item: Item, named: Named, found: list[Object]) -> Target | None:
        project = item.values.get("project") or Named("")
        if found and found[0].get("rulebook_name") == named.name and not self._snapshot.has(RULEBOOKS):
            return Target(RULEBOOKS, named.name, found[0].get("rulebook_id"))
        try:
            return self._resolver.rulebook(project, named)
        except Unresolved as error:
            self._problems.append(f"{item.where}: rulebook names {error}.")
            return None

    def _was_read(self, key: str) -> bool:
        return key == EDA_ORGANIZATIONS or self._snapshot.has(key)

    def _shows(self, item: Item, member: Reference | Association, named: Named, current: Object) -> bool:
        """Whether the object itself shows that it refers to this name, so that its list was not read."""
        return isinstance(member, Association) or self._snapshot.name_of(item.kind, member, current) == named.name
