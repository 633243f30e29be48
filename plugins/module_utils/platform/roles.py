# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Roles of users and teams: which ones to grant and to revoke, from a document, a snapshot and a ledger. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable

from ..common.types import Object
from .document import Grant, Named
from .kinds import KINDS, TEAMS
from .ledger import Ledger
from .plan import RoleChange
from .resolve import Resolver, Target, Unresolved
from .snapshot import Snapshot


class RolePlanner:
    """Plans the grants of a document; `problems` gets unknown names and roles."""

    def __init__(self, resolver: Resolver, snapshot: Snapshot, ledger: Ledger, problems: list[str]) -> None:
        self._resolver = resolver
        self._snapshot, self._ledger = snapshot, ledger
        self._problems = problems
        self._granted: set[str] = set()  # what the document has and the platform too

    def changes(self, grants: Iterable[Grant]) -> list[RoleChange]:
        """What to grant and to revoke, with the roles that earlier runs granted and the document no longer has."""
        changes = [change for grant in grants if (change := self._change(grant))]
        wanted = {f"{change.id}/{change.principal}" for change in changes if change.id and change.action == "grant"} | self._granted
        return changes + [_revocation(key, called) for key, called in self._ledger.grants.items() if key not in wanted]

    def _change(self, grant: Grant) -> RoleChange | None:
        principal, target = self._principal(grant), self._resolve(grant, grant.target_kind, grant.target)
        if not principal or not target:
            return None
        if target.id is None:
            return None if grant.state == "absent" else RoleChange("grant", grant.called, grant.role, principal, target)
        current = self._snapshot.objects[target.kind][target.id]
        identity = role_id(current, grant.role)
        if identity is None:
            known = ", ".join(sorted(name.removesuffix("_role") for name in _object_roles(current))) or "none"
            self._problems.append(
                f"{grant.where}: {KINDS[target.kind].title} {target.name} has no role {grant.role}; its roles are {known}."
            )
            return None
        is_granted = identity in self._snapshot.roles.get(principal, set())
        if grant.state == "absent":
            return RoleChange("revoke", grant.called, grant.role, principal, target, identity) if is_granted else None
        if is_granted:
            self._granted.add(f"{identity}/{principal}")
            return None
        return RoleChange("grant", grant.called, grant.role, principal, target, identity)

    def _principal(self, grant: Grant) -> str:
        target = self._resolve(grant, grant.principal_kind, grant.principal)
        return f"{'teams' if grant.principal_kind == TEAMS else 'users'}/{target.id}" if target else ""

    def _resolve(self, grant: Grant, kind: str, named: Named) -> Target | None:
        try:
            return self._resolver.resolve((kind,), named, "")
        except Unresolved as error:
            self._problems.append(f"{grant.where} names {error}.")
            return None


def role_id(current: Object, role: str) -> int | None:
    found = _object_roles(current).get(f"{role.removesuffix('_role')}_role") or {}
    return found.get("id")


def _object_roles(current: Object) -> Object:
    return dict((current.get("summary_fields") or {}).get("object_roles") or {})


def _revocation(key: str, called: str) -> RoleChange:
    """The revocation of a role that is only in the ledger: `called` is Grant.called."""
    identity, _slash, principal = key.partition("/")
    role = called.partition(": ")[2].partition(" on ")[0]
    return RoleChange("revoke", called, role, principal, id=int(identity))
