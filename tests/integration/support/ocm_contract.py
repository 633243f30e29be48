"""OpenShift Cluster Manager's own OpenAPI description as a judge of requests and answers, stricter than it is written.

It says of hardly anything that it must be an object, and of nothing that there are no other fields; here both are so, else a misspelt
field would pass. Two things are in the service and not in its description: the id of a request in its errors, and the dry run of a new
cluster. They are added below, and nothing else is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from ansible_collections.openfleet.clusters.extensions.sandbox.upstream import ocm_description
from openapi_core import Config, OpenAPI
from openapi_core.exceptions import OpenAPIError
from openapi_core.testing import MockRequest, MockResponse


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    queries: frozenset[str]
    successes: frozenset[int]

    def is_of(self, request: MockRequest) -> bool:
        parts, given = self.path.split("/"), request.path.split("/")
        same = len(parts) == len(given) and all(part.startswith("{") or part == value for part, value in zip(parts, given, strict=True))
        return same and request.method == self.method


@dataclass(frozen=True)
class Contract:
    """Says what is wrong with a request or an answer; an empty text where nothing is."""

    openapi: OpenAPI
    operations: tuple[Operation, ...]

    def of_request(self, request: MockRequest) -> str:
        try:
            self.openapi.validate_request(request)
        except OpenAPIError as error:
            return str(error)
        unknown = set(request.parameters.query) - self._operation(request).queries
        return f"unknown query parameters {', '.join(sorted(unknown))}" if unknown else ""

    def of_answer(self, request: MockRequest, status: int, body: bytes) -> str:
        if status < 400 and status not in self._operation(request).successes:
            return f"{status} is no success of {request.method} {request.path}"
        try:
            self.openapi.validate_response(request, MockResponse(body, status_code=status, content_type="application/json"))
        except OpenAPIError as error:
            return str(error)
        return ""

    def _operation(self, request: MockRequest) -> Operation:
        return next(operation for operation in self.operations if operation.is_of(request))


def request_of(url: str, method: str, path: str, query: str, headers: dict[str, str], body: bytes) -> MockRequest:
    return MockRequest(
        url,
        method.lower(),
        path,
        args=dict(parse_qsl(query)),
        headers=headers,
        data=body or None,
        content_type=headers.get("Content-Type", ""),
    )


@cache
def contract() -> Contract:
    """The description, made strict."""
    description = json.loads(ocm_description().read_text(encoding="utf-8"))
    description["components"]["schemas"]["Error"]["properties"]["operation_id"] = {"type": "string"}
    dry_run = {"name": "dryRun", "in": "query", "schema": {"type": "boolean"}}
    description["paths"]["/api/clusters_mgmt/v1/clusters"]["post"].setdefault("parameters", []).append(dry_run)
    description["servers"] = [{"url": "/"}]
    _make_strict(description["components"]["schemas"])
    _make_strict(description["paths"])
    operations = tuple(
        Operation(
            method,
            path,
            frozenset(entry["name"] for entry in operation.get("parameters", []) if entry["in"] == "query"),
            frozenset(int(status) for status in operation["responses"] if status != "default"),
        )
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    )
    return Contract(OpenAPI.from_dict(description, config=Config(spec_validator_cls=None)), operations)


def _make_strict(node: Any) -> None:
    if isinstance(node, dict):
        if isinstance(node.get("properties"), dict) and "$ref" not in node and "schema" not in node:
            node.setdefault("type", "object")
            node.setdefault("additionalProperties", False)
        for inner in node.values():
            _make_strict(inner)
    elif isinstance(node, list):
        for inner in node:
            _make_strict(inner)
