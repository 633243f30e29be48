"""What routes share: the caller, the parameters of lists and the documented answers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request, Security
from fastapi.security import HTTPBearer

from ..logic import paging
from ..logic.filter import LONGEST
from ..logic.services import Services
from ..problems import MEDIA_TYPE, invalid, not_found
from ..schemas import DNS_LABEL, ProblemDocument
from ..stores.identity import Caller

API = "/api/fleet/v1"
LONGEST_TEXT = 2000
bearer = HTTPBearer(auto_error=False, description="A token of the home cluster or of an issuer that the site has configured")


def _services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


def _caller(request: Request) -> Caller:
    """The middleware has authenticated the request."""
    found: Caller = request.state.caller
    return found


def _token(request: Request) -> str:
    return str(request.state.token)


def _query(
    limit: Annotated[int, Query(ge=1, le=paging.MOST, description="At most so many objects")] = paging.DEFAULT_LIMIT,
    cursor: Annotated[str, Query(max_length=paging.LONGEST_CURSOR, description="`nextCursor` of the page before")] = "",
    order_by: Annotated[str, Query(max_length=LONGEST_TEXT, description="Fields, each with `asc` or `desc`: `state desc, name`")] = "",
    filter: Annotated[str, Query(max_length=LONGEST, description='A subset of CEL: `state == "Ready" && nodes > 3`')] = "",  # noqa: A002
    fields: Annotated[
        str, Query(max_length=LONGEST_TEXT, description="Only these fields: `name,status.state`. The id is always there")
    ] = "",
) -> paging.Query:
    return paging.Query(limit, cursor, order_by, filter, fields)


def known_parameters(request: Request) -> None:
    """Refuse a parameter that the document does not have: a misspelled filter would otherwise return everything."""
    operation = request.app.openapi()["paths"][request.scope["route"].path][request.method.lower()]
    known = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
    if unknown := sorted({*request.query_params} - known):
        raise invalid(
            unknown[0][:40] or "query", f"is none of the parameters of this operation: {', '.join(sorted(known)) or 'it has none'}"
        )


def _fleet_only(request: Request) -> None:
    """A single hub has no hubs, quotas, plans and records."""
    if _services(request).settings.single_hub:
        raise not_found()


FLEET_ONLY = [Depends(_fleet_only)]
CallerOf = Annotated[Caller, Depends(_caller)]
ServicesOf = Annotated[Services, Depends(_services)]
TokenOf = Annotated[str, Depends(_token)]
ListQuery = Annotated[paging.Query, Depends(_query)]
TenantName = Annotated[str, Query(pattern=DNS_LABEL, max_length=63)]
TenantNames = Annotated[list[TenantName], Query(default_factory=list, alias="tenant", max_length=50, description="Only these tenants")]
Filter = Annotated[str, Query(max_length=LONGEST, description="Only clusters that match")]
LastEventId = Annotated[str | None, Header(max_length=64, description="The id of the last event that the client has seen")]
IfMatch = Annotated[str | None, Header(max_length=1000, description="The ETag that the object must have")]
IfNoneMatch = Annotated[str | None, Header(max_length=1000, description="The ETag that the client has")]

GUARDED = [Security(bearer), Depends(known_parameters)]  # of all routes below the API
PROBLEM: dict[str, Any] = {"model": ProblemDocument, "description": "A problem", "content": {MEDIA_TYPE: {}}}


Responses = dict[int | str, dict[str, Any]]


def answers(*statuses: int) -> Responses:
    """The problems of an operation, with those that every operation has."""
    return {**dict.fromkeys((401, 429, 503, *statuses), PROBLEM), "default": PROBLEM}
