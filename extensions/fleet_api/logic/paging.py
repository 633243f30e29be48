"""Pages of a list: filter, order, a cursor to go on from, and the fields to show. Pure.

A cursor is a position in the order, nothing else: objects of others are never in the list that it is applied to. It is bound to the
query and to the visible tenants, so that a page never continues another list.
"""

from __future__ import annotations

import base64
import hashlib
import heapq
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import total_ordering
from typing import Any

from ....plugins.module_utils.common.timestamps import parse_time
from ....plugins.module_utils.common.types import Object
from ..problems import FieldError, Problem, invalid
from .filter import compile_filter
from .filter_nodes import BOOL, INT, MAP, STRING, TIMESTAMP, Field, FilterError, Predicate

DEFAULT_LIMIT, MOST = 100, 500
LONGEST_CURSOR, MOST_FIELDS, DEEPEST_FIELD, MOST_ORDERS = 2000, 50, 6, 4


@dataclass(frozen=True)
class Query:
    """The parameters of a list."""

    limit: int = DEFAULT_LIMIT
    cursor: str = ""
    order_by: str = ""
    filter: str = ""
    fields: str = ""


@dataclass(frozen=True)
class Listed:
    """What can be listed: fields for filters and orders, the default order, and how an object is shown."""

    name: str
    fields: Mapping[str, Field]
    order_by: str
    shown: frozenset[str]
    view: Callable[[Object], dict[str, Any]]


@dataclass(frozen=True)
class Page:
    items: list[dict[str, Any]]
    next_cursor: str | None
    total: int  # of all pages


@total_ordering
class _Descending:
    """A value that is ordered the other way."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.value == other.value

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class _Order:
    """Fields with their direction. Of equal objects the id decides."""

    parts: tuple[tuple[Field, bool], ...]

    def values(self, item: Object) -> list[Any]:
        return [*(field.get(item) for field, _descending in self.parts), item["metadata"]["uid"]]

    def key(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """What is compared; nothing comes before something."""
        return (*(_comparable(*part, value) for part, value in zip(self.parts, values[:-1], strict=True)), values[-1])

    def key_of(self, item: Object) -> tuple[Any, ...]:
        """The key of an object. It is called for each object of a list, mostly for one field that always has a value."""
        if len(self.parts) == 1:
            field, descending = self.parts[0]
            value = field.get(item)
            plain = not (field.nullable or descending)
            return (value if plain else _comparable(field, descending, value), item["metadata"]["uid"])
        return self.key(self.values(item))


def _comparable(field: Field, descending: bool, value: Any) -> Any:
    entry = value if not field.nullable else (False,) if value is None else (True, value)
    return _Descending(entry) if descending else entry


def predicate(text: str, fields: Mapping[str, Field]) -> Predicate | None:
    """The filter as a function; None without one."""
    if not text.strip():
        return None
    try:
        return compile_filter(text, fields)
    except FilterError as error:
        raise Problem("invalid-filter", f"{error}.", [FieldError("filter", str(error))]) from None


def page(items: Iterable[Object], query: Query, listed: Listed, scope: Iterable[str]) -> Page:
    """The page of the query. `scope` is what the list was made from: another one makes cursors invalid."""
    order = _parse_order(query.order_by or listed.order_by, listed.fields)
    digest = _digest(listed.name, query, scope)
    matches, select = predicate(query.filter, listed.fields), _parse_fields(query.fields, listed.shown)
    after = order.key(_decode(query.cursor, digest, order)) if query.cursor else None
    matching = [*(items if matches is None else filter(matches, items))]
    wanted = matching if after is None else (item for item in matching if order.key_of(item) > after)
    found = heapq.nsmallest(query.limit + 1, wanted, key=order.key_of)
    kept = found[: query.limit]
    more = len(found) > query.limit
    cursor = _encode(order.values(kept[-1]), digest) if more else None
    return Page([select(listed.view(item)) for item in kept], cursor, len(matching))


def _parse_order(text: str, fields: Mapping[str, Field]) -> _Order:
    parts = []
    for entry in text.split(","):
        words = entry.split()
        if not 1 <= len(words) <= 2 or words[1:] not in ([], ["asc"], ["desc"]):
            raise invalid("order_by", "is a list of fields, each with asc or desc after it, such as `state desc, name`")
        field = fields.get(words[0])
        if field is None or field.type == MAP:
            orderable = sorted(name for name, each in fields.items() if each.type != MAP)
            raise invalid("order_by", f"the fields are {', '.join(orderable)}")
        parts.append((field, words[1:] == ["desc"]))
    if len(parts) > MOST_ORDERS:
        raise invalid("order_by", f"has more than {MOST_ORDERS} fields")
    return _Order(tuple(parts))


def _parse_fields(text: str, shown: frozenset[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A function that keeps the named fields, and always the id."""
    paths = [path.strip().split(".") for path in text.split(",")] if text.strip() else []
    if not paths:
        return lambda view: view
    if len(paths) > MOST_FIELDS or any(len(path) > DEEPEST_FIELD for path in paths):
        raise invalid("fields", f"has more than {MOST_FIELDS} fields, or one is nested more than {DEEPEST_FIELD} deep")
    if unknown := [path[0] for path in paths if path[0] not in shown]:
        raise invalid("fields", f"{unknown[0][:40]} is none of {', '.join(sorted(shown))}")

    def select(view: dict[str, Any]) -> dict[str, Any]:
        kept = {"id": view["id"]}
        for path in paths:
            _copy(view, kept, path)
        return kept

    return select


def _copy(source: Any, into: dict[str, Any], path: Sequence[str]) -> None:
    if not isinstance(source, dict) or path[0] not in source:
        return
    if len(path) == 1:
        into[path[0]] = source[path[0]]
    elif isinstance(source[path[0]], dict):
        inner = into.setdefault(path[0], {})
        if inner is not source[path[0]]:  # the whole of it is there already
            _copy(source[path[0]], inner, path[1:])


def _digest(name: str, query: Query, scope: Iterable[str]) -> str:
    content = [name, query.order_by, query.filter, sorted(scope)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _encode(values: Sequence[Any], digest: str) -> str:
    plain = [value.isoformat() if isinstance(value, datetime) else value for value in values]
    return base64.urlsafe_b64encode(json.dumps([digest, plain]).encode()).decode().rstrip("=")


def _decode(cursor: str, digest: str, order: _Order) -> list[Any]:
    """The position of a cursor. Whatever a client sends is of the right types after this, or refused."""
    refused = Problem("invalid-cursor", errors=[FieldError("cursor", "is not of this list")])
    try:
        if len(cursor) > LONGEST_CURSOR:
            raise refused
        found, values = json.loads(base64.b64decode(cursor.encode() + b"=" * (-len(cursor) % 4), b"-_", validate=True))
        if found != digest or not isinstance(values, list) or len(values) != len(order.parts) + 1 or not isinstance(values[-1], str):
            raise refused
        return [*(_typed(value, field, refused) for value, (field, _down) in zip(values[:-1], order.parts, strict=True)), values[-1]]
    except (ValueError, TypeError, RecursionError):
        raise refused from None


def _typed(value: Any, field: Field, refused: Problem) -> Any:
    if value is None:
        return None
    kinds: dict[str, type] = {STRING: str, INT: int, BOOL: bool, TIMESTAMP: str}
    if kinds[field.type] is not type(value):
        raise refused
    if field.type != TIMESTAMP:
        return value
    moment = parse_time(str(value))
    if moment is None:
        raise refused
    return moment
