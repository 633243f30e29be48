"""Who sends a request, as the home cluster knows users."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

AUTHENTICATED = "system:authenticated"
SERVICE_ACCOUNT = "system:serviceaccount:"
LONGEST_NAME, MOST_GROUPS = 512, 256


@dataclass(frozen=True)
class Caller:
    """A user with its groups and extra attributes. `expires` is when the token ends, in seconds since 1970; 0 if that is not known."""

    user: str
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    expires: float = 0

    @property
    def is_service_account(self) -> bool:
        return self.user.startswith(SERVICE_ACCOUNT) and self.user.count(":") == 3

    @cached_property
    def key(self) -> str:
        """The same for requests with the same permissions."""
        content = [self.user, sorted(self.groups), sorted((name, [*values]) for name, values in self.extra.items())]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def subjects(self) -> Iterator[tuple[str, str]]:
        """The user as subjects of role bindings: kind and name, for an account with its namespace."""
        yield ("User", self.user)
        if self.is_service_account:
            yield ("ServiceAccount", self.user.removeprefix(SERVICE_ACCOUNT))
        yield from (("Group", group) for group in {*self.groups, AUTHENTICATED})


def caller_of(user: Mapping[str, Any]) -> Caller | None:
    """The caller of a UserInfo; None for one that no request can be sent as, because of characters that no header may have."""
    name, groups = str(user.get("username") or ""), tuple(map(str, user.get("groups") or ()))
    extra = {str(key): tuple(map(str, values)) for key, values in (user.get("extra") or {}).items()}
    texts = [name, *groups, *(value for values in extra.values() for value in values)]
    usable = all(text.isascii() and text.isprintable() and text.strip() == text and len(text) <= LONGEST_NAME for text in texts)
    return Caller(name, groups, extra) if name and usable and len(groups) <= MOST_GROUPS else None
