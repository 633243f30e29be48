# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Parameters as a template's role declares them: read the declarations, check values against them, describe them as JSON Schema.

It knows nothing of templates or files. Declarations are those of Ansible's argument specs, and a value that passes here passes
Ansible's own check of the role too. Written anew because Ansible's validator puts values into its messages, secret ones too,
expands variables of our environment in values of the type `path`, and turns an object given for a string into Python's notation.

What converts, as Ansible users expect: a string to int, float and bool ("3", "0.5", "yes"), a whole float to int, 0 and 1 to bool. What
does not, because the order's author meant something else: a number, list or object for a string (4.10 would become 4.1), a string for
a list or an object, true and false for a number. null means not given. What is not given and has no default is left out.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .text import did_you_mean

SHOWN = 60  # characters of a value, or of a name we don't know, that a message repeats
SUGGESTIONS = 20  # unknown names that get one: comparing names is slow, and an order can hold ten thousand of them

Problems = list[str]


@dataclass(frozen=True)
class Option:
    """One parameter."""

    name: str
    type: str = "str"
    description: str = ""
    required: bool = False
    default: Any = None
    choices: tuple[Any, ...] = ()
    elements: str | None = None
    no_log: bool = False
    apply_defaults: bool = False
    aliases: tuple[str, ...] = ()
    options: Options | None = None

    @property
    def secret(self) -> bool:
        """Whether a value may hold something that must not be shown."""
        return self.no_log or (self.options is not None and any(option.secret for option in self.options.members.values()))


@dataclass(frozen=True)
class Options:
    """A set of parameters, and the rules between them."""

    members: Mapping[str, Option] = field(default_factory=dict)
    mutually_exclusive: tuple[tuple[str, ...], ...] = ()
    required_together: tuple[tuple[str, ...], ...] = ()
    required_one_of: tuple[tuple[str, ...], ...] = ()
    required_if: tuple[tuple[str, Any, tuple[str, ...], bool], ...] = ()  # name, value, names, whether one of the names is enough
    required_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


GROUP_RULES = ("mutually_exclusive", "required_together", "required_one_of")
RULES = (*GROUP_RULES, "required_if", "required_by")


# Declarations


def read_options(declared: Mapping[str, Any], problems: Problems, where: str = "") -> Options:
    """The parameters below `options` of a declaration, and the rules beside it. What is wrong with it goes to `problems`."""
    entries = declared.get("options") or {}
    if not isinstance(entries, Mapping):
        problems.append(f"{where or 'template_parameters'}: options must be a mapping of names")
        return Options()
    members = {str(name): _read_option(str(name), entry, problems, where) for name, entry in entries.items()}
    try:
        groups = {rule: tuple(_names(group) for group in _rule(declared, rule)) for rule in GROUP_RULES}
        required_if = tuple(_condition(condition) for condition in _rule(declared, "required_if"))
        required_by = {str(name): _names(needed) for name, needed in (declared.get("required_by") or {}).items()}
    except (TypeError, ValueError, AttributeError):
        problems.append(f"{where or 'template_parameters'}: {', '.join(RULES)} must have the form they have in Ansible's argument specs")
        return Options(members)
    named = {name for group in groups.values() for names in group for name in names} | set(required_by)
    named |= {name for first, _value, names, _any in required_if for name in (first, *names)}
    named |= {name for names in required_by.values() for name in names}
    if unknown := sorted(named - set(members)):
        problems.append(f"{where or 'template_parameters'}: a rule names {', '.join(unknown)}, which is not declared")
    return Options(members, required_if=required_if, required_by=required_by, **groups)


def _rule(declared: Mapping[str, Any], rule: str) -> Sequence[Any]:
    value = declared.get(rule) or []
    if not isinstance(value, list):
        raise TypeError(rule)
    return groups(value)


def groups(rule: list[Any]) -> list[Any]:
    """Ansible takes a single group without its brackets, too."""
    return [rule] if rule and isinstance(rule[0], str) else rule


