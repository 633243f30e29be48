# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Values of a release, checked against the schema of the chart. No schema is ever fetched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...common.argument_values import clip
from .chart_archive import ChartFiles
from .values import merged

try:
    import jsonschema
    import referencing

    MISSING = ""
except ImportError as error:
    jsonschema = referencing = None  # type: ignore[assignment]
    MISSING = str(error.name)

SHOWN = 5
MAX_DEPTH = 50


def values_problems(chart: ChartFiles, values: Mapping[str, Any]) -> list[str]:
    """What is wrong with the values, each a part of a sentence with the path, and without a value."""
    if _depth(values) > MAX_DEPTH:
        return [f"values are nested deeper than {MAX_DEPTH}"]
    if chart.schema is None:
        return []
    if jsonschema is None:
        return [f"values cannot be checked, because the Python package {MISSING} is not installed where the playbook runs"]
    effective = _without_null(merged(chart.values, values))
    try:
        kind = jsonschema.validators.validator_for(chart.schema, default=jsonschema.Draft7Validator)
        kind.check_schema(chart.schema)
        # Without a registry of its own a validator fetches references to other documents.
        validator = kind(chart.schema, registry=referencing.Registry())
        found = sorted(validator.iter_errors(effective), key=lambda each: list(map(str, each.absolute_path)))
    except jsonschema.SchemaError:
        return ["values cannot be checked: the schema of the chart is not a JSON Schema"]
    except (referencing.exceptions.Unresolvable, RecursionError, ValueError):
        return ["values cannot be checked: the schema of the chart refers to another document, which is not fetched, or to itself"]
    problems = [f"values{_path(each)} {_rule(each)}" for each in found[:SHOWN]]
    return problems + ([f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])


def _path(error: Any) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{clip(str(part))}" for part in error.absolute_path)


def _rule(error: Any) -> str:
    """The rule that is broken. The validator's own message has the value, which may be a secret."""
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return f"must have {', '.join(map(clip, missing))}"
    if error.validator == "additionalProperties":
        return "has a key that the chart does not know"
    if error.validator in ("type", "enum", "const", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"):
        return f"does not fit the schema of the chart: {error.validator} {clip(str(error.validator_value))}"
    return f"does not fit the schema of the chart: {error.validator}"


def _without_null(values: Mapping[str, Any]) -> dict[str, Any]:
    """A null removes a default, as in Helm."""
    return {key: _without_null(value) if isinstance(value, Mapping) else value for key, value in values.items() if value is not None}


def _depth(value: Any) -> int:
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        deepest = max(deepest, depth)
        if depth <= MAX_DEPTH:
            inner = item.values() if isinstance(item, Mapping) else item if isinstance(item, list) else ()
            waiting += [(each, depth + 1) for each in inner]
    return deepest
