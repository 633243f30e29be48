# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Argument specs as authors write them, read into options. What is wrong with a spec is a list of problems, never an exception."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .argument_checker import GROUP_RULES, RULES, ArgumentChecker, Option, Options, Problems
from .argument_values import CONVERTERS

CHECKER = ArgumentChecker("argument spec")


def read_options(declared: Mapping[str, Any], problems: Problems, path: str = "") -> Options:
    """The arguments below `options` of a spec, and the rules beside it."""
    entries = declared.get("options") or {}
    if not isinstance(entries, Mapping):
        problems.append(f"{path or 'argument spec'}: options must be a mapping of names")
        return Options()
    members = {str(name): _read_option(str(name), entry, problems, path) for name, entry in entries.items()}
    try:
        groups = {rule: tuple(_names(group) for group in _rule(declared, rule)) for rule in GROUP_RULES}
        required_if = tuple(_condition(condition) for condition in _rule(declared, "required_if"))
        required_by = {str(name): _names(needed) for name, needed in (declared.get("required_by") or {}).items()}
    except (TypeError, ValueError, AttributeError):
        problems.append(f"{path or 'argument spec'}: {', '.join(RULES)} must have the form they have in Ansible's argument specs")
        return Options(members)
    named = {name for group in groups.values() for names in group for name in names} | set(required_by)
    named |= {name for first, _value, names, _any in required_if for name in (first, *names)}
    named |= {name for names in required_by.values() for name in names}
    if unknown := sorted(named - set(members)):
        problems.append(f"{path or 'argument spec'}: a rule names {', '.join(unknown)}, which is not declared")
    return Options(members, required_if=required_if, required_by=required_by, **groups)


def grouped(rule: list[Any]) -> list[Any]:
    """A rule as a list of groups: Ansible accepts a single group without its brackets, too."""
    return [rule] if rule and isinstance(rule[0], str) else rule


def _rule(declared: Mapping[str, Any], rule: str) -> Sequence[Any]:
    value = declared.get(rule) or []
    if not isinstance(value, list):
        raise TypeError(rule)
    return grouped(value)


def _names(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(str(name) for name in value)


def _condition(value: Any) -> tuple[str, Any, tuple[str, ...], bool]:
    name, wanted, names, *rest = value
    return str(name), wanted, _names(names), bool(rest and rest[0])


def _read_option(name: str, entry: Any, problems: Problems, parent: str) -> Option:
    path = f"{parent}.{name}" if parent else name
    if not isinstance(entry, Mapping):
        problems.append(f"parameter {path}: must be a mapping")
        return Option(name)
    kind, elements = entry.get("type", "str"), entry.get("elements")
    for wanted in (kind, elements):
        if wanted is not None and wanted not in CONVERTERS:
            problems.append(f"parameter {path}: type {wanted} is not one that a parameter can have ({', '.join(CONVERTERS)})")
            return Option(name)
    description = entry.get("description") or ""
    option = Option(
        name=name,
        type=kind,
        description="\n".join(map(str, description)) if isinstance(description, list) else str(description).strip(),
        required=bool(entry.get("required")),
        choices=_read_choices(entry.get("choices") or [], (elements or "raw") if kind == "list" else kind, path, problems),
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
    values = tuple(CHECKER.convert(Option(path, type=kind), choice, path, mistakes) for choice in choices)
    problems.extend(f"a choice of {mistake}" for mistake in mistakes)
    return () if mistakes else values


def _with_default(option: Option, default: Any, path: str, problems: Problems) -> Option:
    if default is None:
        return option
    if isinstance(default, str) and "{{" in default:
        problems.append(f"parameter {path}: its default is an expression, and orders are checked where there are no variables")
        return option
    mistakes: Problems = []
    value = CHECKER.convert(option, default, path, mistakes)
    problems.extend(f"default of {mistake}" for mistake in mistakes)
    return option if mistakes else replace(option, default=value)
