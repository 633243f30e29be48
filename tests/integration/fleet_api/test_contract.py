"""The OpenAPI document against the live service: schemathesis sends valid and invalid requests; no answer is a 500 or undescribed."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import schemathesis
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from openapi_core import OpenAPI
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from ..support.fleet import TEMPLATE, Fleet
from ..support.fleet_api import API, Client, Facade, Site, Tenant

EXAMPLES = 6
AS_DESCRIBED = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
]
# It has no end; tests of events read it.
STREAMS = (f"{API}/events", f"{API}/admin/events")
_names = itertools.count(1)


@pytest.fixture
def operator(site: Site, facade: Facade, tenant: Tenant) -> Iterator[Client]:
    with site.operator(tenant.name) as token:
        client = Client(facade.address, token)
        until(lambda: client.get("/admin/quotas").status == 200, "the service knows the operator")
        yield client


def real_id(path: str, tenant: Tenant, fleet: Fleet) -> str:
    """The id of something that exists, so that the operation does more than to find nothing."""
    if "/clusters" in path:
        return str(tenant.client.post("/clusters", {"name": f"c{next(_names)}", "spec": {"template": TEMPLATE}}).json()["id"])
    if "/hubs" in path:
        return fleet.hubs[0]
    return tenant.name if "/quotas" in path else TEMPLATE if "/templates" in path else str(uuid.uuid4())


def fuzz(operation: Any, examples: int, send: Callable[[Any], None]) -> None:
    """Send random requests for the operation; invalid ones too."""

    @settings(
        max_examples=examples,
        deadline=timedelta(seconds=60),
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))
    def run(case: Any) -> None:
        send(case)

    run()


def test_every_answer_is_as_described_and_none_is_a_server_error(
    soak: int, facade: Facade, tenant: Tenant, operator: Client, fleet: Fleet
) -> None:
    fleet.add_hub("east")
    until(lambda: tenant.client.get("/templates").json()["items"], "the service has the hub")
    schema: Any = schemathesis.openapi.from_url(f"{facade.address}/openapi.json")
    swept = [result.ok() for result in schema.get_all_operations()]
    assert len(swept) >= 27
    for operation in swept:
        if operation.path in STREAMS:
            continue
        token = operator.token if "/admin/" in operation.path else tenant.client.token

        def send(case: Any, path: str = operation.path, token: str = token) -> None:
            if "id" in (case.path_parameters or {}) and next(_names) % 2:
                case.path_parameters["id"] = real_id(path, tenant, fleet)
            case.call_and_validate(headers={"Authorization": f"Bearer {token}"}, checks=AS_DESCRIBED)

        fuzz(operation, EXAMPLES * soak, send)
    errors = [line for line in facade.lines() if line["level"] in ("ERROR", "CRITICAL")]
    assert not errors, errors[:3]


def test_operations_need_the_token_that_the_document_asks_for(facade: Facade) -> None:
    document = Client(facade.address).get("//openapi.json").json()
    OpenAPI.from_dict(document)  # is valid
    anonymous = Client(facade.address)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            is_public = not path.startswith(API)
            assert ("security" in operation) is not is_public, path
            answer = anonymous(method.upper(), f"/{path.format(id='x', code='not-found')}")
            assert (answer.status == 200) if is_public else (answer.code == "unauthenticated"), path


def test_explorer_loads_nothing_from_elsewhere(facade: Facade) -> None:
    client = Client(facade.address)
    page = client.get("//explorer.html")
    assert page.headers["Content-Type"].startswith("text/html")
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
    assert "unsafe" not in policy
    for name in ("explorer.js", "explorer.css"):
        assert f'"{name}"'.encode() in page.body
        answer = client.get(f"//{name}")
        assert answer.status == 200
        assert b"//" not in answer.body.replace(b"// ", b"")
    assert b"http" not in page.body
    assert b"<script>" not in page.body
    assert b"style=" not in page.body


def test_errors_are_in_the_catalogue(facade: Facade, tenant: Tenant) -> None:
    client = Client(facade.address)
    kinds = client.get("//errors").json()["items"]
    problem = tenant.client.get("/clusters/none").json()
    assert problem["type"] == "/errors/not-found"
    assert client.get(f"/{problem['type']}").json() == next(kind for kind in kinds if kind["code"] == "not-found")
    assert client.get("//errors/none").code == "not-found"
    assert client.get("//none").code == "not-found"
    wrong = tenant.client("PUT", "/clusters")
    assert (wrong.status, wrong.code, wrong.headers["Allow"]) == (405, "method-not-allowed", "GET, POST")
