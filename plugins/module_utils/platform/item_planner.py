# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The change of one item of a document: whether its object is created, updated or deleted, and what differs. Pure functions."""

from __future__ import annotations

from ..common.types import Object
from .compare import compare, compare_streams
from .document import Item, Named
from .item_checks import foreign_name, foreign_project, missing_values, unknown_inputs, unknown_secrets
from .kinds import ACTIVATIONS, EVENT_STREAMS, TEMPLATES
from .ledger import Ledger
from .nodes import compare_nodes
from .ownership import is_adopted
from .plan import Change, FieldChange, Plan
from .references import References
from .snapshot import Snapshot, survey_is_known
from .surveys import compare_survey


class ItemPlanner:
    """Plans the items of a document. The plan records which objects match them; `problems` gets what cannot be done."""

    def __init__(self, plan: Plan, references: References, snapshot: Snapshot, ledger: Ledger, problems: list[str]) -> None:
        self._plan = plan
        self._references = references
        self._snapshot, self._ledger = snapshot, ledger
        self._problems = problems

    def change(self, item: Item) -> Change | None:
        """What to do with the object of the item; None where nothing differs."""
        found = self._snapshot.find(item)
        if len(found) > 1:
            self._problems.append(f"{item.where}: the platform has several {item.kind.title}s of that name: add {item.kind.scope}.")
            return None
        current = found[0] if found else None
        if item.state == "absent":
            if current is None:
                return None
            return Change("delete", item.kind, item.name, item.scope, id=current["id"], current=current)
        return self._create(item) if current is None else self._update(item, current)

    def _create(self, item: Item) -> Change:
        self._problems += missing_values(item)
        change = self._compare(item, None)
        self._problems += unknown_secrets(item, change.compared)
        return change

    def _update(self, item: Item, current: Object) -> Change | None:
        self._problems += foreign_name(item, current, self._snapshot)
        self._plan.matched[id(item)] = (item, current)
        change = self._compare(item, current)
        if is_adopted(change, self._ledger):
            self._plan.owned.setdefault(item.kind.key, set()).add(current["id"])
        if not change.fields:
            self._plan.unchanged += 1
            return None
        return change

    def _compare(self, item: Item, current: Object | None) -> Change:
        targets = self._references.targets(item)
        if item.kind.key == TEMPLATES:
            self._problems += foreign_project(item, targets)
        if item.kind.secrets == "inputs":
            self._problems += unknown_inputs(item, targets, self._snapshot)
        compared = compare(item, current, targets, self._snapshot, self._ledger)
        identity = current["id"] if current else None
        change = Change("update" if current else "create", item.kind, item.name, item.scope, item, identity, current or {}, compared)
        change.fields = [FieldChange(*each) for each in compared.fields]
        self._compare_survey(item, change)
        self._compare_nodes(item, change)
        if item.kind.key == ACTIVATIONS:
            self._compare_activation(item, change)
        return change

    def _compare_survey(self, item: Item, change: Change) -> None:
        if item.survey is None or (change.id and survey_is_known(item, change.current, self._ledger)):
            return
        survey = compare_survey(item, change.id, self._snapshot.surveys.get(change.id or 0, {}), self._ledger)
        change.compared.secrets |= survey.secrets
        if survey.fields:
            change.survey = item.survey
            change.fields += [FieldChange(*each) for each in survey.fields]

    def _compare_nodes(self, item: Item, change: Change) -> None:
        if item.nodes is None:
            return
        nodes = compare_nodes(item, self._snapshot.nodes.get(change.id or 0, []), self._references.resolve, self._snapshot)
        for target in nodes.targets:
            self._references.need(item, target)
        if nodes.fields:
            change.nodes = nodes
            change.fields += [FieldChange(*each) for each in nodes.fields]

    def _compare_activation(self, item: Item, change: Change) -> None:
        for stream in item.event_streams or ():
            if target := self._references.resolve(item, "event_streams", (EVENT_STREAMS,), Named(str(stream["event_stream"]))):
                self._references.need(item, target)
        if item.event_streams is not None and (streams := compare_streams(item, change.current or None)):
            change.streams = True
            change.fields.append(FieldChange(*streams))
        if "enabled" not in item.values and not change.current.get("is_enabled"):
            # An activation of a document runs, unless the document says otherwise; a killed run may have left it disabled.
            change.compared.body["is_enabled"] = True
            change.fields.append(FieldChange("enabled", False if change.current else None, True))
