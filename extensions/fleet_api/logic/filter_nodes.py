"""The parts of a filter with their types, and how they are evaluated. The parser is in `filter`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ....plugins.module_utils.common.types import Object

STRING, INT, BOOL, TIMESTAMP, MAP, LIST, NULL = "string", "int", "bool", "timestamp", "map", "list", "null"
ORDERED = (STRING, INT, TIMESTAMP)
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class FilterError(Exception):
    """The filter is not valid; the message has the position."""


class _Failed:
    """The result of what cannot be evaluated for an object."""


FAILED = _Failed()

Evaluate = Callable[[Object], Any]
Predicate = Callable[[Object], bool]


@dataclass(frozen=True)
class Field:
    """A field of objects that filters can name. `get` returns a value of the type; None only where it is nullable."""

    type: str
    get: Evaluate
    nullable: bool = False


@dataclass(frozen=True)
class Node:
    """A part of the expression with its type. A list has the type of its elements in `of`; `nullable` is a field without a value."""

    type: str
    evaluate: Evaluate
    position: int
    of: str = ""
    nullable: bool = False


def constant(kind: str, value: Any, position: int) -> Node:
    return Node(kind, lambda _item: value, position)


def expect(node: Node, kind: str) -> Node:
    if node.type != kind:
        raise FilterError(f"{kind} is expected at position {node.position}, not {node.type}")
    return node


def equal(left: Node, right: Node, symbol: str, position: int) -> Node:
    comparable = left.type == right.type or (NULL in (left.type, right.type) and (left.nullable or right.nullable))
    if not comparable or MAP in (left.type, right.type) or LIST in (left.type, right.type):
        raise FilterError(f"{left.type} and {right.type} cannot be compared at position {position}")
    negated = symbol == "!="
    first, second = left.evaluate, right.evaluate

    def evaluate(item: Object) -> Any:
        one, other = first(item), second(item)
        return FAILED if one is FAILED or other is FAILED else (one == other) is not negated

    return Node(BOOL, evaluate, left.position)


def compared(left: Node, right: Node, symbol: str, position: int) -> Node:
    if left.type != right.type or left.type not in ORDERED:
        raise FilterError(f"{left.type} and {right.type} cannot be compared at position {position}")
    compare, first, second = COMPARISONS[symbol], left.evaluate, right.evaluate

    def evaluate(item: Object) -> Any:
        one, other = first(item), second(item)
        return FAILED if one in (None, FAILED) or other in (None, FAILED) else compare(one, other)

    return Node(BOOL, evaluate, left.position)


def contained(left: Node, right: Node) -> Node:
    """An element of a list, or a key of a map."""
    wanted = right.of if right.type == LIST else STRING if right.type == MAP else None
    if wanted is None or (wanted and left.type != wanted):
        raise FilterError(f"{left.type} cannot be in {right.type} at position {left.position}")
    first, second = left.evaluate, right.evaluate

    def evaluate(item: Object) -> Any:
        value, among = first(item), second(item)
        return FAILED if FAILED in (value, among) else value in among

    return Node(BOOL, evaluate, left.position)


def indexed(node: Node, key: Node) -> Node:
    values, name = expect(node, MAP).evaluate, key.evaluate({})
    return Node(STRING, lambda item: values(item).get(name, FAILED), node.position)
