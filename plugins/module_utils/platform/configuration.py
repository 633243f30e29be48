# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A whole run: read document, ledger and platform, plan, and unless it is a check, apply the plan and record what was done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..common.types import Object
from .apply import Applier, Outcome
from .client import PlatformApi
from .document import Document, Item, read
from .errors import InvalidDocument
from .ledger import Entry, Ledger, LedgerStore, Pending
from .ownership import created
from .plan import Change, Plan
from .planner import make_plan
from .preflight import check
from .snapshot import Snapshot, SnapshotReader
from .values import ENCRYPTED


def configure(api: PlatformApi, store: LedgerStore, content: Mapping[str, Any], *, check_mode: bool) -> Plan:
    """Configure the platform from a document, and delete what left it. The plan of what was done, or in check mode would be done."""
    document = read(content)
    ledger = store.read()
    if not document.items and not document.grants and not ledger.is_empty():
        raise InvalidDocument(["It is empty, and would delete everything that this ledger has: set state to absent if that is wanted."])
    return _Run(api, store, document, ledger).run(check_mode=check_mode)


def remove(api: PlatformApi, store: LedgerStore, *, check_mode: bool) -> Plan:
    """Delete everything that the ledger has, then the ledger."""
    ledger = store.read()
    plan = _Run(api, store, Document(()), ledger).run(check_mode=check_mode)
    if not check_mode:
        store.delete()
    return plan


class _Run:
    def __init__(self, api: PlatformApi, store: LedgerStore, document: Document, ledger: Ledger) -> None:
        self._api, self._store, self._document, self._ledger = api, store, document, ledger

    def run(self, *, check_mode: bool) -> Plan:
        self._api.hide(str(secret) for item in self._document.items for secret in secrets_of(item))
        snapshot = SnapshotReader(self._api).read(self._document, self._ledger)
        plan = make_plan(self._document, snapshot, self._ledger)
        if check_mode:
            return plan
        if plan.is_empty:
            if plan.owned or self._ledger.pending:
                self._store.update(_Record(plan, snapshot, Outcome(), self._ledger.pending))
            return plan
        check(self._api, plan)
        self._begin(plan)
        outcome = Applier(self._api, plan).apply()
        self._store.update(_Record(plan, snapshot, outcome, set(self._ledger.pending)))
        if outcome.error:
            raise outcome.error
        return plan

    def _begin(self, plan: Plan) -> None:
        """Record what is about to be created, so that the next run knows it if this one is killed."""
        self._ledger.pending |= {_pending(change) for change in plan.changes if change.action == "create"}
        self._ledger.grants |= {f"{role.id}/{role.principal}": role.called for role in plan.roles if role.action == "grant" and role.id}
        self._store.begin(self._ledger)


@dataclass(frozen=True)
class _Record:
    """Writes what a run has done into the ledger. `pending` is what it, or an earlier run that was killed, was about to create."""

    plan: Plan
    snapshot: Snapshot
    outcome: Outcome
    pending: set[Pending]

    def __call__(self, ledger: Ledger) -> None:
        ledger.pending -= self.pending - {_pending(change) for change in self.outcome.uncertain}
        for change in self.outcome.deleted:
            ledger.forget(change.kind.key, change.id or 0)
        self._forget_gone(ledger)
        written = {id(change.item) for change, _current in self.outcome.written}
        for item, current in self.plan.matched.values():
            if id(item) not in written:
                self._keep(ledger, item, current)
        for change, current in self.outcome.written:
            self._put(ledger, change, current)
        for key, role in self.outcome.granted:
            ledger.grants[key] = role.called
        for key in self.outcome.revoked:
            ledger.grants.pop(key, None)

    def _forget_gone(self, ledger: Ledger) -> None:
        """Objects that the platform no longer has."""
        for kind, entries in ledger.entries.items():
            found = self.snapshot.objects.get(kind)
            for identity in [identity for identity in entries if found is not None and identity not in found]:
                ledger.forget(kind, identity)

    def _keep(self, ledger: Ledger, item: Item, current: Object) -> None:
        """An object that was not written: it may have become ours, and its survey was seen."""
        entry = ledger.entry(item.kind.key, current["id"])
        if entry is None and current["id"] in self.plan.owned.get(item.kind.key, set()):
            entry = Entry(item.name, item.scope, created(current))
            ledger.put(item.kind.key, current["id"], entry)
        if entry is not None:
            _note_survey(ledger, entry, item, current)

    def _put(self, ledger: Ledger, change: Change, current: Object) -> None:
        item, kind = change.item, change.kind.key
        if item is None:
            return
        entry = ledger.entry(kind, current["id"])
        if entry is None:
            owned = change.action == "create" or current["id"] in self.plan.owned.get(kind, set())
            entry = Entry(item.name, item.scope, created(current), owned)
            ledger.put(kind, current["id"], entry)
        known = {path: value for path, value in change.compared.secrets.items() if value != ENCRYPTED}
        entry.secrets = {path: ledger.digest(path, value) for path, value in known.items()}
        _note_survey(ledger, entry, item, current)


def _note_survey(ledger: Ledger, entry: Entry, item: Item, current: Object) -> None:
    if item.survey is not None:
        entry.survey, entry.modified = ledger.digest("survey", item.survey), str(current.get("modified"))


def _pending(change: Change) -> Pending:
    return change.kind.key, change.scope, change.name


def secrets_of(item: Item) -> Iterator[Any]:
    """Values that no message may repeat."""
    if item.kind.secrets:
        yield from (value for value in (item.values.get(item.kind.secrets) or {}).values() if isinstance(value, str) and value != ENCRYPTED)
    for question in (item.survey or {}).get("spec") or []:
        if question.get("type") == "password" and question.get("default"):
            yield question["default"]
