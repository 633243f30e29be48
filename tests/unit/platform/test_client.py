"""The client of Automation Platform: where the API is, credentials, pages, and what an error says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.faults import Fault
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import ADMIN, PASSWORD, Platform
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import rest_session
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import (
    AnswerLost,
    BadCredentials,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.client import PAGE, Access, PlatformApi
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.errors import DeadlineExceeded

SECONDS = 300.0
WRONG = "wrong-password"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_session, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(rest_session, "LONGEST_WAIT", 0.001)


@pytest.fixture(params=["awx", "gateway"])
def platform(request: pytest.FixtureRequest) -> Platform:
    return Platform(gateway=request.param == "gateway")


@pytest.fixture
def url(platform: Platform) -> Iterator[str]:
    with platform.serving() as address:
        yield address


def names(api: PlatformApi) -> list[str]:
    return [found["name"] for found in api.list_all("controller", "organizations", "list organizations")]


def test_password_is_enough(url: str) -> None:
    assert names(PlatformApi(Access(url, username=ADMIN, password=PASSWORD), SECONDS)) == ["Default"]


def test_oauth_application_gives_a_token_once(platform: Platform, url: str) -> None:
    store = platform.controller_store
    organization = store.named("organizations", name="Default")["id"]
    fields = {"name": "fleet", "organization": organization, "client_type": "confidential", "authorization_grant_type": "password"}
    store.create(store.kinds["applications"], fields, {"client_id": "fleet-id", "client_secret": "fleet-secret"})
    api = PlatformApi(Access(url, "", ADMIN, PASSWORD, "fleet-id", "fleet-secret"), SECONDS)
    assert names(api) == names(api) == ["Default"]
    assert len([request for request in platform.requests if request.path.endswith("/o/token/")]) <= 2
    wrong = PlatformApi(Access(url, "", ADMIN, WRONG, "fleet-id", "fleet-secret"), SECONDS)
    with pytest.raises(Unauthorized, match="check aap_username, aap_password, aap_oauth_client_id") as caught:
        names(wrong)
    assert WRONG not in str(caught.value)


def test_wrong_password_is_reported(url: str) -> None:
    with pytest.raises(Unauthorized, match="does not accept aap_username and aap_password"):
        names(PlatformApi(Access(url, username=ADMIN, password=WRONG), SECONDS))


@pytest.mark.parametrize(
    ("access", "message"),
    [
        ({"url": "aap.example.com", "token": "t"}, "aap_hostname is not an address"),
        ({"url": "https://me:hush@aap.example.com", "token": "t"}, "aap_hostname is not an address"),
        ({"url": "https://aap.example.com"}, "set aap_token, or aap_username and aap_password"),
        ({"url": "https://aap.example.com", "username": "me"}, "set aap_token, or aap_username and aap_password"),
    ],
)
def test_incomplete_access_is_refused(access: dict[str, str], message: str) -> None:
    with pytest.raises(BadCredentials, match=message) as caught:
        Access(**access)  # type: ignore[arg-type]
    assert "hush" not in str(caught.value)


def test_secrets_are_not_in_the_representation() -> None:
    assert "hush" not in repr(Access("https://aap.example.com", "hush", "me", "hush", "id", "hush"))


def test_all_pages_are_read(platform: Platform, url: str) -> None:
    store = platform.controller_store
    organization = store.named("organizations", name="Default")["id"]
    for number in range(PAGE + 5):
        store.create(store.kinds["inventories"], {"name": f"inventory-{number}", "organization": organization})
    found = PlatformApi(Access(url, platform.token()), SECONDS).list_all("controller", "inventories", "list inventories")
    assert len({each["id"] for each in found}) == PAGE + 5


def test_address_without_a_controller_is_reported(platform: Platform, url: str) -> None:
    platform.faults += [Fault("502", path="never")]
    api = PlatformApi(Access(f"{url}/elsewhere", platform.token()), SECONDS)
    with pytest.raises(NotFound, match="set aap_hostname to the address of the gateway of AAP or of AWX"):
        names(api)


def test_run_ends_at_its_deadline(platform: Platform, url: str) -> None:
    api = PlatformApi(Access(url, platform.token()), 0.0)
    with pytest.raises(DeadlineExceeded, match="with a larger deadline"):
        names(api)
    assert platform.requests == []


def test_certificate_is_verified(platform: Platform, tmp_path: Path) -> None:
    with platform.serving(tmp_path) as address:
        with pytest.raises(Unreachable):
            names(PlatformApi(Access(address, platform.token()), SECONDS))
        assert names(PlatformApi(Access(address, platform.token(), ca_cert=str(tmp_path / "ca.pem")), SECONDS)) == ["Default"]
        assert names(PlatformApi(Access(address, platform.token(), verify=False), SECONDS)) == ["Default"]
    with pytest.raises(BadCredentials, match="aap_ca_cert cannot be read"):
        PlatformApi(Access("https://aap.example.com", "t", ca_cert=str(tmp_path / "missing.pem")), SECONDS)


def test_platform_that_stays_busy_is_reported(platform: Platform, url: str) -> None:
    platform.faults.append(Fault("429", times=10))
    with pytest.raises(TooManyRequests, match="the platform is overloaded: try again later"):
        names(PlatformApi(Access(url, platform.token()), SECONDS))


def test_lost_answer_of_a_post_is_distinguished_from_a_refusal(platform: Platform, url: str) -> None:
    api = PlatformApi(Access(url, platform.token()), SECONDS)
    names(api)
    platform.faults.append(Fault("lost", "POST"))
    with pytest.raises(AnswerLost):
        api.post("controller", "labels", "create a label", {"name": "a", "organization": 1})
