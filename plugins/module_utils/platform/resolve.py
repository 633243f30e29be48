# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which object a reference of a document means: one of the platform, or one that the document is about to create."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..common.text import did_you_mean
from .document import Document, Item, Named
from .kinds import EDA_ORGANIZATIONS, EDA_PROJECTS, EDA_TOKENS, KINDS, ORGANIZATIONS, RULEBOOKS, SYSTEM_TEMPLATES, TEAMS, USERS
from .model import Kind
from .snapshot import Snapshot

# Not part of documents; where to create them instead.
ELSEWHERE = (EDA_TOKENS, RULEBOOKS, SYSTEM_TEMPLATES, TEAMS, USERS)


@dataclass(frozen=True)
class Target:
    """An object: by its id, or the item that will be it."""

    kind: str
    name: str
    id: int | None = None
    item: Item | None = None
    organization: str = ""


class Unresolved(Exception):
    """A reference names no object, or several. The message is a part of a sentence."""


class Resolver:
    def __init__(self, document: Document, snapshot: Snapshot) -> None:
        self._document = document
        self._snapshot = snapshot

    def resolve(self, kinds: Iterable[str], named: Named, organization: str) -> Target:
        """The object of this name. One of the same organization is meant first."""
        keys = [key for key in kinds if named.kind in ("", key)]
        found = [target for key in keys for target in self._targets(key, named.name)]
        if named.organization:
            found = [target for target in found if target.organization in ("", named.organization)]
        elif nearest := [target for target in found if target.organization == organization]:
            found = nearest
        if not found:
            raise Unresolved(self._unknown(keys, named))
        if len(found) > 1:
            scopes = ", ".join(sorted({f"{KINDS[target.kind].title} of {target.organization or 'no organization'}" for target in found}))
            raise Unresolved(f"{named.name}, and there are several of that name ({scopes}): write it with name and organization")
        return found[0]

    def rulebook(self, project: Named, named: Named) -> Target:
        """A rulebook of a project; without an id where the project has yet to be imported."""
        for item in self._document.of(EDA_PROJECTS):
            found = self._snapshot.find(item)
            # Also after a run that was killed, or an import that failed.
            if item.name == project.name and item.state != "absent" and not (found and found[0].get("import_state") == "completed"):
                return Target(RULEBOOKS, named.name, item=item)
        projects = {each["id"] for each in self._snapshot.candidates(KINDS[EDA_PROJECTS], project.name)}
        rulebooks = [each for each in self._snapshot.objects.get(RULEBOOKS, {}).values() if each.get("project_id") in projects]
        for rulebook in rulebooks:
            if rulebook.get("name") == named.name:
                return Target(RULEBOOKS, named.name, rulebook["id"])
        names = [str(each.get("name")) for each in rulebooks]
        raise Unresolved(f"rulebook {named.name}, which project {project.name} does not have{did_you_mean(named.name, names)}: correct it")

    def _targets(self, key: str, name: str) -> list[Target]:
        if key == EDA_ORGANIZATIONS:
            return self._eda_organization(name)
        kind = KINDS[key]
        targets: list[Target] = []
        known: set[int] = set()
        for item in self._document.of(key):
            if item.name == name:
                present = self._snapshot.find(item)
                known |= {each["id"] for each in present}
                if item.state != "absent":
                    targets.append(Target(key, name, present[0]["id"] if len(present) == 1 else None, item, item.organization))
        others = [found for found in self._snapshot.candidates(kind, name) if found["id"] not in known]
        return targets + [Target(key, name, found["id"], None, self._organization(kind, found)) for found in others]

    def _eda_organization(self, name: str) -> list[Target]:
        """EDA has the organizations of the gateway, with ids of its own."""
        if identity := self._snapshot.eda_organization(name):
            return [Target(EDA_ORGANIZATIONS, name, identity)]
        items = [item for item in self._document.of(ORGANIZATIONS) if item.name == name and item.state != "absent"]
        return [Target(EDA_ORGANIZATIONS, name, item=item) for item in items]

    def _organization(self, kind: Kind, found: dict[str, object]) -> str:
        own = [reference for reference in kind.references if reference.name == "organization"]
        return self._snapshot.name_of(kind, own[0], dict(found)) if own else ""

    def _unknown(self, keys: list[str], named: Named) -> str:
        title = " or ".join(KINDS[key].title for key in keys if key != SYSTEM_TEMPLATES)
        scope = f" in organization {named.organization}" if named.organization else ""
        names = {str(found.get(KINDS[key].name_field)) for key in keys for found in self._snapshot.objects.get(key, {}).values()}
        names |= {item.name for key in keys for item in self._document.of(key)}
        suggested = did_you_mean(named.name, names - {named.name})
        addable = [key if key != EDA_ORGANIZATIONS else ORGANIZATIONS for key in keys if key not in ELSEWHERE]
        remedy = f"add it to {' or '.join(addable)}" if addable else "create it on the platform"
        return f"{title} {named.name}{scope}, which neither the document nor the platform has{suggested}: {remedy}, or correct the name"
