"""Filters of the fleet API: a table of cases, the limits of the grammar, and random filters compared with an implementation of CEL."""

from __future__ import annotations

import contextlib
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import celpy
import pytest
from ansible_collections.openfleet.clusters.extensions.fleet_api.logic.filter import DEEPEST, LARGEST_LIST, LONGEST, compile_filter
from ansible_collections.openfleet.clusters.extensions.fleet_api.logic.filter_nodes import (
    BOOL,
    INT,
    MAP,
    STRING,
    TIMESTAMP,
    Field,
    FilterError,
)
from celpy import celtypes

ROUNDS = 50
MOMENT = datetime(2026, 5, 1, 12, tzinfo=UTC)
OBJECT: dict[str, Any] = {
    "name": "demo-1",
    "state": "Ready",
    "nodes": 3,
    "priority": -5,
    "deleting": False,
    "created": MOMENT,
    "expiresAt": None,
    "labels": {"team": "a", "openfleet.io/tier": "gold"},
}
OTHER = OBJECT | {"name": "é", "state": "", "nodes": 0, "deleting": True, "expiresAt": MOMENT + timedelta(days=1), "labels": {}}
FIELDS = {
    "name": Field(STRING, lambda item: item["name"]),
    "state": Field(STRING, lambda item: item["state"]),
    "nodes": Field(INT, lambda item: item["nodes"]),
    "priority": Field(INT, lambda item: item["priority"]),
    "deleting": Field(BOOL, lambda item: item["deleting"]),
    "created": Field(TIMESTAMP, lambda item: item["created"]),
    "expiresAt": Field(TIMESTAMP, lambda item: item["expiresAt"], nullable=True),
    "labels": Field(MAP, lambda item: item["labels"]),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('name == "demo-1"', True),
        ("name == 'demo-1'", True),
        ('name != "demo-1"', False),
        ('name < "demo-2" && name > "demo-0"', True),
        ("nodes >= 3", True),
        ("nodes in [1, 2, 3]", True),
        ("nodes in []", False),
        ("priority == -5", True),
        ('state in ["Ready", "Failed"]', True),
        ("deleting", False),
        ("!deleting", True),
        ("!!deleting", False),
        ("!(deleting || nodes == 3)", False),
        ('name.startsWith("demo")', True),
        ('name.endsWith("-2")', False),
        ('name.contains("mo-")', True),
        ('labels["team"] == "a"', True),
        ('labels["openfleet.io/tier"].startsWith("g")', True),
        ('"team" in labels', True),
        ('"none" in labels', False),
        ('created < timestamp("2026-05-01T12:00:01Z")', True),
        ('created == timestamp("2026-05-01T14:00:00+02:00")', True),
        ("expiresAt == null", True),
        ("created != null", None),
        ('true || labels["none"] == "a"', True),
        ('labels["none"] == "a" || true', True),
        ('labels["none"] == "a"', False),
        ('!(labels["none"] == "a")', False),
        ('expiresAt < timestamp("2026-05-01T12:00:01Z")', False),
        ('!(expiresAt < timestamp("2026-05-01T12:00:01Z"))', False),
        ("nodes == 3 || nodes == 4 && deleting", True),
        ('state == "Re\\"ady"', False),
    ],
)
def test_filter_matches(text: str, expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(FilterError):
            compile_filter(text, FIELDS)
    else:
        assert compile_filter(text, FIELDS)(OBJECT) is expected
        assert oracle(text, OBJECT) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nam == 1", "unknown field nam at position 1; the fields are created, deleting"),
        ('nodes == "3"', "int and string cannot be compared at position 7"),
        ("name", "bool is expected at position 1, not string"),
        ("name == ", "unexpected the end at position 9"),
        ("deleting deleting", "unexpected deleting at position 10"),
        ("deleting && (nodes", "unexpected the end at position 19, ) is expected"),
        ('name.matches("a+")', "unexpected matches at position 6, startsWith or endsWith or contains is expected"),
        ("name == $", "unexpected character at position 8"),
        ('name == "abc', "unexpected character at position 8"),
        ('name == "\\x41"', "unknown escape \\x in the string at position 9"),
        ("nodes == 99999999999999999999", "the number at position 10 is too large"),
        ('created < timestamp("yesterday")', "the timestamp at position 11 is not like 2027-01-01T00:00:00Z"),
        ("labels == labels", "map and map cannot be compared at position 8"),
        ('nodes in ["a"]', "int cannot be in list at position 1"),
        ('nodes in [1, "a"]', "the elements of the list at position 10 have different types"),
        ("nodes in 3", "int cannot be in int at position 1"),
        ("labels[0] == 1", "string is expected at position 8, not int"),
        ("nodes == [name]", "unexpected name at position 11"),
        ("deleting < true", "bool and bool cannot be compared at position 10"),
        ("(" * (DEEPEST + 1) + "deleting", f"the filter is nested more than {DEEPEST} deep"),
        (f"nodes in [{','.join('1' * (LARGEST_LIST + 1))}]", f"the list at position 10 has more than {LARGEST_LIST} elements"),
        ("deleting" + " " * LONGEST, f"the filter has {LONGEST + 8} characters, {LONGEST} are allowed"),
    ],
)
def test_invalid_filter_is_refused_with_its_position(text: str, message: str) -> None:
    with pytest.raises(FilterError) as refused:
        compile_filter(text, FIELDS)
    assert str(refused.value).startswith(message)


