# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The proof that a store honours conditions, one case after the other and in a race. Everything else here relies on it.

It is made on objects of its own. A store that ignores a condition writes where it should have refused, and that is seen.

Who begins to lead proves the store as a whole. A task that writes under an epoch proves only its way to the store, by four requests where
the whole takes a hundred: that the store itself is sound, in races too, its leader has proven, but a proxy that drops conditions may stand
before this one alone. Nothing is remembered from task to task. In the store it would say nothing of the way, and on the machine nothing
of the proxy that was put there since.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .errors import Missing, NoConditions, PreconditionFailed
from .store import ObjectStore, Stored

FOLDER = "coordination-check/"
# The one object that is not deleted: whoever proves a way is refused to write it.
STANDING = f"{FOLDER}standing"
# As an ETag looks, of an object that never was.
NEVER = Stored(b"", '"' + "0" * 32 + '"')
RACERS = 8
ROUNDS = 3

DONE, REFUSED, ABSENT = "done", "refused", "nothing there"


@dataclass(frozen=True)
class Finding:
    """One case: what has to happen, and what did."""

    case: str
    expected: str
    seen: str

    @property
    def passed(self) -> bool:
        return self.expected == self.seen


def prove(store: ObjectStore) -> list[Finding]:
    """Try every condition. What the store cannot be asked at all (no such bucket, denied) is an error, not a finding."""
    key = f"{FOLDER}{secrets.token_hex(8)}"
    try:
        return [*_one_by_one(store, key), *_races(store, f"{key}-race")]
    finally:
        for used in (key, *(f"{key}-race-{number}" for number in range(ROUNDS))):
            store.delete(used)


def prove_way(store: ObjectStore) -> list[Finding]:
    """Whether both conditions reach a store that is known to honour them."""
    created = _outcome(lambda: store.create(STANDING, _body()))
    if created == DONE:
        # It was not there yet, or the condition was lost.
        created = _outcome(lambda: store.create(STANDING, _body()))
    replaced = _outcome(lambda: store.replace(STANDING, _body(), NEVER))
    return [Finding("create what is there", REFUSED, created), Finding("replace what has changed", REFUSED, replaced)]


def require(findings: list[Finding], where: str) -> None:
    """NoConditions, with all that went wrong, unless the proof has passed."""
    failed = [f"{finding.case}: {finding.seen} instead of {finding.expected}" for finding in findings if not finding.passed]
    if failed:
        raise NoConditions(
            f"{where} does not honour conditional writes, so two leaders could act at once; nothing is done on it. {'; '.join(failed)}. "
            "Use a store that knows If-None-Match and If-Match, and look for a proxy in between that drops these headers."
        )


def table(findings: list[Finding]) -> str:
    """For a person to read."""
    rows = [("case", "expected", "seen", "")] + [(f.case, f.expected, f.seen, "ok" if f.passed else "FAILED") for f in findings]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def _one_by_one(store: ObjectStore, key: str) -> list[Finding]:
    first = _body()
    findings = [
        Finding("replace what is not there", ABSENT, _outcome(lambda: store.replace(key, _body(), NEVER))),
        Finding("create what is not there", DONE, _outcome(lambda: store.create(key, first))),
    ]
    known = store.get(key)
    found = "the same" if known and known.body == first else "something else"
    findings.append(Finding("read what was written", "the same", found))
    findings.append(Finding("create what is there", REFUSED, _outcome(lambda: store.create(key, _body()))))
    if known:
        same = store.get(key, known)
        findings.append(
            Finding("read what has not changed, if it has changed", "unchanged", "unchanged" if same is known else "sent again")
        )
        findings.append(Finding("replace what has not changed", DONE, _outcome(lambda: store.replace(key, _body(), known))))
        findings.append(Finding("replace what has changed", REFUSED, _outcome(lambda: store.replace(key, _body(), known))))
    listed = "listed" if key in store.keys(FOLDER) else "not listed"
    return [*findings, Finding("list what was written", "listed", listed)]


def _races(store: ObjectStore, key: str) -> list[Finding]:
    """Several writers at the same moment, over several connections: one must win, in each round."""
    created, replaced = [], []
    for number in range(ROUNDS):
        place = f"{key}-{number}"
        created.append(_winners(lambda place=place: store.create(place, _body())))  # type: ignore[misc]
        known = store.get(place)
        if known:
            replaced.append(_winners(lambda place=place, known=known: store.replace(place, _body(), known)))  # type: ignore[misc]
    one = f"{ROUNDS} rounds, 1 winner each"
    return [
        Finding(f"{RACERS} create at the same moment", one, _told(created, one)),
        Finding(f"{RACERS} replace at the same moment", one, _told(replaced, one)),
    ]


def _winners(write: Callable[[], Stored]) -> int:
    with ThreadPoolExecutor(RACERS) as racers:
        return [racer.result() for racer in [racers.submit(_outcome, write) for _number in range(RACERS)]].count(DONE)


def _told(winners: list[int], one: str) -> str:
    return one if winners == [1] * ROUNDS else f"winners: {', '.join(map(str, winners)) or 'none'}"


def _outcome(write: Callable[[], Stored]) -> str:
    try:
        write()
    except PreconditionFailed:
        return REFUSED
    except Missing:
        return ABSENT
    except NoConditions as error:
        return f"not known to the store ({error})"
    return DONE


def _body() -> bytes:
    return secrets.token_hex(16).encode()
