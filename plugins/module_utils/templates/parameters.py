# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The parameters of a template: the JSON text of an order parsed, declarations described as data and as JSON Schema."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from ..common.argument_checker import Option, Options, Problems
from ..common.argument_values import clip, kind_of

MAX_BYTES = 256 * 1024
REFERENCE = "secretRef"


def parse(text: str | None, problems: Problems) -> dict[str, Any]:
    """The JSON object in an order's `templateParameters`. It may be absent or blank, which is an empty object."""
    if text is not None and not isinstance(text, str):
        problems.append(f"templateParameters must be a string that holds a JSON object, not {kind_of(text)}")
        return {}
    if text is None or not text.strip():
        return {}
    size = len(text.encode(errors="replace"))
    if size > MAX_BYTES:
        problems.append(f"templateParameters are {size:,} bytes long, and {MAX_BYTES:,} is the most")
        return {}
    twice: list[str] = []
    try:
        value = json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, twice))
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except json.JSONDecodeError as error:
        problems.append(f"templateParameters are not JSON: {error.msg} at line {error.lineno}, column {error.colno}")
        return {}
    except RecursionError:
        problems.append("templateParameters are nested too deeply")
        return {}
    except UnicodeEncodeError:
        problems.append("templateParameters hold half of a Unicode surrogate pair, which is not a character")
        return {}
    except ValueError:
        problems.append("templateParameters hold a number that JSON does not have, or one too large")
        return {}
    problems.extend(f"parameter {clip(name)} is given twice" for name in twice)
    if not isinstance(value, dict):
        problems.append(f"templateParameters must be a JSON object, not {kind_of(value)}")
        return {}
    return value


def _object(pairs: list[tuple[str, Any]], twice: list[str]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        twice.extend(name for name, times in Counter(name for name, _value in pairs).items() if times > 1)
    return result


SCHEMA_TYPES: dict[str, Any] = {
    "str": "string",
    "path": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "json": ["string", "object", "array"],
    "jsonarg": ["string", "object", "array"],
}


# A Secret in the order's namespace, instead of the value of a secret parameter.
SECRET_REFERENCE = {
    "type": "object",
    "properties": {
        REFERENCE: {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The name of a Secret in the namespace of the order."},
                "key": {"type": "string", "description": "The key of the value in the Secret."},
            },
            "required": ["name", "key"],
            "additionalProperties": False,
        }
    },
    "required": [REFERENCE],
    "additionalProperties": False,
}


def schema_of(options: Options, site_defaults: Collection[str] = ()) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of an object with these parameters, in their own types: what else converts is not promised.

    An order can leave out those in `site_defaults`, for which the site has a value.
    """
    defaulted = {name for name, option in options.members.items() if option.default is not None or name in site_defaults}
    required = [name for name, option in options.members.items() if option.required and name not in defaulted]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _schema_of_option(option) for name, option in options.members.items()},
        "additionalProperties": False,
    }
    depends: dict[str, set[str]] = {name: set(names) for name, names in options.required_by.items()}
    for group in options.required_together:
        if defaulted.intersection(group):
            required += [name for name in group if name not in defaulted and name not in required]
        else:
            for name in group:
                depends.setdefault(name, set()).update(set(group) - {name})
    if required:
        schema["required"] = required
    if depends:
        schema["dependentRequired"] = {name: sorted(names - defaulted) for name, names in depends.items()}
    rules = [
        {"not": {"required": [first, second]}}
        for group in options.mutually_exclusive
        for index, first in enumerate(group)
        for second in group[index + 1 :]
    ]
    rules += [_one_of(group) for group in options.required_one_of if not defaulted.intersection(group)]
    rules += [_schema_of_condition(condition, options, defaulted) for condition in options.required_if]
    if rules:
        schema["allOf"] = rules
    return schema


def _one_of(names: Iterable[str]) -> dict[str, Any]:
    return {"anyOf": [{"required": [name]} for name in names]}


def _schema_of_condition(condition: tuple[str, Any, tuple[str, ...], bool], options: Options, defaulted: Collection[str]) -> dict[str, Any]:
    name, wanted, names, any_of = condition
    case: dict[str, Any] = {"properties": {name: {"const": wanted}}}
    if options.members[name].default != wanted:
        case["required"] = [name]
    needed = [needed for needed in names if needed not in defaulted]
    if any_of:
        return {"if": case, "then": _one_of(names) if len(needed) == len(names) else {}}
    return {"if": case, "then": {"required": needed}}


def _schema_of_option(option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    if option.type in SCHEMA_TYPES:
        schema["type"] = SCHEMA_TYPES[option.type]
    if option.type == "dict" and option.options is not None:
        schema |= schema_of(option.options)
    if option.type == "list":
        items = _schema_of_option(option.element)
        items.pop("writeOnly", None)
        schema["items"] = items | ({"enum": list(option.choices)} if option.choices else {})
    elif option.choices:
        schema["enum"] = list(option.choices)
    if option.no_log:
        schema = {"anyOf": [copy.deepcopy(SECRET_REFERENCE), schema], "writeOnly": True}
    if option.description:
        schema["description"] = option.description
    if not option.no_log and option.default is not None:
        schema["default"] = copy.deepcopy(option.default)
    return schema


def describe(options: Options, site_defaults: Collection[str] = ()) -> list[dict[str, Any]]:
    """The parameters as a list for people and for forms, each with the same keys. An order can leave out those in `site_defaults`."""
    return [
        {
            "name": option.name,
            "type": option.type,
            "elements": option.elements,
            "required": option.required and option.name not in site_defaults,
            "default": None if option.no_log else copy.deepcopy(option.default),
            "choices": list(option.choices) or None,
            "description": option.description,
            "no_log": option.no_log,
            "options": describe(option.options) if option.options is not None else None,
        }
        for option in options.members.values()
    ]