def test_many_negations_need_no_stack() -> None:
    assert compile_filter("!" * (LONGEST - 9) + "deleting", FIELDS)(OBJECT) is True


def test_random_filters_match_what_cel_matches(soak: int) -> None:
    chosen = random.Random()  # noqa: S311 - no secret
    seed = chosen.randrange(2**32)
    chosen.seed(seed)
    for _round in range(ROUNDS * soak):
        text = expression(chosen, 3)
        for item in (OBJECT, OTHER):
            assert compile_filter(text, FIELDS)(item) is oracle(text, item), (seed, text)


def test_random_texts_are_refused_with_a_filter_error_or_work(soak: int) -> None:
    chosen = random.Random()  # noqa: S311 - no secret
    pieces = [
        *FIELDS,
        "(",
        ")",
        "[",
        "]",
        "!",
        "&&",
        "||",
        "==",
        "in",
        ",",
        ".",
        "startsWith",
        '"a"',
        "'",
        "\\",
        "-1",
        "true",
        "null",
        "é",
        "\0",
    ]
    for _round in range(40 * ROUNDS * soak):
        text = " ".join(chosen.choices(pieces, k=chosen.randrange(12)))
        with contextlib.suppress(FilterError):
            assert compile_filter(text, FIELDS)(OBJECT) in (True, False)


# The oracle


def oracle(text: str, item: dict[str, Any]) -> bool:
    """What cel-python says; an error is no match."""
    environment = celpy.Environment()
    program = environment.program(environment.compile(text))
    values = {
        name: celtypes.TimestampType(value) if isinstance(value, datetime) else celpy.json_to_cel(value) for name, value in item.items()
    }
    try:
        return bool(program.evaluate(values))
    except celpy.CELEvalError:
        return False


# Random filters of the grammar


def expression(chosen: random.Random, depth: int) -> str:
    if depth == 0 or chosen.random() < 0.2:
        return relation(chosen)
    kind = chosen.choice(("&&", "||", "!", "()"))
    if kind == "!":
        return f"!({expression(chosen, depth - 1)})"
    if kind == "()":
        return f"({expression(chosen, depth - 1)})"
    return f"{operand(chosen, depth)} {kind} {operand(chosen, depth)}"


def operand(chosen: random.Random, depth: int) -> str:
    inner = expression(chosen, depth - 1)
    return f"({inner})" if chosen.random() < 0.5 else inner


def relation(chosen: random.Random) -> str:
    compared, text = chosen.choice(("==", "!=", "<", "<=", ">", ">=")), chosen.choice(("'a'", '"demo-1"', "''", '"Ready"', '"é"'))
    number, moment = chosen.choice(("0", "3", "-5", "100")), chosen.choice(("2026-05-01T12:00:00Z", "2026-05-02T00:00:00+02:00"))
    return chosen.choice(
        (
            f"{chosen.choice(('name', 'state'))} {compared} {text}",
            f"{chosen.choice(('nodes', 'priority'))} {compared} {number}",
            f"nodes in [{number}, 7]",
            f"name in [{text}, 'x']",
            f'labels["{chosen.choice(("team", "none"))}"] {compared} {text}',
            f"{text} in labels",
            f"name.{chosen.choice(('startsWith', 'endsWith', 'contains'))}({text})",
            f'created {compared} timestamp("{moment}")',
            f"expiresAt {chosen.choice(('==', '!='))} null",
            "deleting",
            f"deleting {chosen.choice(('==', '!='))} true",
        )
    )
