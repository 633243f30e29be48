"""Surveys of templates: kept beside the template, and shown without the defaults of passwords."""

from __future__ import annotations

from typing import Any

from ....plugins.module_utils.common.types import Object
from .exchange import Refused, Request, Response, not_allowed
from .kinds import ENCRYPTED, Kind
from .store import now


class Surveys:
    def __init__(self) -> None:
        self._specs: dict[tuple[str, int], Object] = {}

    def of(self, kind: Kind, row: Object) -> Object:
        return self._specs.get((kind.collection, row["id"]), {})

    def handle(self, request: Request, kind: Kind, row: Object) -> Response:
        key = (kind.collection, row["id"])
        match request.method:
            case "GET":
                return Response(200, _shown(self.of(kind, row)))
            case "POST":
                self._specs[key] = _valid(request.body, self.of(kind, row))
                row["modified"] = now()
                return Response(200)
            case "DELETE":
                self._specs.pop(key, None)
                row["modified"] = now()
                return Response(200)
        raise not_allowed(request.method)

    def forget(self, kind: Kind, row: Object) -> None:
        self._specs.pop((kind.collection, row["id"]), None)


def missing_answers(spec: Object, answers: Object) -> list[str]:
    """The variables that a launch needs and has not."""
    asked = spec.get("spec", [])
    return [question["variable"] for question in asked if question["required"] and not _answered(question, answers)]


def defaults(spec: Object) -> Object:
    return {question["variable"]: question["default"] for question in spec.get("spec", []) if question.get("default") not in (None, "")}


def _answered(question: Object, answers: Object) -> bool:
    return answers.get(question["variable"], question.get("default", "")) not in (None, "")


def _valid(body: Any, old: Object) -> Object:
    if not isinstance(body, dict):
        raise Refused(400, {"error": "Survey spec is not a dictionary."})
    for name in ("name", "description", "spec"):
        if name not in body:
            raise Refused(400, {"error": f"'{name}' missing from survey spec."})
    if not body["spec"]:
        raise Refused(400, {"error": "'spec' doesn't contain any items."})
    earlier = {question["variable"]: question for question in old.get("spec", [])}
    questions: list[Object] = []
    for number, question in enumerate(body["spec"]):
        for name in ("type", "question_name", "variable", "required"):
            if name not in question:
                raise Refused(400, {"error": f"'{name}' missing from survey question {number}."})
        if question["variable"] in [other["variable"] for other in questions]:
            raise Refused(400, {"error": f"'variable' '{question['variable']}' duplicated in survey question {number}."})
        kept = {"default": earlier.get(question["variable"], {}).get("default", "")} if question.get("default") == ENCRYPTED else {}
        questions.append({**question, **kept})
    return body | {"spec": questions}


def _shown(spec: Object) -> Object:
    if not spec:
        return {}
    return spec | {
        "spec": [
            question | {"default": ENCRYPTED} if question["type"] == "password" and question.get("default") else question
            for question in spec["spec"]
        ]
    }
