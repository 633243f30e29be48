"""Answers that reconciles share for a moment."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.read_cache import ReadCache


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_answer_counts_from_when_it_was_asked_for_and_each_question_has_its_own() -> None:
    clock, asked = Clock(), []

    def read(name: str) -> str:
        clock.now += 0.6  # the answer is that old when it arrives
        asked.append(name)
        return f"{name} {len(asked)}"

    cache = ReadCache(1.0, clock)
    assert cache.get("a", lambda: read("a")) == "a 1"
    assert cache.get("a", lambda: read("a")) == "a 1"
    assert cache.get("b", lambda: read("b")) == "b 2"
    assert cache.get("a", lambda: read("a")) == "a 3", "a second after it was asked"


def test_many_at_once_ask_once_and_an_error_is_the_answer_of_all() -> None:
    began, release, calls = threading.Event(), threading.Event(), []
    cache = ReadCache(3600.0)

    def read() -> str:
        calls.append(1)
        began.set()
        release.wait(60)
        raise ValueError("does not answer")

    def ask() -> str:
        with pytest.raises(ValueError, match="does not answer"):
            cache.get("a", read)
        return "refused"

    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(ask) for _each in range(4)]
        began.wait(60)
        release.set()
        assert [each.result() for each in asked] == ["refused"] * 4
    assert len(calls) == 1
