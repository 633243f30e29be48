# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which objects belong to the runs of a ledger: those to adopt, and those to delete because the document no longer has them.

A run that was killed may have created objects whose ids it did not record; their names are pending in the ledger. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..common.types import Object
from .document import Document, Item
from .kinds import KINDS
from .ledger import Ledger
from .model import Kind
from .plan import Change, FieldChange
from .snapshot import Snapshot

Key = tuple[str, int]  # kind and id


def is_adopted(change: Change, ledger: Ledger) -> bool:
    """Whether an object that is not in the ledger belongs there: a killed run was about to create it, or a lost ledger had it."""
    if ledger.entry(change.kind.key, change.id or 0):
        return False
    if (change.kind.key, change.scope, change.name) in ledger.pending:
        return True
    return not ledger.exists and all(_is_unknown_secret(change, each) for each in change.fields)


def leftovers(document: Document, snapshot: Snapshot, ledger: Ledger, matched: Iterable[tuple[Item, Object]]) -> list[Change]:
    """Deletions of what earlier runs created and the document no longer has."""
    kept = {(item.kind.key, current["id"]) for item, current in matched}
    found = [*_recorded(document, snapshot, ledger, kept), *_pending(document, snapshot, ledger, kept)]
    return [
        Change("delete", kind, str(current.get(kind.name_field)), scope, id=current["id"], current=current)
        for kind, current, scope in found
        if kind.deletable
    ]


def created(current: Object) -> str:
    """When the object was created, which tells it apart from a later one with the same id."""
    return str(current.get("created") or current.get("created_at") or "")


def _recorded(document: Document, snapshot: Snapshot, ledger: Ledger, kept: set[Key]) -> Iterator[tuple[Kind, Object, str]]:
    """Objects that the ledger has with their ids."""
    named = {(item.kind.key, found["id"]) for item in document.items for found in snapshot.find(item)}
    for key, entries in ledger.entries.items():
        for identity, entry in entries.items():
            current = snapshot.objects.get(key, {}).get(identity)
            if entry.owned and current and entry.created == created(current) and (key, identity) not in kept | named:
                yield KINDS[key], current, entry.scope


def _pending(document: Document, snapshot: Snapshot, ledger: Ledger, kept: set[Key]) -> Iterator[tuple[Kind, Object, str]]:
    """Objects that a killed run was about to create, and did."""
    wanted = {(item.kind.key, item.scope, item.name) for item in document.items}
    for key, scope, name in ledger.pending - wanted:
        kind = KINDS[key]
        for current in snapshot.candidates(kind, name):
            found_scope = snapshot.name_of(kind, kind.reference(kind.scope), current) if kind.scope else ""
            if found_scope in ("", scope) and not ledger.entry(key, current["id"]) and (key, current["id"]) not in kept:
                yield kind, current, scope


def _is_unknown_secret(change: Change, changed: FieldChange) -> bool:
    """A secret that may be the same; the platform does not show it, and a lost ledger does not know it."""
    return changed.field in change.compared.secrets and changed.before is not None
