# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Semantic versions and ranges of them, in the notation of Helm: `>=1.2 <2`, `^1.2`, `~1.2.3`, `1.x`, `1.2 - 1.4`, `a || b`.

A version may start with v, as many charts' do. A prerelease matches a range only if the range has a prerelease itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, total_ordering

NUMBER = r"(?:0|[1-9][0-9]{0,9})"
IDENTIFIERS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
VERSION = re.compile(rf"v?({NUMBER})\.({NUMBER})\.({NUMBER})(?:-({IDENTIFIERS}))?(?:\+{IDENTIFIERS})?")
PARTIAL = re.compile(rf"v?({NUMBER}|[xX*])(?:\.({NUMBER}|[xX*]))?(?:\.({NUMBER}|[xX*]))?(?:-({IDENTIFIERS}))?(?:\+{IDENTIFIERS})?")
HYPHEN = re.compile(r"(\S+)\s+-\s+(\S+)")
TERM = re.compile(r"(=|!=|>=|<=|=>|=<|>|<|~>|~|\^)?\s*([^\s,=!<>~^]+)\s*,?\s*")
WILD = ("x", "X", "*")
MAX_LENGTH = 256  # of a version or of a range

Numbers = tuple[int, int, int]
LOWEST = "0"  # as a prerelease it is below all others of its version


@total_ordering
@dataclass(frozen=True)
class Version:
    """A version. What follows a plus sign does not count for its order, as SemVer has it; `text` is the version as written."""

    numbers: Numbers
    prerelease: str = ""
    text: str = ""

    @classmethod
    def parse(cls, text: str) -> Version | None:
        """The version, or None where the text is none."""
        found = VERSION.fullmatch(text) if len(text) <= MAX_LENGTH else None
        return cls((int(found[1]), int(found[2]), int(found[3])), found[4] or "", text) if found else None

    @cached_property
    def _key(self) -> tuple[Numbers, bool, tuple[tuple[int, int, str], ...]]:
        identifiers = self.prerelease.split(".") if self.prerelease else []
        order = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in identifiers)
        return self.numbers, not identifiers, order

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __lt__(self, other: Version) -> bool:
        return self._key < other._key

    def __str__(self) -> str:
        return self.text


Test = Callable[[Version], bool]


class BadRange(ValueError):
    """Not a range of versions. The text is a part of a sentence."""


@dataclass(frozen=True)
class Alternative:
    """Tests that all have to pass. `prereleases`: one of them names a prerelease."""

    tests: tuple[Test, ...]
    prereleases: bool

    def matches(self, version: Version) -> bool:
        return (self.prereleases or not version.prerelease) and all(test(version) for test in self.tests)


@dataclass(frozen=True)
class Range:
    """A range of versions. An empty text means any version that is no prerelease."""

    text: str
    alternatives: tuple[Alternative, ...]

    @classmethod
    def parse(cls, text: str) -> Range:
        if len(text) > MAX_LENGTH:
            raise BadRange(f"has more than {MAX_LENGTH} characters")
        return cls(text, tuple(_alternative(part.strip()) for part in text.split("||")))

    def matches(self, version: Version) -> bool:
        return any(alternative.matches(version) for alternative in self.alternatives)


def _alternative(text: str) -> Alternative:
    if hyphen := HYPHEN.fullmatch(text):
        low, high = _partial(hyphen[1]), _partial(hyphen[2])
        return Alternative((_comparison(">=", *low), _comparison("<=", *high)), bool(low[1] or high[1]))
    tests: list[Test] = []
    prereleases = False
    position = 0
    while position < len(text):
        term = TERM.match(text, position)
        if term is None:
            raise BadRange("is not a range of versions such as '>=1.2 <2', '^1.2', '~1.2' or '1.x'")
        numbers, prerelease = _partial(term[2])
        tests.append(_comparison(term[1] or "=", numbers, prerelease))
        prereleases = prereleases or bool(prerelease)
        position = term.end()
    return Alternative(tuple(tests), prereleases)


def _partial(text: str) -> tuple[list[int], str]:
    """The numbers that are given, before a wildcard or the end, and the prerelease."""
    found = PARTIAL.fullmatch(text)
    if found is None or (found[4] and (found[3] is None or found[3] in WILD)):
        raise BadRange("is not a range of versions such as '>=1.2 <2', '^1.2', '~1.2' or '1.x'")
    numbers: list[int] = []
    for part in (found[1], found[2], found[3]):
        if part is None or part in WILD:
            break
        numbers.append(int(part))
    return numbers, found[4] or ""


def _comparison(operator: str, given: list[int], prerelease: str) -> Test:
    major, minor, patch = (*given, 0, 0, 0)[:3]
    low, above = Version((major, minor, patch), prerelease), _next(given, len(given))
    complete = len(given) == 3
    if operator == "^":
        first = next((index for index, number in enumerate(given) if number), len(given) - 1)
        return _between(low, _next(given, first + 1))
    if operator in ("~", "~>"):
        return _between(low, _next(given, min(len(given), 2)))
    if operator == "=":
        return (lambda version: version == low) if complete else _between(low, above)
    if operator == "!=":
        inside = (lambda version: version == low) if complete else _between(low, above)
        return lambda version: not inside(version)
    if operator in (">=", "=>"):
        return lambda version: version >= low
    if operator == "<":
        return lambda version: version < low
    if operator == ">":
        return (lambda version: version > low) if complete else (lambda version: above is not None and version >= above)
    return (lambda version: version <= low) if complete else (lambda version: above is None or version < above)


def _between(low: Version, above: Version | None) -> Test:
    return lambda version: version >= low and (above is None or version < above)


def _next(given: list[int], length: int) -> Version | None:
    """The first version above all that start with these numbers, its prereleases included; None above any version."""
    if not length:
        return None
    raised = [*given[: length - 1], given[length - 1] + 1, 0, 0, 0]
    return Version((raised[0], raised[1], raised[2]), LOWEST)
