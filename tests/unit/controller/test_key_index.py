"""The orders that a change concerns, by a text."""

from __future__ import annotations

from ansible_collections.openfleet.clusters.plugins.module_utils.controller.key_index import KeyIndex
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key

FIRST, SECOND = Key("a", "first"), Key("b", "second")


def test_a_text_concerns_the_orders_that_were_put_with_it_last() -> None:
    index = KeyIndex()
    index.put(FIRST, ["x", "y"])
    index.put(SECOND, ["y"])
    assert (index.get("x"), index.get("y"), index.get("z")) == ({FIRST}, {FIRST, SECOND}, set())
    index.put(FIRST, ["z"])
    assert (index.get("x"), index.get("y"), index.get("z")) == (set(), {SECOND}, {FIRST})


def test_nothing_is_kept_of_a_forgotten_order() -> None:
    index = KeyIndex()
    for key in (FIRST, SECOND):
        index.put(key, ["x"])
        index.forget(key)
        index.forget(key)
    assert vars(index) == vars(KeyIndex())
