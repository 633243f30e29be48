"""Which tenants a caller sees. A tenant is a namespace in which the caller may list clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..problems import Problem, not_found
from ..stores.access import ALL_NAMESPACES, Access, Action
from ..stores.caches import FleetCaches
from ..stores.identity import Caller


@dataclass(frozen=True)
class Visible:
    """The namespaces in which a role is bound to the caller, and whether the caller has the permission everywhere."""

    names: tuple[str, ...]
    everywhere: bool = False

    def __contains__(self, namespace: str) -> bool:
        return self.everywhere or namespace in self.names


class Tenants:
    """Decides by role bindings where to ask, and by reviews what is allowed.

    The answer depends on the caller alone, not on the object that a request names: a request for another tenant's object takes the same
    steps as one for an object that does not exist.
    """

    def __init__(self, caches: FleetCaches, access: Access) -> None:
        self._caches = caches
        self._access = access

    async def visible(self, caller: Caller, action: Action) -> Visible:
        bound = sorted(self._caches.bound_namespaces(caller.subjects()))
        if await self._access.allows(caller, action, ALL_NAMESPACES):
            return Visible(tuple(bound), everywhere=True)
        return Visible(await self._access.allowed(caller, action, bound))

    async def chosen(self, caller: Caller, action: Action, wanted: Sequence[str]) -> tuple[str, ...]:
        """The tenants of a list: the wanted ones, or all that are visible. One that is not visible is not found."""
        visible = await self.visible(caller, action)
        if not wanted:
            return visible.names
        if not all(name in visible for name in wanted):
            raise not_found()
        return tuple(sorted({*wanted}))

    async def one(self, caller: Caller, action: Action, wanted: str | None) -> str:
        """The tenant of a request: the one that it names, or the only one of the caller."""
        if wanted:
            return (await self.chosen(caller, action, [wanted]))[0]
        visible = await self.visible(caller, action)
        if len(visible.names) != 1:
            raise Problem("tenant-required", f"The caller has {len(visible.names) or 'no'} tenants; name one in `tenant`.")
        return visible.names[0]

    async def require(self, caller: Caller, action: Action) -> None:
        """For operators: the permission in all namespaces. The others get NotFound."""
        if not await self._access.allows(caller, action, ALL_NAMESPACES):
            raise not_found()
