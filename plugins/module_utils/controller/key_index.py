# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which orders a change of something else concerns: the keys of orders by a text, such as the name of a namespace. Plain data."""

from __future__ import annotations

from collections.abc import Iterable

from .work_queue import Key


class KeyIndex:
    """A text may concern several orders, and an order have several texts."""

    def __init__(self) -> None:
        self._keys: dict[str, set[Key]] = {}
        self._texts: dict[Key, tuple[str, ...]] = {}

    def put(self, key: Key, texts: Iterable[str]) -> None:
        """These texts concern the order, and no others."""
        wanted = tuple(texts)
        if self._texts.get(key) != wanted:
            self.forget(key)
            self._texts[key] = wanted
            for text in wanted:
                self._keys.setdefault(text, set()).add(key)

    def get(self, text: str) -> set[Key]:
        return self._keys.get(text, set())

    def forget(self, key: Key) -> None:
        for text in self._texts.pop(key, ()):
            self._keys[text].discard(key)
            if not self._keys[text]:
                del self._keys[text]
