"""Filters, order and pages of a list, as AWX's and EDA's APIs have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from ....plugins.module_utils.common.types import Object
from .exchange import Refused, Request
from .kinds import Kind
from .store import Store

DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 25, 200
NOT_FILTERS = ("page", "page_size", "order_by", "search", "format", "type")
LOOKUPS: dict[str, Callable[[str, str], bool]] = {
    "exact": lambda value, wanted: value == wanted,
    "iexact": lambda value, wanted: value.lower() == wanted.lower(),
    "contains": lambda value, wanted: wanted in value,
    "icontains": lambda value, wanted: wanted.lower() in value.lower(),
    "startswith": lambda value, wanted: value.startswith(wanted),
    "istartswith": lambda value, wanted: value.lower().startswith(wanted.lower()),
    "endswith": lambda value, wanted: value.endswith(wanted),
    "in": lambda value, wanted: value in wanted.split(","),
    "gt": lambda value, wanted: float(value) > float(wanted),
    "lt": lambda value, wanted: float(value) < float(wanted),
    "isnull": lambda value, wanted: (value == "null") == (wanted.lower() in ("1", "true")),
}
Found = tuple[Kind, Object]


def filtered(store: Store, kinds: list[Kind], found: Iterable[Found], query: Mapping[str, list[str]]) -> list[Found]:
    """What every filter keeps; of those with the prefix or__ one is enough. 400 for a field that no kind of the list has."""
    kept = list(found)
    alternatives: list[Callable[[Found], bool]] = []
    for parameter, values in query.items():
        if parameter in NOT_FILTERS:
            continue
        name = parameter.removeprefix("or__").removeprefix("not__")
        path, lookup = _path_and_lookup(name)
        if not any(_exists(store, kind, path) for kind in kinds):
            raise Refused(400, {"detail": f"{kinds[0].model} has no field named '{path[0]}'"})
        check = _check(store, path, lookup, values, "not__" in parameter)
        if parameter.startswith("or__"):
            alternatives.append(check)
        else:
            kept = [item for item in kept if check(item)]
    if alternatives:
        kept = [item for item in kept if any(check(item) for check in alternatives)]
    if types := query.get("type"):
        kept = [item for item in kept if item[0].type in types[0].split(",")]
    for text in query.get("search", []):
        kept = [item for item in kept if text.lower() in f"{item[1].get('name')} {item[1].get('description')}".lower()]
    return _ordered(kept, query)


def _path_and_lookup(name: str) -> tuple[list[str], str]:
    *path, last = name.split("__")
    return (path, last) if last in LOOKUPS and path else ([*path, last], "exact")


def _exists(store: Store, kind: Kind, path: list[str]) -> bool:
    name, *rest = path
    if name in ("id", "created", "modified"):
        return not rest
    field = kind.field(name)
    if name in kind.links:
        target = kind.links[name]
    elif name in kind.children:
        target = kind.children[name][0]
    else:
        target = field.to if field else ""
    if not rest:
        return bool(field or target)
    return bool(target) and any(_exists(store, other, rest) for other in store.in_collection(target))


def _check(store: Store, path: list[str], lookup: str, values: list[str], negated: bool) -> Callable[[Found], bool]:
    def check(item: Found) -> bool:
        found = _values(store, *item, path)
        return all(any(LOOKUPS[lookup](_text(value), wanted) for value in found) for wanted in values) != negated

    return check


def _values(store: Store, kind: Kind, row: Object, path: list[str]) -> list[Any]:
    """The values that a path through fields and lists leads to."""
    name, *rest = path
    if name in ("id", "created", "modified"):
        return [row[name]]
    if name in kind.links:
        return [value for linked in store.linked(kind, row, name) for value in _values(store, *linked, rest or ["id"])]
    if name in kind.children:
        return [value for child in store.children(kind, row, name) for value in _values(store, *child, rest or ["id"])]
    field = kind.field(name)
    if not field:
        return []
    if not rest:
        return [row[name]]
    found = store.find(field.to, row[name])
    return _values(store, *found, rest) if found else [None]


def _text(value: Any) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ordered(found: list[Found], query: Mapping[str, list[str]]) -> list[Found]:
    for name in reversed(",".join(query.get("order_by", [])).split(",")):
        if name:
            field = name.lstrip("-")
            found.sort(key=lambda item: (item[1].get(field) is None, _sortable(item[1].get(field))), reverse=name.startswith("-"))
    return found


def _sortable(value: Any) -> Any:
    return value if isinstance(value, int | float) else str(value)


def page(request: Request, items: list[Any], render: Callable[[Any], Any], eda: bool = False) -> Object:
    """One page; an address beyond the last one is not found. EDA's pages also have their number and size."""
    size = min(_number(request, "page_size", DEFAULT_PAGE_SIZE), MAX_PAGE_SIZE) or DEFAULT_PAGE_SIZE
    number = _number(request, "page", 1)
    last = max(1, -(-len(items) // size))
    if not 1 <= number <= last:
        raise Refused(404, {"detail": "Invalid page."})
    answer = {
        "count": len(items),
        "next": _address(request, number + 1) if number < last else None,
        "previous": _address(request, number - 1) if number > 1 else None,
    }
    if eda:
        answer |= {"page_size": size, "page": number}
    return answer | {"results": [render(item) for item in items[(number - 1) * size : number * size]]}


def _number(request: Request, name: str, default: int) -> int:
    text = request.query.get(name, [str(default)])[0]
    if not text.isdigit():
        raise Refused(404, {"detail": "Invalid page."})
    return int(text)


def _address(request: Request, number: int) -> str:
    query = {**request.query, "page": [str(number)]}
    return f"{request.path}?{urlencode(sorted(query.items()), doseq=True)}"
