"""YAML from tenants costs little, whatever it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common import bounded_yaml

LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (LAUGHS, "has a YAML alias, which is refused"),
        ("a: &a {<<: {b: 1}}\nc: {<<: *a}", "has a YAML alias"),
        ("&a [*a]", "has a YAML alias"),
        ("x" * (256 * 1024 + 1), "is larger than 256 KiB"),
        ("[" * 100_000, "is nested deeper than 50"),
        ("- " * 1000 + "x", "is nested deeper than 50"),
        ("[" + "[]," * 60_000 + "]", "has more than 20000 values"),
        ("hunter2: [", "is not valid YAML"),
        ("a: 2026-99-99", "is not valid YAML"),
        (b"\xff\xfe\x00hunter2\x80", "is not valid YAML"),
        ("!!python/object/apply:os.system [hunter2]", "is not valid YAML"),
    ],
)
def test_yaml_that_costs_too_much_is_refused(text: str | bytes, why: str) -> None:
    with pytest.raises(bounded_yaml.BadYaml, match=why) as caught:
        bounded_yaml.load(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "events"),
    [
        (LAUGHS, 20),
        ("[" * 100_000, bounded_yaml.MAX_DEPTH + 5),
        ("- " * 1000 + "x", bounded_yaml.MAX_DEPTH + 5),
        ("[" + "[]," * 60_000 + "]", 2 * bounded_yaml.MAX_NODES + 5),
    ],
)
def test_reading_ends_at_the_first_alias_or_limit(text: str, events: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no value is made of what was read."""
    read: list[Any] = []
    parse = bounded_yaml.yaml.parse

    def recorded(*arguments: Any, **options: Any) -> Iterator[Any]:
        for event in parse(*arguments, **options):
            read.append(event)
            yield event

    monkeypatch.setattr(bounded_yaml.yaml, "parse", recorded)
    monkeypatch.setattr(bounded_yaml.yaml, "load", lambda *_arguments, **_options: pytest.fail("a value is made"))
    with pytest.raises(bounded_yaml.BadYaml):
        bounded_yaml.load(text)
    assert 0 < len(read) <= events


def test_anchors_without_aliases_and_usual_documents_are_read() -> None:
    assert bounded_yaml.load("a: &a [1, two, {three: null}]") == {"a": [1, "two", {"three": None}]}
