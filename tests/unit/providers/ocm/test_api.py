"""The client of OpenShift Cluster Manager: what is sent, when again, and what an error says. The answers are written here."""

from __future__ import annotations

import io
import json
import time
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import rest_session
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import (
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm import api as ocm_api
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm.api import Access, OcmApi, segment

from ....hostile_server import HARM, HEAD, flood, serving

TIMEOUT_SECONDS = 20.0
TOKEN = {"access_token": "access-1", "expires_in": 900}


class Service:
    """Takes the place of the network: gives the answers one after the other, and keeps what was asked for."""

    def __init__(self, *answers: tuple[int, Any] | tuple[int, Any, dict[str, str]]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    def request(self, method: str, url: str, **options: Any) -> urllib3.HTTPResponse:
        self.asked.append((method, url, options))
        status, body, *headers = self.answers.pop(0)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return urllib3.HTTPResponse(io.BytesIO(data), headers=headers[0] if headers else {}, status=status, preload_content=True)

    @property
    def tokens(self) -> list[str]:
        return [options["headers"].get("Authorization", "") for _method, _url, options in self.asked]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=1000.0, slept=[])
    for module in (ocm_api, rest_session):
        monkeypatch.setattr(module, "time", SimpleNamespace(sleep=clock.slept.append, monotonic=lambda: clock.now))
    return clock


def api(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> tuple[OcmApi, Service]:
    service, client = Service(*answers), OcmApi(Access("offline-token"))
    monkeypatch.setattr(client._session, "pool", service)  # noqa: SLF001 - the network
    return client, service


def test_token_is_fetched_once_and_again_shortly_before_it_expires(monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace) -> None:
    client, service = api(monkeypatch, (200, TOKEN), (200, {}), (200, {}), (200, {**TOKEN, "access_token": "access-2"}), (200, {}))
    client.get("a", "ask")
    clock.now += 800
    client.get("a", "ask")
    clock.now += 80
    client.get("a", "ask")
    assert service.tokens == ["", "Bearer access-1", "Bearer access-1", "", "Bearer access-2"]
    assert b"grant_type=refresh_token&client_id=cloud-services&refresh_token=offline-token" in service.asked[0][2]["body"]


@pytest.mark.parametrize(
    ("status", "kind", "retryable", "advice"),
    [
        (400, Invalid, False, ""),
        (401, Unauthorized, False, "; the token is not accepted, load a new one from console.redhat.com/openshift/token"),
        (403, Forbidden, False, "; the account of the token needs the permission, or the organization the quota"),
        (404, NotFound, False, ""),
        (409, Conflict, True, ""),
        (418, KubeError, False, ""),
        (422, Invalid, False, ""),
        (429, TooManyRequests, True, "; the service limits requests: try again later"),
        (500, ServerError, True, ""),
        (302, KubeError, False, ""),
    ],
)
@pytest.mark.usefixtures("clock")
def test_error_says_what_was_tried_why_and_under_which_id(
    status: int, kind: type[KubeError], retryable: bool, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"reason": "No  way.", "code": "CLUSTERS-MGMT-7", "operation_id": "op-1"}
    renewal = [(200, TOKEN), (401, body)] if status == 401 else []
    client, _service = api(monkeypatch, (200, TOKEN), (status, body), *renewal, *[(status, body)] * 3)
    with pytest.raises(KubeError) as caught:
        client.post("a", "make it", {})
    assert caught.type is kind
    assert caught.value.retryable is retryable
    assert str(caught.value) == f"make it: No way (CLUSTERS-MGMT-7, request op-1){advice}"


@pytest.mark.parametrize(
    ("body", "headers", "text"),
    [
        (b"<html>Bad gateway</html>", {}, "make it: HTTP status 500"),
        (b"upstream timed out", {}, "make it: upstream timed out (HTTP status 500)"),
        (b"", {"X-Operation-Id": "op-2"}, "make it: HTTP status 500, request op-2"),
        ([1], {}, "make it: HTTP status 500"),
        ({"reason": "the key s3cr3t-key and offline-token and access-1"}, {}, "the key (hidden) and (hidden) and (hidden)"),
        ({"reason": "first line of a key"}, {}, "make it: (hidden) (HTTP status 500)"),
    ],
)
@pytest.mark.usefixtures("clock")
def test_odd_answers_become_sentences_without_secrets(
    body: Any, headers: dict[str, str], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, _service = api(monkeypatch, (200, TOKEN), (500, body, headers))
    client.hide(["s3cr3t-key", "first line of a key\nsecond line"])
    with pytest.raises(ServerError) as caught:
        client.post("a", "make it", {})
    assert text in str(caught.value)


@pytest.mark.parametrize("answer", [b"<html>Welcome!</html>", ["x"], 3])
def test_answer_that_is_none_of_the_service_is_an_error(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client, _service = api(monkeypatch, (200, TOKEN), (200, answer))
    with pytest.raises(ServerError, match="is not from OpenShift Cluster Manager; check the address"):
        client.get("a", "ask")
    client, _service = api(monkeypatch, (200, answer))
    with pytest.raises(ServerError, match="is not from OpenShift Cluster Manager; check the address"):
        client.get("a", "ask")


def test_token_endpoint_that_gives_none_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    client, _service = api(monkeypatch, (200, {"welcome": True}))
    with pytest.raises(ServerError, match="answers without one; check token_url"):
        client.get("a", "ask")


@pytest.mark.parametrize(("asked", "waited"), [("7", 7.0), ("0", 0.25), ("86400", 30.0), ("-1", 0.25), ("soon", 0.25), ("", 0.25)])
def test_retry_after_is_kept_within_reason(asked: str, waited: float, monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace) -> None:
    client, _service = api(monkeypatch, (200, TOKEN), (429, {}, {"Retry-After": asked}), (201, {"id": "1"}))
    assert client.post("a", "make it", {}) == {"id": "1"}
    assert clock.slept == [waited]


@pytest.mark.parametrize(("method", "sent"), [("get", 4), ("patch", 4), ("delete", 4), ("post", 1)])
def test_only_what_does_no_harm_twice_is_sent_again(
    method: str, sent: int, monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace
) -> None:
    client, service = api(monkeypatch, (200, TOKEN), *[(500, {})] * 9)
    with pytest.raises(ServerError):
        getattr(client, method)("a", "ask", *([{}] if method in ("patch", "post") else []))
    assert len(service.asked) == 1 + sent
    assert clock.slept == [0.25, 0.5, 1.0][: sent - 1]


def test_all_pages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    first = {"items": [{"id": str(number)} for number in range(100)], "total": 101}
    client, service = api(monkeypatch, (200, TOKEN), (200, first), (200, {"items": [{"id": "100"}], "total": 101}))
    assert len(client.list_all("clusters", "list", "name = 'a b'")) == 101
    assert [url.partition("?")[2] for _method, url, _options in service.asked[1:]] == [
        "page=1&size=100&search=name+%3D+%27a+b%27",
        "page=2&size=100&search=name+%3D+%27a+b%27",
    ]


def test_deletion_of_what_is_gone_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    client, _service = api(monkeypatch, (200, TOKEN), (404, {}), (204, b""))
    assert client.delete("a", "delete") is False
    assert client.delete("a", "delete") is True


@pytest.mark.parametrize(
    "url",
    ["", "api.openshift.com", "ftp://api.openshift.com", "http://api.openshift.com", "https://me:s3cr3t@api.openshift.com", "https://"],
)
@pytest.mark.parametrize("name", ["url", "token_url"])
def test_token_goes_only_to_an_address_that_can_be_trusted(name: str, url: str) -> None:
    with pytest.raises(Invalid, match=f"^{name} is not an address") as caught:
        Access("t", **{name: url})
    assert "s3cr3t" not in str(caught.value)


def test_token_is_not_in_the_representation() -> None:
    assert "hush" not in repr(Access("hush"))


@pytest.mark.parametrize(("name", "wanted"), [("a b/c?d", "a%20b%2Fc%3Fd"), ("x", "x")])
def test_name_stays_one_part_of_an_address(name: str, wanted: str) -> None:
    assert segment(name) == wanted


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(Invalid):
        segment(name)


# A service that hangs


@pytest.mark.parametrize("harm", HARM)
def test_every_request_ends_in_time_whatever_the_service_sends(harm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its retries: there is no time for a second one."""
    monkeypatch.setattr(rest_session, "REQUEST_SECONDS", 0.2)
    with serving(HARM[harm]) as address:
        api = OcmApi(Access("offline", f"http://{address}", f"http://{address}/token"), urllib3.Timeout(connect=0.3, read=0.3))
        began = time.monotonic()
        with pytest.raises(Unreachable, match="does not answer"):
            api.get("clusters/a", "get the cluster")
        assert time.monotonic() - began < TIMEOUT_SECONDS
        assert api.requests == 1


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_session, "RESPONSE_BYTES", 100_000)
    monkeypatch.setattr(rest_session, "FIRST_WAIT", 0.001)
    with serving(flood(HEAD + b"\r\n")) as address, pytest.raises(Unreachable, match="more than 100,000 bytes"):
        OcmApi(Access("offline", f"http://{address}", f"http://{address}/token")).get("clusters/a", "get the cluster")
