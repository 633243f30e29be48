# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Single values of arguments: which types they may have, how they convert, how a message shows them. It knows no argument spec.

What converts, as Ansible users expect: a string to int, float and bool ("3", "0.5", "yes"), a whole float to int, 0 and 1 to bool. What
does not, because the author meant something else: a number, list or object for a string (4.10 would become 4.1), a string for
a list or an object, true and false for a number.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

SHOWN = 60  # characters of a value, or of an unknown name, that a message repeats
TRUE, FALSE = {"true", "t", "yes", "y", "on", "1"}, {"false", "f", "no", "n", "off", "0"}


def _to_str(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _to_int(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,30}\s*", value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError
    return value


def _to_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError
    try:
        result = float(value)
    except OverflowError:
        raise ValueError from None
    if not math.isfinite(result):
        raise ValueError
    return result


def _to_bool(value: Any) -> bool:
    text = value.strip().lower() if isinstance(value, str) else str(value).lower() if isinstance(value, int) else ""
    if text not in TRUE | FALSE:
        raise ValueError
    return text in TRUE


def _to_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError
    return value


def _to_dict(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError
    return value


def _to_json(value: Any) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value)
    try:
        json.loads(_to_str(value))
    except RecursionError:
        raise ValueError from None
    return str(value).strip()


def _to_raw(value: Any) -> Any:
    return value


# For each type: the conversion, which raises ValueError, and what a value of the type is.
CONVERTERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "str": (_to_str, "a string"),
    "int": (_to_int, "an integer"),
    "float": (_to_float, "a number"),
    "bool": (_to_bool, "true or false"),
    "list": (_to_list, "a list"),
    "dict": (_to_dict, "an object"),
    "raw": (_to_raw, "anything"),
    # Never expanded: ~ and $NAME would read the home and the environment of the process that runs the template.
    "path": (_to_str, "a string"),
    "json": (_to_json, "JSON, or a string that holds JSON"),
    "jsonarg": (_to_json, "JSON, or a string that holds JSON"),
}


def clip(text: str) -> str:
    """A name from outside as a message may contain it: short, and without control characters."""
    shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
    return shown if shown.isprintable() and shown else json.dumps(shown)


def show(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value if len(value) <= SHOWN else f"{value[:SHOWN]}...", ensure_ascii=not value.isprintable())
    if isinstance(value, bool | int | float) or value is None:
        text = json.dumps(value)
        return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
    return kind_of(value)


def kind_of(value: Any) -> str:
    kinds = ((str, "a string"), (bool, "true or false"), (int | float, "a number"), (list, "a list"), (dict, "an object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "null" if value is None else f"a {type(value).__name__}")


def is_json(value: Any) -> bool:
    """Whether JSON can hold the value; YAML also has dates and keys that are no text."""
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False
