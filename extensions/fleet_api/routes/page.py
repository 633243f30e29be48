"""Routes of the fleet page: its files, and how it logs in. They need no token; all that the page shows comes from the API."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from ..handlers.answers import json_response
from ..problems import not_found
from .parameters import ServicesOf

router = APIRouter(include_in_schema=False)
FOLDER = Path(__file__).resolve().parents[1] / "page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# Read once: a request names one of these, never a path.
FILES = {str(file.relative_to(FOLDER)): file.read_bytes() for file in sorted(FOLDER.rglob("*")) if file.suffix in TYPES}
TAGS = {name: f'"{hashlib.sha256(content).hexdigest()[:32]}"' for name, content in FILES.items()}


@router.get("/")
async def index(request: Request) -> Response:
    return _file("index.html", request)


@router.get("/page/{name:path}")
async def file(name: str, request: Request) -> Response:
    return _file(name, request)


@router.get("/config.json")
async def config(services: ServicesOf) -> Response:
    """What the page has to know before its user has a token."""
    login = services.settings.login
    return json_response({"login": login.model_dump() if login else None, "fleet": services.settings.single_hub is None})


def _file(name: str, request: Request) -> Response:
    if name not in FILES:
        raise not_found()
    headers = {"ETag": TAGS[name], "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == TAGS[name]:
        return Response(status_code=304, headers=headers)
    return Response(FILES[name], headers=headers, media_type=TYPES[Path(name).suffix])
