"""The stand-in's EDA controller and gateway answer as their sources say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import ADMIN, PASSWORD, Platform

from .platform_client import Client

RULEBOOK = "cluster_fulfillment_aap.yml"


@pytest.fixture
def platform() -> Platform:
    return Platform(gateway=True)


@pytest.fixture
def url(platform: Platform) -> Iterator[str]:
    with platform.serving() as address:
        yield address


@pytest.fixture
def eda(platform: Platform, url: str) -> Client:
    return Client(url, platform.token(), "/api/eda/v1/")


def found(eda: Client, path: str, name: str) -> dict[str, Any]:
    return next(item for item in eda("GET", path)[1]["results"] if item["name"] == name)


@pytest.fixture
def activation(eda: Client) -> int:
    """An activation that is enabled, and that no request has read yet."""
    organization = found(eda, "organizations/", "Default")["id"]
    project = eda.create("projects/", name="site", url="https://git.example.com", organization_id=organization)
    states = [eda("GET", f"projects/{project}/")[1]["import_state"] for _step in range(3)]
    assert states == ["pending", "running", "completed"]
    environment = eda.create("decision-environments/", name="site", image_url="registry.example.com/de", organization_id=organization)
    rulebook = found(eda, f"rulebooks/?project_id={project}", RULEBOOK)["id"]
    fields = {"organization_id": organization, "decision_environment_id": environment, "rulebook_id": rulebook}
    return eda.create("activations/", name="orders", extra_var="b: 1\na: {c: 2}\n", **fields)


def states(eda: Client, activation: int, steps: int) -> list[str]:
    return [eda("GET", f"activations/{activation}/")[1]["status"] for _step in range(steps)]


def test_an_activation_walks_through_its_states(eda: Client, activation: int) -> None:
    assert states(eda, activation, 4) == ["pending", "starting", "running", "running"]
    assert eda("POST", f"activations/{activation}/disable/") == (204, None)
    assert eda("POST", f"activations/{activation}/enable/")[0] == 409
    assert states(eda, activation, 2) == ["stopping", "stopped"]
    assert eda("POST", f"activations/{activation}/enable/") == (204, None)
    assert states(eda, activation, 3) == ["pending", "starting", "running"]
    assert eda("DELETE", f"activations/{activation}/") == (204, None)
    assert eda("GET", f"activations/{activation}/")[1]["status"] == "deleting"
    assert eda("GET", f"activations/{activation}/")[0] == 404


def test_an_activation_is_changed_only_when_it_is_disabled_and_stopped(eda: Client, activation: int) -> None:
    refused = (409, "Activation is not in disabled mode and in stopped status")
    assert eda("PATCH", f"activations/{activation}/", {"log_level": "info"}) == refused
    states(eda, activation, 3)
    eda("POST", f"activations/{activation}/disable/")
    assert eda("PATCH", f"activations/{activation}/", {"log_level": "info"}) == refused
    states(eda, activation, 2)
    status, changed = eda("PATCH", f"activations/{activation}/", {"log_level": "info", "is_enabled": True})
    assert (status, changed["log_level"], changed["is_enabled"]) == (200, "info", True)


def test_an_activation_whose_rulebook_does_not_start_fails_with_a_message(eda: Client, platform: Platform, activation: int) -> None:
    platform.activations.defect = lambda row: "no such image" if row["log_level"] == "error" else ""
    assert states(eda, activation, 3) == ["pending", "starting", "failed"]
    assert eda("GET", f"activations/{activation}/")[1]["status_message"] == "no such image"


def test_lists_have_ids_and_details_have_objects(eda: Client, activation: int) -> None:
    listed, detail = found(eda, "activations/", "orders"), eda("GET", f"activations/{activation}/")[1]
    assert isinstance(listed["project_id"], int) and detail["project"]["name"] == "site" and "project_id" not in detail
    assert yaml.safe_load(listed["extra_var"]) == {"a": {"c": 2}, "b": 1} and listed["extra_var"].startswith("a:")
    assert set(eda("GET", "activations/")[1]) == {"count", "next", "previous", "page_size", "page", "results"}


def test_event_streams_replace_the_sources_of_a_rulebook(eda: Client, platform: Platform, activation: int) -> None:
    organization = found(eda, "organizations/", "Default")["id"]
    kind = found(eda, "credential-types/", "Token Event Stream")["id"]
    secret = {"auth_type": "token", "http_header_key": "Authorization", "token": "hidden"}
    credential = eda.create("eda-credentials/", name="webhook", credential_type_id=kind, organization_id=organization, inputs=secret)
    assert eda("GET", f"eda-credentials/{credential}/")[1]["inputs"]["token"] == "$encrypted$"  # noqa: S105 - what is shown instead
    stream = eda.create("event-streams/", name="webhook", eda_credential_id=credential, organization_id=organization)
    assert eda("GET", f"event-streams/{stream}/")[1]["event_stream_type"] == "token"
    eda("POST", f"activations/{activation}/disable/")
    source = eda("GET", f"rulebooks/{platform.eda_objects('activations')[0]['rulebook_id']}/sources/")[1]["results"][0]
    mapping = {"source_name": source["name"], "rulebook_hash": source["rulebook_hash"], "event_stream_id": stream}
    stale = yaml.safe_dump([mapping | {"rulebook_hash": "0"}])
    assert eda("PATCH", f"activations/{activation}/", {"source_mappings": stale})[0] == 400
    changed = eda("PATCH", f"activations/{activation}/", {"source_mappings": yaml.safe_dump([mapping])})[1]
    assert changed["event_streams"] == [{"id": stream, "name": "webhook"}]
    assert eda("DELETE", f"event-streams/{stream}/")[0] == 409
    assert eda("DELETE", f"eda-credentials/{credential}/")[0] == 409


def test_names_are_unique_and_found_by_their_beginning(eda: Client) -> None:
    organization = found(eda, "organizations/", "Default")["id"]
    fields = {"image_url": "registry.example.com/de", "organization_id": organization}
    eda.create("decision-environments/", name="site", **fields)
    taken = eda("POST", "decision-environments/", {"name": "site"} | fields)
    assert taken == (400, {"name": ["decision environment with this name already exists."]})
    eda.create("decision-environments/", name="site-2", **fields)
    assert [item["name"] for item in eda("GET", "decision-environments/?name=SITE")[1]["results"]] == ["site", "site-2"]
    unknown = eda("POST", "decision-environments/", {"name": "x"} | fields | {"organization_id": 99})
    assert unknown == (400, {"organization_id": ["Organization with id 99 does not exist"]})


def test_the_gateway_alone_creates_organizations(platform: Platform, url: str) -> None:
    controller, gateway = (Client(url, platform.token(), f"/api/{part}/") for part in ("controller/v2", "gateway/v1"))
    assert controller("POST", "organizations/", {"name": "acme"})[0] == 403
    number = gateway.create("organizations/", name="acme")
    shown = controller("GET", f"organizations/{number}/")[1]
    assert shown["url"] == f"/api/controller/v2/organizations/{number}/"
    assert controller("GET", "/api/")[1]["apis"]["eda"] == "/api/eda/"


def test_tokens_are_issued_for_passwords_and_to_applications(platform: Platform, url: str) -> None:
    basic = urllib3.make_headers(basic_auth=f"{ADMIN}:{PASSWORD}") | {"Content-Type": "application/json"}
    pool = urllib3.PoolManager(retries=False)
    token = pool.request("POST", f"{url}/api/controller/v2/tokens/", body="{}", headers=basic).json()
    api = Client(url, token["token"], "/api/controller/v2/")
    number = api.create("applications/", name="cli", organization=1, client_type="confidential", authorization_grant_type="password")
    application = platform.objects("applications")[0]
    assert api("GET", f"applications/{number}/")[1]["client_id"] == application["client_id"]
    fields = {"grant_type": "password", "username": ADMIN, "password": PASSWORD}
    client = urllib3.make_headers(basic_auth=f"{application['client_id']}:{application['client_secret']}")
    granted = pool.request("POST", f"{url}/api/o/token/", fields=fields, headers=client, encode_multipart=False).json()
    assert Client(url, granted["access_token"], "/api/controller/v2/")("GET", "me/")[1]["results"][0]["username"] == ADMIN
    assert api("DELETE", f"tokens/{token['id']}/") == (204, None)
    assert api("GET", "me/")[0] == 401


def test_it_serves_by_tls(platform: Platform, tmp_path: Path) -> None:
    with platform.serving(tmp_path) as address:
        pool = urllib3.PoolManager(ca_certs=str(tmp_path / "ca.pem"), retries=False)
        assert pool.request("GET", f"{address}/api/gateway/v1/ping/").json()["status"] == "good"
