# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks that a store honours conditional writes, case by case and in races. It uses objects of its own.

A new leader runs the full check. A task that writes under an epoch runs the quick check: four requests instead of a
hundred. The leader has checked the store; the quick check only has to find a proxy in front of this client that drops
conditions. No result is cached: one in the store would say nothing about the network path, and one on the machine
nothing about a proxy that was added since.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .errors import ConditionalWritesUnsupported, NoSuchKey, PreconditionFailed
from .store import ObjectStore, StoredObject

PREFIX = "coordination-check/"
# The only object that stays: each quick check must be refused when it tries to write it.
PERMANENT_KEY = f"{PREFIX}permanent"
# Has the form of an ETag, and no object ever had it.
NEVER_STORED = StoredObject(b"", '"' + "0" * 32 + '"')
RACERS = 8
ROUNDS = 3

WRITTEN, REFUSED, NOT_FOUND = "written", "refused", "not found"
CREATE_EXISTING, REPLACE_CHANGED = "create an existing object", "replace a changed object"


@dataclass(frozen=True)
class CaseResult:
    """One case: the expected and the actual outcome."""

    case: str
    expected: str
    actual: str

    @property
    def passed(self) -> bool:
        return self.expected == self.actual


def full_check(store: ObjectStore) -> list[CaseResult]:
    """Try every condition. A store that cannot answer (no such bucket, access denied) is an error, not a failed case."""
    key = f"{PREFIX}{secrets.token_hex(8)}"
    try:
        return [*_single_writer(store, key), *_races(store, f"{key}-race")]
    finally:
        for used in (key, *(f"{key}-race-{number}" for number in range(ROUNDS))):
            store.delete(used)


def quick_check(store: ObjectStore) -> list[CaseResult]:
    """Check that both conditions reach a store that passed the full check."""
    created = _outcome(lambda: store.create(PERMANENT_KEY, _body()))
    if created == WRITTEN:
        # Either the object did not exist yet, or the condition was dropped.
        created = _outcome(lambda: store.create(PERMANENT_KEY, _body()))
    replaced = _outcome(lambda: store.replace(PERMANENT_KEY, _body(), NEVER_STORED))
    return [CaseResult(CREATE_EXISTING, REFUSED, created), CaseResult(REPLACE_CHANGED, REFUSED, replaced)]


def require_passed(results: list[CaseResult], store_name: str) -> None:
    """Raise ConditionalWritesUnsupported with all failed cases, if there are any."""
    failed = [f"{result.case}: {result.actual} instead of {result.expected}" for result in results if not result.passed]
    if failed:
        raise ConditionalWritesUnsupported(
            f"{store_name} does not honour conditional writes, so two leaders could act at once. Nothing was written. {'; '.join(failed)}. "
            "Use a store that supports If-None-Match and If-Match, and check for a proxy that drops these headers."
        )


def format_table(results: list[CaseResult]) -> str:
    """The results as a table of text."""
    header = ("case", "expected", "actual", "")
    rows = [header] + [(each.case, each.expected, each.actual, "ok" if each.passed else "FAILED") for each in results]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def _single_writer(store: ObjectStore, key: str) -> list[CaseResult]:
    first = _body()
    results = [
        CaseResult("replace a missing object", NOT_FOUND, _outcome(lambda: store.replace(key, _body(), NEVER_STORED))),
        CaseResult("create a missing object", WRITTEN, _outcome(lambda: store.create(key, first))),
    ]
    known = store.get(key)
    content = "same content" if known and known.body == first else "other content"
    results.append(CaseResult("read the written object", "same content", content))
    results.append(CaseResult(CREATE_EXISTING, REFUSED, _outcome(lambda: store.create(key, _body()))))
    if known:
        again = store.get(key, known)
        results.append(CaseResult("conditional read of an unchanged object", "not sent", "not sent" if again is known else "sent"))
        results.append(CaseResult("replace an unchanged object", WRITTEN, _outcome(lambda: store.replace(key, _body(), known))))
        results.append(CaseResult(REPLACE_CHANGED, REFUSED, _outcome(lambda: store.replace(key, _body(), known))))
    listed = "listed" if key in store.keys(PREFIX) else "not listed"
    return [*results, CaseResult("list the written object", "listed", listed)]


def _races(store: ObjectStore, prefix: str) -> list[CaseResult]:
    """Concurrent writers over several connections: each round must have exactly one winner."""
    created, replaced = [], []
    for number in range(ROUNDS):
        key = f"{prefix}-{number}"
        created.append(_winners(lambda key=key: store.create(key, _body())))  # type: ignore[misc]
        known = store.get(key)
        if known:
            replaced.append(_winners(lambda key=key, known=known: store.replace(key, _body(), known)))  # type: ignore[misc]
    return [_race_result(f"{RACERS} concurrent creates", created), _race_result(f"{RACERS} concurrent replaces", replaced)]


def _race_result(case: str, winners: list[int]) -> CaseResult:
    expected = f"{ROUNDS} rounds, 1 winner each"
    actual = expected if winners == [1] * ROUNDS else f"winners: {', '.join(map(str, winners)) or 'none'}"
    return CaseResult(case, expected, actual)


def _winners(write: Callable[[], StoredObject]) -> int:
    with ThreadPoolExecutor(RACERS) as racers:
        return [racer.result() for racer in [racers.submit(_outcome, write) for _number in range(RACERS)]].count(WRITTEN)


def _outcome(write: Callable[[], StoredObject]) -> str:
    try:
        write()
    except PreconditionFailed:
        return REFUSED
    except NoSuchKey:
        return NOT_FOUND
    except ConditionalWritesUnsupported as error:
        return f"not supported ({error})"
    return WRITTEN


def _body() -> bytes:
    return secrets.token_hex(16).encode()
