# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a template says about profiles: which of those that the site offers it requires and allows, and what of them an order may edit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..common.argument_checker import Problems
from ..common.argument_values import clip, is_json
from ..common.semantic_version import BadRange, Range
from ..common.text import did_you_mean

KEY = "profiles"  # of meta/template.yml, and of the parameter
PARAMETER = "gitops"
EDITABLE = ("version", "layer", "namespace", "values")
FIELDS = ("required", "version", "layer", "namespace", "values", "editable")


@dataclass(frozen=True)
class ProfileRule:
    """The rule for one profile: its values take precedence over the site's. An order may edit those in `editable`."""

    required: bool = False
    version: str = ""
    layer: int | None = None
    namespace: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    editable: tuple[str, ...] = EDITABLE


def read_rules(metadata: Mapping[str, Any], problems: Problems) -> Mapping[str, ProfileRule] | None:
    """The rules by profile; None where the template has none, and an order may have everything that the site offers."""
    given = metadata.get(KEY)
    if given is None:
        return None
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        problems.append(f"meta/template.yml: {KEY} must be a mapping of profiles to rules")
        return None
    return {name: _rule(f"meta/template.yml: {KEY}.{clip(name)}", rule, problems) for name, rule in given.items()}


def asked_profiles(parameters: Mapping[str, Any]) -> list[Any]:
    """What the parameters of an order ask for, as they have it."""
    gitops = parameters.get(PARAMETER)
    return (gitops.get(KEY) if isinstance(gitops, Mapping) else None) or []


def needs_profiles(rules: Mapping[str, ProfileRule] | None, parameters: Mapping[str, Any]) -> bool:
    """Whether the template requires a profile, or the parameters of an order ask for one."""
    return bool(asked_profiles(parameters)) or any(rule.required for rule in (rules or {}).values())


def _rule(path: str, rule: Any, problems: Problems) -> ProfileRule:
    if not isinstance(rule or {}, dict):
        problems.append(f"{path} must be a mapping")
        return ProfileRule()
    given: Mapping[str, Any] = rule or {}
    problems.extend(f"{path}.{clip(str(key))} is not known{did_you_mean(str(key), FIELDS)}" for key in given if key not in FIELDS)
    required = given.get("required", False)
    types: dict[str, tuple[type, str]] = {
        "required": (bool, "true or false"),
        "version": (str, "a range of versions in quotes"),
        "layer": (int, "an integer"),
        "namespace": (str, "the name of a namespace"),
        "values": (dict, "a mapping"),
        "editable": (list, f"a list of {', '.join(EDITABLE)}"),
    }
    wrong = [name for name, (kind, _text) in types.items() if name in given and not _is_a(given[name], kind)]
    problems.extend(f"{path}.{name} must be {types[name][1]}" for name in wrong)
    if wrong or not is_json(given.get("values", {})):
        problems.extend([] if wrong else [f"{path}.values must have dates in quotes"])
        return ProfileRule()
    # Unless the template says so, what it requires is as it says.
    editable = given.get("editable", [] if required else EDITABLE)
    if unknown := [str(name) for name in editable if name not in EDITABLE]:
        problems.append(f"{path}.editable has {', '.join(unknown)}: it can have {', '.join(EDITABLE)}")
    try:
        Range.parse(given.get("version", ""))
    except BadRange as error:
        problems.append(f"{path}.version {error}")
    return ProfileRule(**{name: value for name, value in given.items() if name in FIELDS} | {"editable": tuple(map(str, editable))})


def _is_a(value: Any, kind: type) -> bool:
    """In Python true is also a number."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
