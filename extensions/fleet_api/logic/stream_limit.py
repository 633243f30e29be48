"""How many event streams a user has open on this replica."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..problems import Problem


class StreamLimit:
    """Counts the streams of each user."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str, int] = {}

    @contextlib.contextmanager
    def one_of(self, user: str) -> Iterator[None]:
        if self._open.get(user, 0) >= self._most:
            raise Problem("rate-limited", f"The user has {self._most} event streams open.", headers={"Retry-After": "30"})
        self._open[user] = self._open.get(user, 0) + 1
        try:
            yield
        finally:
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]

    @property
    def total(self) -> int:
        return sum(self._open.values())
