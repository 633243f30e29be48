# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Surveys of templates: compared with those of the platform, without showing the default of a password. Pure functions."""

from __future__ import annotations

from typing import Any

from ..common.types import Object
from .compare import Comparison
from .document import Item
from .ledger import Ledger
from .values import ENCRYPTED, HIDDEN, OTHER, equal

# What the API adds to a question that does not have it.
DEFAULTS: Object = {
    "question_description": "",
    "required": False,
    "default": "",
    "choices": "",
    "min": None,
    "max": None,
    "new_question": None,
}


def compare_survey(item: Item, identity: int | None, current: Object, ledger: Ledger) -> Comparison:
    """The questions that differ, and the secrets of all."""
    result = Comparison()
    survey = item.survey or {}
    wanted = {str(question.get("variable")): question for question in survey.get("spec") or []}
    present = {str(question.get("variable")): question for question in current.get("spec") or []}
    for variable, question in wanted.items():
        if question.get("type") == "password" and question.get("default"):
            result.secrets[f"survey.{variable}"] = question["default"]
        before = present.get(variable)
        if before is None:
            result.fields.append((f"survey.{variable}", None, _shown(question)))
        elif not _same(question, before, item, identity, ledger):
            shown = _shown(question)
            if equal(shown, _shown(before)):
                shown["default"] = OTHER
            result.fields.append((f"survey.{variable}", _shown(before), shown))
    result.fields += [(f"survey.{variable}", _shown(question), None) for variable, question in present.items() if variable not in wanted]
    if not result.fields and list(wanted) != list(present):
        result.fields.append(("survey", list(present), list(wanted)))
    for name in ("name", "description"):
        if wanted and not equal(survey.get(name, ""), current.get(name, "")):
            result.fields.append((f"survey.{name}", current.get(name), survey.get(name)))
    return result


def _same(wanted: Object, before: Object, item: Item, identity: int | None, ledger: Ledger) -> bool:
    path = f"survey.{wanted.get('variable')}"
    if before.get("default") == ENCRYPTED:
        known = identity is not None and ledger.knows(item.kind.key, identity, path, wanted.get("default"))
        return (known or wanted.get("default") == ENCRYPTED) and _equal({**wanted, "default": ""}, {**before, "default": ""})
    return _equal(wanted, before)


def _equal(wanted: Object, before: Object) -> bool:
    return all(
        equal(_listed(wanted.get(name, DEFAULTS.get(name))), _listed(before.get(name, DEFAULTS.get(name)))) for name in {*wanted, *before}
    )


def _listed(value: Any) -> Any:
    """Choices are a list, or lines of text."""
    return value.split("\n") if isinstance(value, str) and "\n" in value else value


def _shown(question: Object) -> Object:
    secret = question.get("type") == "password" and question.get("default")
    return dict(question) | ({"default": HIDDEN} if secret else {})
