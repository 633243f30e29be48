# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan for a document, from what the platform has and what earlier runs recorded. Pure functions; nothing is sent."""

from __future__ import annotations

from .document import Document
from .errors import InvalidDocument
from .item_planner import ItemPlanner
from .ledger import Ledger
from .ordering import in_groups, in_reverse
from .ownership import leftovers
from .plan import Plan
from .references import References
from .resolve import Resolver
from .roles import RolePlanner
from .snapshot import Snapshot


def make_plan(document: Document, snapshot: Snapshot, ledger: Ledger) -> Plan:
    """The plan; InvalidDocument with everything that cannot be done."""
    plan = Plan()
    problems: list[str] = []
    resolver = Resolver(document, snapshot)
    references = References(resolver, snapshot, problems)
    items = ItemPlanner(plan, references, snapshot, ledger, problems)
    changes = [change for item in document.items if (change := items.change(item))]
    plan.roles = RolePlanner(resolver, snapshot, ledger, problems).changes(document.grants)
    if problems:
        raise InvalidDocument(list(dict.fromkeys(problems)))
    plan.groups = in_groups(document.wanted(), [change for change in changes if change.action != "delete"], references.needs)
    absent = [change for change in changes if change.action == "delete"]
    plan.deletions = in_reverse([*absent, *leftovers(document, snapshot, ledger, plan.matched.values())])
    return plan
