"""Semantic versions and their ranges, case by case, and the order of versions by properties."""

from __future__ import annotations

import contextlib

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.semantic_version import BadRange, Range, Version
from hypothesis import strategies as st

from ..properties import for_any


def version(text: str) -> Version:
    found = Version.parse(text)
    assert found, text
    return found


# The order of the example in the specification of SemVer, and some more.
ASCENDING = [
    *("0.0.1", "0.1.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1"),
    *("1.0.0", "1.9.0", "1.10.0", "v2.0.0"),
]


def test_versions_have_the_order_of_the_specification() -> None:
    assert [str(item) for item in sorted(map(version, reversed(ASCENDING)))] == ASCENDING


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "01.2.3", "1.2.3-", "1.2.3+", "1.2.x", "latest", "1.2.3.4", " 1.2.3", "1.2.3\n", "9" * 99]
)
def test_what_is_no_version(text: str) -> None:
    assert Version.parse(text) is None


def test_build_metadata_does_not_count() -> None:
    assert version("1.2.3+a") == version("v1.2.3+b") and hash(version("1.2.3+a")) == hash(version("1.2.3"))


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("", "0.0.1 9.9.9", "1.0.0-rc.1"),
        ("*", "0.0.1 9.9.9", "1.0.0-rc.1"),
        ("1.2.3", "1.2.3 v1.2.3 1.2.3+b", "1.2.4 1.2.3-rc.1"),
        ("=1.2", "1.2.0 1.2.9", "1.3.0 1.1.9"),
        ("1.x", "1.0.0 1.99.0", "2.0.0 0.9.0"),
        ("1.2.*", "1.2.0 1.2.7", "1.3.0"),
        ("!=1.2", "1.1.0 1.3.0", "1.2.0 1.2.5"),
        ("!=1.2.3", "1.2.4", "1.2.3"),
        (">=1.2", "1.2.0 3.0.0", "1.1.9"),
        (">1.2", "1.3.0", "1.2.0 1.2.9"),
        (">1.2.3", "1.2.4", "1.2.3"),
        ("<1.2", "1.1.9", "1.2.0"),
        ("<=1.2", "1.2.9", "1.3.0"),
        ("<=1.2.3", "1.2.3", "1.2.4"),
        (">=1.2 <2", "1.2.0 1.9.9", "2.0.0 1.1.0"),
        (">= 1.2, < 2", "1.2.0", "2.0.0"),
        (">=1.2,<2", "1.2.0", "2.0.0"),
        ("^1.2.3", "1.2.3 1.9.0", "2.0.0 1.2.2"),
        ("^0.2.3", "0.2.3 0.2.9", "0.3.0"),
        ("^0.0.3", "0.0.3", "0.0.4"),
        ("^0.0", "0.0.0 0.0.9", "0.1.0"),
        ("^0", "0.0.0 0.9.0", "1.0.0"),
        ("^1", "1.0.0 1.9.0", "2.0.0"),
        ("~1.2.3", "1.2.3 1.2.9", "1.3.0 1.2.2"),
        ("~1.2", "1.2.0 1.2.9", "1.3.0"),
        ("~1", "1.0.0 1.9.9", "2.0.0"),
        ("~>1.2", "1.2.9", "1.3.0"),
        ("1.2 - 1.4", "1.2.0 1.4.9", "1.1.9 1.5.0"),
        ("1.2.3 - 1.4.0", "1.2.3 1.4.0", "1.4.1"),
        ("<1 || >=2 <3", "0.9.0 2.5.0", "1.0.0 3.0.0"),
        ("1.1.0||1.3.0", "1.1.0 1.3.0", "1.2.0"),
        ("^1.2.0-beta.1", "1.2.0-beta.1 1.2.0-rc.1 1.3.0 1.4.0-a", "2.0.0-alpha 1.2.0-alpha 2.0.0"),
        (">=1.0.0-0 <2.0.0", "1.0.0-alpha 1.5.0-x 1.9.0", "2.0.0"),
        ("v1.2", "1.2.5", "1.3.0"),
    ],
)
def test_a_range(text: str, inside: str, outside: str) -> None:
    wanted = Range.parse(text)
    assert [item for item in inside.split() if not wanted.matches(version(item))] == []
    assert [item for item in outside.split() if wanted.matches(version(item))] == []


@pytest.mark.parametrize("text", ["latest", ">=", "1.2.3.4", ">=a", "1..2", "^", "1.2-rc", "x.y", ">>1", "1 || z", "a" * 300, "1.2;2"])
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(BadRange):
        Range.parse(text)


numbers = st.tuples(*[st.integers(0, 12)] * 3)
prereleases = st.lists(st.one_of(st.integers(0, 20).map(str), st.sampled_from(["alpha", "beta", "rc"])), max_size=3).map(".".join)
versions = st.builds(lambda parts, pre: version(".".join(map(str, parts)) + (f"-{pre}" if pre else "")), numbers, prereleases)


@for_any(versions, versions, versions)
def test_the_order_is_total(a: Version, b: Version, c: Version) -> None:
    assert (a < b) + (a == b) + (b < a) == 1
    assert not (a <= b <= c) or a <= c


@for_any(versions, versions)
def test_a_caret_matches_from_its_version_on_and_below_the_next_major(base: Version, other: Version) -> None:
    matches = Range.parse(f"^{base}").matches(other)
    assert not matches or other >= base
    if base.numbers[0] and not other.prerelease:
        assert matches == (other >= base and other.numbers[0] == base.numbers[0])


@for_any(st.text(max_size=30))
def test_any_text_is_a_range_or_refused(text: str) -> None:
    with contextlib.suppress(BadRange):
        Range.parse(text).matches(version("1.2.3"))
