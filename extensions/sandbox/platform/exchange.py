"""A request and its response, as the APIs of the stand-in see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ....plugins.module_utils.common.types import Object

JSON = "application/json"


@dataclass(frozen=True)
class Request:
    """A request. `query` has each parameter with all its values, `base` the path below which the addressed API is."""

    method: str
    path: str
    query: Mapping[str, list[str]] = field(default_factory=dict)
    body: Any = None
    authorization: str = ""
    base: str = ""
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_write(self) -> bool:
        return self.method not in ("GET", "HEAD", "OPTIONS")

    @property
    def parts(self) -> list[str]:
        """The segments below the API's base."""
        return [part for part in self.path.removeprefix(self.base).split("/") if part]

    @property
    def fields(self) -> Object:
        """The fields of a body, which is an object."""
        if self.body is None:
            return {}
        if not isinstance(self.body, dict):
            raise Refused(400, {"detail": f"JSON parse error - not an object: {type(self.body).__name__}"})
        return self.body


@dataclass(frozen=True)
class Response:
    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = JSON


class Refused(Exception):
    """A request is answered with an error."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"{status}: {body}")
        self.response = Response(status, body)


def not_found() -> Refused:
    return Refused(404, {"detail": "Not found."})


def not_allowed(method: str) -> Refused:
    return Refused(405, {"detail": f'Method "{method}" not allowed.'})