def _names(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(str(name) for name in value)


def _condition(value: Any) -> tuple[str, Any, tuple[str, ...], bool]:
    name, wanted, names, *rest = value
    return str(name), wanted, _names(names), bool(rest and rest[0])


def _read_option(name: str, entry: Any, problems: Problems, where: str) -> Option:
    path = f"{where}.{name}" if where else name
    if not isinstance(entry, Mapping):
        problems.append(f"parameter {path}: must be a mapping")
        return Option(name)
    kind, elements, choices = entry.get("type", "str"), entry.get("elements"), entry.get("choices") or []
    for wanted in (kind, elements):
        if wanted is not None and wanted not in CONVERTERS:
            problems.append(f"parameter {path}: type {wanted} is not one that a parameter can have ({', '.join(CONVERTERS)})")
            return Option(name)
    choices = _read_choices(choices, (elements or "raw") if kind == "list" else kind, path, problems)
    description = entry.get("description") or ""
    option = Option(
        name=name,
        type=kind,
        description="\n".join(map(str, description)) if isinstance(description, list) else str(description).strip(),
        required=bool(entry.get("required")),
        choices=choices,
        elements=elements,
        no_log=bool(entry.get("no_log")),
        apply_defaults=bool(entry.get("apply_defaults")),
        aliases=tuple(entry.get("aliases") or ()),
        options=read_options(entry, problems, path) if entry.get("options") is not None else None,
    )
    return _with_default(option, entry.get("default"), path, problems)


def _read_choices(choices: Any, kind: str, path: str, problems: Problems) -> tuple[Any, ...]:
    if not isinstance(choices, list):
        problems.append(f"parameter {path}: choices must be a list")
        return ()
    mistakes: Problems = []
    values = tuple(_convert(Option(path, type=kind), choice, path, mistakes) for choice in choices)
    problems.extend(f"a choice of {mistake}" for mistake in mistakes)
    return () if mistakes else values


def _with_default(option: Option, default: Any, path: str, problems: Problems) -> Option:
    if default is None:
        return option
    if isinstance(default, str) and "{{" in default:
        problems.append(f"parameter {path}: its default is an expression, and orders are checked where there are no variables")
        return option
    mistakes: Problems = []
    value = _convert(option, default, path, mistakes)
    problems.extend(f"default of {mistake}" for mistake in mistakes)
    # A dataclass made anew rather than changed: options are shared between templates.
    return Option(**{**vars(option), "default": value}) if not mistakes else option


# Values


def check_values(
    options: Options, given: Mapping[str, Any], problems: Problems, where: str = "", known: Collection[str] = ()
) -> dict[str, Any]:
    """The given values with their types right and defaults filled in; every mistake goes to `problems`, and its value is left out.

    `known` are names that are not declared here and no mistake either: they are for another entry point.
    """
    names = {alias: option.name for option in options.members.values() for alias in option.aliases}
    values = {names.get(name, name): value for name, value in given.items() if value is not None}
    _find_unknown(options, [name for name in given if names.get(name, name) not in options.members and name not in known], problems, where)
    for group in options.mutually_exclusive:
        if len(both := [name for name in group if name in values]) > 1:
            problems.append(f"parameters {_paths(both, where)} exclude each other: give only one")
    result: dict[str, Any] = {}
    for name, option in options.members.items():
        path = f"{where}.{name}" if where else name
        mistakes: Problems = []
        if name in values:
            value = _convert(option, values[name], path, mistakes)
        elif option.default is not None:
            value = copy.deepcopy(option.default)
        elif option.apply_defaults and option.options is not None:
            value = check_values(option.options, {}, mistakes, path)
        else:
            value = None
            if option.required:
                mistakes.append(f"parameter {path} is required")
        problems.extend(mistakes)
        if value is not None and not mistakes:
            result[name] = value
    # A value that is wrong is still given: one message about it is enough.
    _check_rules(options, result, set(values) | set(result), problems, where)
    return result


def _find_unknown(options: Options, unknown: Sequence[str], problems: Problems, where: str) -> None:
    for position, name in enumerate(unknown):
        path = f"{where}.{clip(name)}" if where else clip(name)
        hint = did_you_mean(name, options.members) if position < SUGGESTIONS else ""
        if not hint and position == 0:
            hint = f" (it has {', '.join(options.members)})" if options.members else " (it has none)"
        problems.append(f"parameter {path} is not known to this template{hint}")


def _check_rules(options: Options, values: Mapping[str, Any], present: Collection[str], problems: Problems, where: str) -> None:
    for group in options.required_together:
        missing = [name for name in group if name not in present]
        if missing and len(missing) < len(group):
            problems.append(f"parameters {_paths(group, where)} go together: {_paths(missing, where)} is missing")
    problems.extend(
        f"one of the parameters {_paths(group, where)} is required"
        for group in options.required_one_of
        if not any(name in present for name in group)
    )
    for name, wanted, names, any_of in options.required_if:
        missing = [needed for needed in names if needed not in present]
        if name in values and values[name] == wanted and missing and (len(missing) == len(names) or not any_of):
            reason = "has the value it has" if options.members[name].secret else f"is {show(wanted)}"
            what = f"one of {_paths(names, where)}" if any_of else _paths(missing, where)
            problems.append(f"parameter {_paths([name], where)} {reason}, and then {what} is required")
    for name, names in options.required_by.items():
        missing = [needed for needed in names if needed not in present]
        if name in present and missing:
            problems.append(f"parameter {_paths([name], where)} needs {_paths(missing, where)}, too")


def _paths(names: Iterable[str], where: str) -> str:
    return ", ".join(f"{where}.{name}" if where else name for name in names)


def _convert(option: Option, value: Any, path: str, problems: Problems) -> Any:
    before = len(problems)
    converter, wanted = CONVERTERS[option.type]
    try:
        result = converter(value)
    except ValueError:
        problems.append(f"parameter {path} must be {wanted}, not {kind_of(value) if option.secret else show(value)}")
        return None
    if isinstance(result, list) and option.type == "list":
        result = [_convert(element_of(option), item, f"{path}[{index}]", problems) for index, item in enumerate(result)]
    elif isinstance(result, dict) and option.type == "dict" and option.options is not None:
        result = check_values(option.options, result, problems, path)
    if len(problems) == before and option.choices:
        wrong = [item for item in (result if option.type == "list" else [result]) if item not in option.choices]
        got = "" if option.secret else f", not {', '.join(map(show, wrong[:3]))}"
        if wrong:
            problems.append(f"parameter {path} must be {_any_of(option.choices)}{got}")
    return result


def element_of(option: Option) -> Option:
    """What each item of a list has to be. The list's choices are checked by the list."""
    return Option(option.name, type=option.elements or "raw", no_log=option.no_log, options=option.options)


def _any_of(choices: Sequence[Any]) -> str:
    return f"one of {', '.join(show(choice) for choice in choices)}" if len(choices) > 1 else show(choices[0])


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


TRUE, FALSE = {"true", "t", "yes", "y", "on", "1"}, {"false", "f", "no", "n", "off", "0"}


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


CONVERTERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "str": (_to_str, "a string"),
    "int": (_to_int, "an integer"),
    "float": (_to_float, "a number"),
    "bool": (_to_bool, "true or false"),
    "list": (_to_list, "a list"),
    "dict": (_to_dict, "an object"),
    "raw": (_to_raw, "anything"),
    # Never expanded: ~ and $NAME would read the home and the environment of whoever carries the order out.
    "path": (_to_str, "a string"),
    "json": (_to_json, "JSON, or a string that holds JSON"),
    "jsonarg": (_to_json, "JSON, or a string that holds JSON"),
}


# Words


def clip(text: str) -> str:
    """A name from outside as it may stand in a message: short, and without control characters."""
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
