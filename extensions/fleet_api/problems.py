"""The errors of the API, as `application/problem+json` of RFC 9457, and their catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True)
class Kind:
    """One entry of the catalogue. `action` is what the client can do about it."""

    code: str
    status: int
    title: str
    action: str


KINDS = {
    kind.code: kind
    for kind in (
        Kind("invalid-request", 400, "The request is invalid", "Correct what `errors` names."),
        Kind("invalid-filter", 400, "The filter is invalid", "Correct the filter; the documentation has its grammar."),
        Kind("invalid-cursor", 400, "The cursor is invalid", "List again from the first page, with unchanged parameters."),
        Kind("tenant-required", 400, "The tenant is not known", "Name the tenant: the caller has none or several."),
        Kind("unauthenticated", 401, "The token is not accepted", "Send a valid token as `Authorization: Bearer`."),
        Kind("forbidden", 403, "The caller may not do this", "Ask the operator of the fleet for the permission."),
        Kind("denied-by-policy", 403, "A policy of the fleet refuses the request", "Change the request as `detail` says."),
        Kind("not-found", 404, "Not found", "Check the address and the id."),
        Kind("method-not-allowed", 405, "The address has no such method", "Use a method of the header `Allow`."),
        Kind("already-exists", 409, "A cluster of this name exists", "Choose another name, or use the existing cluster."),
        Kind("conflict", 409, "The object was changed meanwhile", "Read the object and try again."),
        Kind("not-ready", 409, "The cluster is not ready for this", "Wait until `detail` no longer holds."),
        Kind("precondition-failed", 412, "The object is not the one of If-Match", "Read the object and try again with its new ETag."),
        Kind("too-large", 413, "The request is too large", "Send a smaller body."),
        Kind("unsupported-media-type", 415, "The body has an unknown media type", "Send JSON."),
        Kind("unprocessable", 422, "The home cluster refuses the object", "Correct the fields that `errors` names."),
        Kind("idempotency-key-reused", 422, "The Idempotency-Key belongs to another request", "Use a new key for a new request."),
        Kind("rate-limited", 429, "The caller sends too many requests", "Wait for the seconds of `Retry-After`."),
        Kind("internal-error", 500, "The service failed", "Report the operation id to the operator of the fleet."),
        Kind("home-unavailable", 503, "The home cluster does not answer", "Try again later."),
        Kind("issuer-unavailable", 503, "The issuer of the token does not answer", "Try again later."),
        Kind("timeout", 504, "The request took too long", "Try again later."),
        Kind("hub-timeout", 504, "The hub of the cluster did not answer in time", "Try again later."),
    )
}


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one field of the request; `field` is a path such as spec.template, or the name of a parameter."""

    field: str
    message: str


class Problem(Exception):
    """An error that the client gets as the answer."""

    def __init__(
        self,
        code: str,
        detail: str = "",
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail or KINDS[code].title)
        self.kind = KINDS[code]
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})

    def body(self, operation_id: str) -> dict[str, Any]:
        """The document for the client. The type is the entry of the catalogue, relative to the service."""
        kind = self.kind
        shown: dict[str, Any] = {"type": f"/errors/{kind.code}", "title": kind.title, "status": kind.status, "code": kind.code}
        if self.detail:
            shown["detail"] = self.detail
        if self.errors:
            shown["errors"] = [{"field": each.field, "message": each.message} for each in self.errors]
        return shown | {"action": kind.action, "operation_id": operation_id}


def not_found() -> Problem:
    """The same answer whether a thing does not exist or belongs to another tenant."""
    return Problem("not-found")


def invalid(field: str, message: str) -> Problem:
    return Problem("invalid-request", f"{field}: {message}", [FieldError(field, message)])


def from_status(status: int, detail: str = "", headers: Mapping[str, str] | None = None) -> Problem:
    """The problem for an HTTP status of a library."""
    by_status = {404: "not-found", 405: "method-not-allowed", 413: "too-large", 415: "unsupported-media-type"}
    code = by_status.get(status) or ("invalid-request" if status < 500 else "internal-error")
    return Problem(code, detail if code == "invalid-request" else "", headers=headers)
