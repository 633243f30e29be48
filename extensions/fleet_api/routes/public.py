"""Routes that need no token: the catalogue of errors, the OpenAPI document, and the explorer of its operations."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from ..handlers.answers import json_response
from ..problems import KINDS, not_found
from ..schemas import ErrorKind, ErrorList
from .parameters import PROBLEM

router = APIRouter(tags=["service"])
STATIC = Path(__file__).parent / "static"
EXPLORER = {
    "/explorer.html": ("explorer.html", "text/html"),
    "/explorer.js": ("explorer.js", "text/javascript"),
    "/explorer.css": ("explorer.css", "text/css"),
}


@router.get("/errors", responses={200: {"model": ErrorList}})
async def list_errors() -> Response:
    """The catalogue of errors."""
    return json_response({"items": [asdict(kind) for kind in KINDS.values()]})


@router.get("/errors/{code}", responses={200: {"model": ErrorKind}, 404: PROBLEM})
async def get_error(code: str) -> Response:
    """One error of the catalogue."""
    if code not in KINDS:
        raise not_found()
    return json_response(asdict(KINDS[code]))


@router.get("/openapi.json", include_in_schema=False)
async def openapi_document(request: Request) -> Response:
    return json_response(request.app.openapi())


@router.get("/explorer.html", include_in_schema=False)
@router.get("/explorer.js", include_in_schema=False)
@router.get("/explorer.css", include_in_schema=False)
async def explorer(request: Request) -> Response:
    name, media_type = EXPLORER[request.url.path]
    return Response((STATIC / name).read_bytes(), media_type=media_type)
