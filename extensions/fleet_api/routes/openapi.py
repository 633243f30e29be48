"""The OpenAPI document: what FastAPI generates, with the schemas of the CRDs, and with problems instead of its own validation errors."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ..problems import MEDIA_TYPE
from ..schemas import CRD

CRDS = Path(__file__).resolve().parents[2] / "crds"
FILES = {"FleetCluster": "fleetclusters.yaml", "FleetQuota": "fleetquotas.yaml", "Hub": "hubs.yaml"}
DESCRIPTION = """Clusters of tenants on the hubs of a fleet.

Each answer has the header `X-Operation-Id`. Errors are `application/problem+json`; `/errors` is their catalogue. A thing of another
tenant is answered as one that does not exist."""


def openapi_of(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(title="Fleet API", version="v1", description=DESCRIPTION, routes=app.routes, separate_input_output_schemas=False)
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for methods in document["paths"].values():
        for operation in methods.values():
            _correct(operation["responses"])
    used: set[str] = set()
    _refer_to_crds(document, used)
    schemas |= {_component(name): _crd_schema(name) for name in sorted(used)}
    return document


def _correct(responses: dict[str, Any]) -> None:
    """FastAPI documents its own validation error, and each model as application/json too."""
    refused = responses.get("422", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if refused.get("$ref", "").endswith("/HTTPValidationError"):
        del responses["422"]
    for response in responses.values():
        content = response.get("content", {})
        if MEDIA_TYPE in content:
            content[MEDIA_TYPE] = content.pop("application/json", None) or content[MEDIA_TYPE]
    # An answer without a described body.
    responses.get("304", {}).pop("content", None)


def _refer_to_crds(value: Any, used: set[str]) -> None:
    if isinstance(value, dict):
        if name := value.pop(CRD, None):
            used.add(name)
            value.clear()
            value["$ref"] = f"#/components/schemas/{_component(name)}"
        for each in value.values():
            _refer_to_crds(each, used)
    elif isinstance(value, list):
        for each in value:
            _refer_to_crds(each, used)


def _component(name: str) -> str:
    kind, _colon, partial = name.partition(":")
    return f"Shown{kind}" if partial else kind


@cache
def _crd(file: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((CRDS / file).read_text(encoding="utf-8"))
    properties: dict[str, Any] = content["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    return properties


def _crd_schema(name: str) -> dict[str, Any]:
    """The spec or the status of a CRD; `:partial` for answers, from which `fields` may leave out anything."""
    kind, _colon, partial = name.partition(":")
    resource, part = (kind[:-6], "status") if kind.endswith("Status") else (kind[:-4], "spec")
    schema = copy.deepcopy(_crd(FILES[resource])[part])
    if partial:
        schema.pop("required", None)
    return _plain(schema, closed=not partial)


def _plain(schema: dict[str, Any], *, closed: bool) -> dict[str, Any]:
    """Without the extensions of Kubernetes. The API server refuses unknown fields of what is created, so they are not allowed here."""
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") is True
    plain = {name: value for name, value in schema.items() if not name.startswith("x-kubernetes-")}
    if "properties" in plain:
        plain["properties"] = {name: _plain(each, closed=closed) for name, each in plain["properties"].items()}
        if closed and not is_open:
            plain["additionalProperties"] = False
    if isinstance(plain.get("additionalProperties"), dict):
        plain["additionalProperties"] = _plain(plain["additionalProperties"], closed=closed)
    if "items" in plain:
        plain["items"] = _plain(plain["items"], closed=closed)
    return plain
