# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Arguments checked against an argument spec: those of templates, of providers, of event sources. It reads no files.

Specs are those of Ansible, and a value that passes here passes Ansible's own check of a role too. Ansible's validator cannot be used: it
puts values into its messages, secret ones too, expands variables of our environment in values of the type `path`, and turns an object
given for a string into Python's notation.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .argument_values import CONVERTERS, clip, kind_of, show
from .text import did_you_mean

SUGGESTIONS = 20  # unknown names that get one: comparing names is slow, and an order can hold ten thousand of them

Problems = list[str]

# A value that is set, but not known: a mistake in it was reported already. It is not checked, and it is left out.
UNKNOWN: Any = object()


@dataclass(frozen=True)
class Option:
    """One argument."""

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

    @property
    def element(self) -> Option:
        """What each item of a list has to be. The list's choices are checked by the list."""
        return Option(self.name, type=self.elements or "raw", no_log=self.no_log, options=self.options)


@dataclass(frozen=True)
class Options:
    """A set of arguments, and the rules between them."""

    members: Mapping[str, Option] = field(default_factory=dict)
    mutually_exclusive: tuple[tuple[str, ...], ...] = ()
    required_together: tuple[tuple[str, ...], ...] = ()
    required_one_of: tuple[tuple[str, ...], ...] = ()
    required_if: tuple[tuple[str, Any, tuple[str, ...], bool], ...] = ()  # name, value, names, whether one of the names is enough
    required_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


GROUP_RULES = ("mutually_exclusive", "required_together", "required_one_of")
RULES = (*GROUP_RULES, "required_if", "required_by")


@dataclass(frozen=True)
class ArgumentChecker:
    """Checks the arguments of a `subject` ("template", "event source"), which its messages name; `noun` is what it calls one argument.

    null means that an argument is not set. With `empty_is_unset` an empty string does, too: an unset variable of a rulebook becomes one.
    """

    subject: str
    noun: str = "parameter"
    empty_is_unset: bool = False

    def check(
        self, options: Options, given: Mapping[str, Any], problems: Problems, path: str = "", known: Collection[str] = ()
    ) -> dict[str, Any]:
        """The values in their types, with defaults; every mistake is added to `problems`, and its value is left out.

        What is not set and has no default is left out. `known` are names that are not declared here and no mistake either: they are for
        another entry point.
        """
        names = {alias: option.name for option in options.members.values() for alias in option.aliases}
        values = {names.get(name, name): value for name, value in given.items() if self._is_set(value)}
        self._find_unknown(
            options, [name for name in given if names.get(name, name) not in options.members and name not in known], problems, path
        )
        for group in options.mutually_exclusive:
            if len(both := [name for name in group if name in values]) > 1:
                problems.append(f"{self.noun}s {_paths(both, path)} exclude each other: give only one")
        result: dict[str, Any] = {}
        for name, option in options.members.items():
            mistakes: Problems = []
            value = self._value_of(option, values, _join(path, name), mistakes)
            problems.extend(mistakes)
            if value is not None and value is not UNKNOWN and not mistakes:
                result[name] = value
        # A value that is wrong is set nevertheless: one message about it is enough.
        self._check_rules(options, result, set(values) | set(result), problems, path)
        return result

    def convert(self, option: Option, value: Any, path: str, problems: Problems) -> Any:
        """The value in the type of the option; what is wrong with it is added to `problems`."""
        if value is UNKNOWN:
            return UNKNOWN
        before = len(problems)
        converter, wanted = CONVERTERS[option.type]
        try:
            result = converter(value)
        except ValueError:
            problems.append(f"{self.noun} {path} must be {wanted}, not {kind_of(value) if option.secret else show(value)}")
            return None
        if isinstance(result, list) and option.type == "list":
            items = (self.convert(option.element, item, f"{path}[{index}]", problems) for index, item in enumerate(result))
            result = [item for item in items if item is not UNKNOWN]
        elif isinstance(result, dict) and option.type == "dict" and option.options is not None:
            result = self.check(option.options, result, problems, path)
        if len(problems) == before and option.choices:
            wrong = [item for item in (result if option.type == "list" else [result]) if item not in option.choices]
            got = "" if option.secret else f", not {', '.join(map(show, wrong[:3]))}"
            if wrong:
                problems.append(f"{self.noun} {path} must be {_any_of(option.choices)}{got}")
        return result

    def _is_set(self, value: Any) -> bool:
        return value is not None and not (self.empty_is_unset and value == "")

    def _value_of(self, option: Option, values: Mapping[str, Any], path: str, problems: Problems) -> Any:
        if option.name in values:
            return self.convert(option, values[option.name], path, problems)
        if option.default is not None:
            return copy.deepcopy(option.default)
        if option.apply_defaults and option.options is not None:
            return self.check(option.options, {}, problems, path)
        if option.required:
            problems.append(f"{self.noun} {path} is required")
        return None

    def _find_unknown(self, options: Options, unknown: Sequence[str], problems: Problems, path: str) -> None:
        for position, name in enumerate(unknown):
            hint = did_you_mean(name, options.members) if position < SUGGESTIONS else ""
            if not hint and position == 0:
                hint = f" (it has {', '.join(options.members)})" if options.members else " (it has none)"
            problems.append(f"{self.noun} {_join(path, clip(name))} is not known to this {self.subject}{hint}")

    def _check_rules(self, options: Options, values: Mapping[str, Any], present: Collection[str], problems: Problems, path: str) -> None:
        for group in options.required_together:
            missing = [name for name in group if name not in present]
            if missing and len(missing) < len(group):
                problems.append(f"{self.noun}s {_paths(group, path)} go together: {_paths(missing, path)} is missing")
        problems.extend(
            f"one of the {self.noun}s {_paths(group, path)} is required"
            for group in options.required_one_of
            if not any(name in present for name in group)
        )
        for name, wanted, names, any_of in options.required_if:
            missing = [needed for needed in names if needed not in present]
            if name in values and values[name] == wanted and missing and (len(missing) == len(names) or not any_of):
                reason = "has the value it has" if options.members[name].secret else f"is {show(wanted)}"
                what = f"one of {_paths(names, path)}" if any_of else _paths(missing, path)
                problems.append(f"{self.noun} {_join(path, name)} {reason}, and then {what} is required")
        for name, names in options.required_by.items():
            missing = [needed for needed in names if needed not in present]
            if name in present and missing:
                problems.append(f"{self.noun} {_join(path, name)} needs {_paths(missing, path)}, too")


def _any_of(choices: Sequence[Any]) -> str:
    return f"one of {', '.join(show(choice) for choice in choices)}" if len(choices) > 1 else show(choices[0])


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _paths(names: Iterable[str], path: str) -> str:
    return ", ".join(_join(path, name) for name in names)
