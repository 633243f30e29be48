# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""OpenShift Cluster Manager's REST API over one connection: tokens, pages, errors. It knows nothing of clusters.

GET, PATCH and DELETE do no harm twice; `RestSession` says what is sent again. A POST that the server may have processed is not: its
error is retryable, and the caller checks first whether it was.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from ...common.third_party import urllib3
from ...common.types import Object
from ...kube.errors import Conflict, Forbidden, Invalid, KubeError, NotFound, ServerError, TooManyRequests, Unauthorized
from ...kube.rest_session import RestSession

URL = "https://api.openshift.com"
TOKEN_URL = "https://sso.redhat.com/auth/realms/redhat-external/protocol/openid-connect/token"  # noqa: S105 - an address
CLIENT_ID = "cloud-services"
ROOT, ACCOUNTS_ROOT = "/api/clusters_mgmt/v1", "/api/accounts_mgmt/v1"
PAGE = 100
LOOPBACK = ("127.0.0.1", "::1", "localhost")
KINDS: Mapping[int, type[KubeError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: TooManyRequests,
}


@dataclass(frozen=True)
class Access:
    """Where OpenShift Cluster Manager is, and the offline token of who asks."""

    token: str = field(repr=False)
    url: str = URL
    token_url: str = TOKEN_URL
    client_id: str = CLIENT_ID

    def __post_init__(self) -> None:
        for name in ("url", "token_url"):
            parts = urlsplit(getattr(self, name))
            if not parts.hostname or parts.username or not (parts.scheme == "https" or parts.hostname in LOOPBACK):
                # Not repeated: a password may be in it.
                raise Invalid(f"{name} is not an address of OpenShift Cluster Manager: set one like {URL}, with https.", [name])


class OcmApi:
    """A connection as one account. `requests` counts what was sent."""

    def __init__(self, access: Access, timeout: urllib3.Timeout | None = None) -> None:
        self.access = access
        self._session = RestSession(timeout)
        self._token = ""
        self._token_ends = 0.0
        self._account = ""
        self.hide([access.token])

    @property
    def requests(self) -> int:
        return self._session.requests

    def hide(self, secrets: Iterable[str]) -> None:
        """Values that no error may repeat, wherever the server puts them."""
        self._session.hide(secrets)

    # What can be asked

    def account(self) -> str:
        """The id of the account that the token belongs to. It is read once."""
        if not self._account:
            what = "get the account of the token"
            self._account = str(self._json("GET", "current_account", what, root=ACCOUNTS_ROOT).get("id") or "")
            if not self._account:
                raise ServerError(f"{what}: {self.access.url} answers without its id; check url.")
        return self._account

    def get(self, path: str, what: str) -> Object:
        return self._json("GET", path, what)

    def find(self, path: str, what: str) -> Object | None:
        """The object, or None where it is not there."""
        try:
            return self.get(path, what)
        except NotFound:
            return None

    def list_all(self, path: str, what: str, search: str = "") -> list[Object]:
        """All objects of a collection, page by page."""
        items: list[Object] = []
        page = 1
        while True:
            answer = self._json("GET", path, what, {"page": str(page), "size": str(PAGE), "search": search})
            new = answer.get("items") or []
            items += new
            if not new or len(items) >= int(answer.get("total") or 0):
                return items
            page += 1

    def post(self, path: str, what: str, body: Object, *, dry_run: bool = False) -> Object:
        return self._json("POST", path, what, {"dryRun": "true" if dry_run else ""}, body)

    def patch(self, path: str, what: str, body: Object) -> Object:
        return self._json("PATCH", path, what, body=body)

    def delete(self, path: str, what: str, *, dry_run: bool = False) -> bool:
        """Ask for the deletion; False where it was gone already."""
        try:
            self._json("DELETE", path, what, {"dry_run": "true" if dry_run else ""})
        except NotFound:
            return False
        return True

    # How it is sent

    def _json(
        self,
        method: str,
        path: str,
        what: str,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        root: str = ROOT,
    ) -> Object:
        given = {name: value for name, value in (query or {}).items() if value}
        url = f"{self.access.url.rstrip('/')}{root}/{path}{'?' if given else ''}{urlencode(given)}"
        data = json.dumps(body).encode() if body is not None else None
        renewed = False
        while True:
            headers = {"Authorization": f"Bearer {self._access_token()}", "Content-Type": "application/json"}
            response = self._session.exchange(method, url, what, data, headers, repeatable=method != "POST")
            if response.status == 401 and not renewed:
                # The token may have been withdrawn before its time; a new one is refused for a reason.
                self._token, renewed = "", True
                continue
            if response.status >= 300:
                raise self._failure(response, what)
            return self._object(response, what, url)

    def _access_token(self) -> str:
        """A token for the API, from the offline token; a new one shortly before it expires."""
        if not self._token or time.monotonic() > self._token_ends:
            what = "get an access token"
            form = {"grant_type": "refresh_token", "client_id": self.access.client_id, "refresh_token": self.access.token}
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            response = self._session.exchange("POST", self.access.token_url, what, urlencode(form).encode(), headers, repeatable=True)
            if response.status in (400, 401):
                raise Unauthorized(
                    f"{what}: {self.access.token_url} does not accept the offline token ({self._said(response)}); "
                    "load a new one from console.redhat.com/openshift/token."
                )
            if response.status >= 300:
                raise self._failure(response, what)
            answer = self._object(response, what, self.access.token_url)
            if not answer.get("access_token"):
                raise ServerError(f"{what}: {self.access.token_url} answers without one; check token_url.")
            self._token = str(answer["access_token"])
            lifetime = float(answer.get("expires_in") or 60)
            self._token_ends = time.monotonic() + lifetime - min(30, lifetime / 2)
            self.hide([self._token])
        return self._token

    def _object(self, response: urllib3.BaseHTTPResponse, what: str, url: str) -> Object:
        """What an answer holds; nothing is an empty object."""
        if not response.data:
            return {}
        answer = _parsed(response)
        if not isinstance(answer, dict):
            raise ServerError(f"{what}: what {url.partition('?')[0]} answers is not from OpenShift Cluster Manager; check the address.")
        return answer

    def _failure(self, response: urllib3.BaseHTTPResponse, what: str) -> KubeError:
        """The error for an answer, with the id under which Red Hat's support finds the request."""
        status, text = response.status, f"{what}: {self._said(response)}"
        if status in (400, 422):
            return Invalid(text, [])
        advice = {
            401: "; the token is not accepted, load a new one from console.redhat.com/openshift/token",
            403: "; the account of the token needs the permission, or the organization the quota",
            429: "; the service limits requests: try again later",
        }
        kind = KINDS.get(status, ServerError if status >= 500 else KubeError)
        return kind(text + advice.get(status, ""))

    def _said(self, response: urllib3.BaseHTTPResponse) -> str:
        body = _parsed(response)
        answer: Mapping[str, Any] = body if isinstance(body, dict) else {}
        # The SSO service has `error` and `error_description`, the API `reason` and `code`.
        reason = answer.get("reason") or answer.get("error_description") or answer.get("error") or ""
        if isinstance(body, str) and "<" not in body:
            reason = body
        request = answer.get("operation_id") or response.headers.get("X-Operation-Id") or ""
        named = ", ".join(filter(None, [str(answer.get("code") or f"HTTP status {response.status}"), request and f"request {request}"]))
        text = f"{' '.join(str(reason).split())[:1000].rstrip('.')} ({named})" if reason else named
        return self._session.without_secrets(text)


def segment(name: str) -> str:
    """The name as a part of an address; never one that would make it the address of something else."""
    if name in ("", ".", ".."):
        raise Invalid(f"{name!r} cannot be a name in OpenShift Cluster Manager.", ["name"])
    return quote(name, safe="")


def _parsed(response: urllib3.BaseHTTPResponse) -> Any:
    text = response.data.decode(errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text[:500]
