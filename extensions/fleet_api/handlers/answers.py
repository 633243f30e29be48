"""The answers of operations as HTTP responses: JSON, entity tags, problems."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from ....plugins.module_utils.common.types import Object
from ..problems import MEDIA_TYPE, Problem, invalid

ENTITY_TAG = re.compile(r'\s*(W/)?"([\x21\x23-\x7e]*)"\s*')
MOST_TAGS = 20


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None, media_type: str = "application/json") -> Response:
    return Response(json.dumps(body, separators=(",", ":"), default=str).encode(), status, headers, media_type)


def problem_response(problem: Problem, operation_id: str) -> Response:
    return json_response(problem.body(operation_id), problem.kind.status, problem.headers, MEDIA_TYPE)


def etag(item: Object) -> str:
    return f'"{item["metadata"]["resourceVersion"]}"'


def object_response(view: Mapping[str, Any], item: Object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return json_response(view, status, {"ETag": etag(item), **(headers or {})})


def is_unmodified(if_none_match: str | None, item: Object) -> bool:
    """Whether the client has the object already. Here weak tags count too."""
    if not if_none_match:
        return False
    tags = _tags(if_none_match, "If-None-Match")
    return tags is None or any(value == item["metadata"]["resourceVersion"] for _weak, value in tags)


def required_version(if_match: str | None, item: Object) -> str | None:
    """The version that a write is for; None for any. A Problem if the object has another one already."""
    if not if_match:
        return None
    tags = _tags(if_match, "If-Match")
    if tags is None:
        return None
    present = str(item["metadata"]["resourceVersion"])
    if all(weak or value != present for weak, value in tags):
        raise Problem("precondition-failed", f"The object has the ETag {etag(item)}.")
    return present


def conflict_as_precondition(problem: Problem, version: str | None) -> Problem:
    """For a write with If-Match: the object was changed between our read and our write."""
    return Problem("precondition-failed") if version and problem.kind.code == "conflict" else problem


def _tags(text: str, header: str) -> list[tuple[bool, str]] | None:
    """The tags of a header; None for all."""
    if text.strip() == "*":
        return None
    found = [ENTITY_TAG.fullmatch(part) for part in text.split(",")]
    if not all(found) or len(found) > MOST_TAGS:
        raise invalid(header, 'is a list of entity tags in quotes, such as "12345", or *')
    return [(bool(match[1]), match[2]) for match in found if match]
