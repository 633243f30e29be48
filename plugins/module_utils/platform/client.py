# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The REST API of Automation Platform: where it is, credentials, pages, errors. It knows no kinds and no document.

`/api/controller/v2` is the controller behind the gateway of AAP, `/api/v2` the one of AWX; EDA is at `/api/eda/v1`. A POST whose
answer was lost raises AnswerLost: the caller looks up what it was to create. Safe to use from several threads at once.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from ..common.third_party import MISSING, urllib3
from ..common.types import Object
from ..kube.errors import (
    AnswerLost,
    BadCredentials,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
)
from ..kube.rest_session import RestSession
from ..kube.transport import CONNECT_SECONDS
from .errors import DeadlineExceeded
from .model import Api

Item = TypeVar("Item")
Result = TypeVar("Result")

PAGE = 200  # the most that the controller and EDA put on one page
CONNECTIONS = 4
CONTROLLER_ROOTS = ("/api/controller/v2", "/api/v2")
EDA_ROOT, GATEWAY_ROOT = "/api/eda/v1", "/api/gateway/v1"
TEXT = 1000  # characters of an answer that an error repeats
LOST = (502, 503, 504)


@dataclass(frozen=True)
class Access:
    """Where the platform is, and the credentials: a token, or a user, or a user and an OAuth application."""

    url: str
    token: str = field(default="", repr=False)
    username: str = ""
    password: str = field(default="", repr=False)
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    verify: bool = True
    ca_cert: str = ""
    timeout: float = 30.0  # for one response

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            # Not repeated: a password may be in it.
            raise BadCredentials("aap_hostname is not an address; it looks like https://aap.example.com.")
        if not self.token and not (self.username and self.password):
            raise BadCredentials("There are no credentials: set aap_token, or aap_username and aap_password.")

    def ssl_context(self) -> ssl.SSLContext | None:
        if not self.url.startswith("https://"):
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_cert or None)
        except (OSError, ssl.SSLError) as error:
            raise BadCredentials(f"aap_ca_cert cannot be read: {error}.") from error
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        return context


class PlatformApi:
    """The platform as one account, for `seconds` in all. `requests` counts what was sent."""

    def __init__(self, access: Access, seconds: float) -> None:
        if MISSING:
            raise BadCredentials(
                f"The Python library {MISSING} is missing where Ansible runs: install what requirements.txt of the collection names."
            )
        self.access = access
        self._seconds = seconds
        self._ends = time.monotonic() + seconds
        self._session = RestSession(
            urllib3.Timeout(connect=CONNECT_SECONDS, read=access.timeout), connections=CONNECTIONS, ssl_context=access.ssl_context()
        )
        self._session.hide([access.token, access.password, access.client_secret])
        self._lock = threading.Lock()
        self._controller_root = ""
        self._granted = ""  # the token of the OAuth application

    @property
    def requests(self) -> int:
        return self._session.requests

    @property
    def behind_gateway(self) -> bool:
        """Whether the controller is the one of a gateway. Known after the first request to it."""
        return self._controller_root == CONTROLLER_ROOTS[0]

    def hide(self, secrets: Iterable[str]) -> None:
        """Values that no error may repeat."""
        self._session.hide(secrets)

    def seconds_left(self) -> float:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded(f"The run took longer than {self._seconds:g} s: run it again, or with a larger deadline.")
        return left

    # What can be asked

    def list_all(self, api: Api, path: str, what: str, query: Mapping[str, Any] | None = None) -> list[Object]:
        """All objects of a collection, page by page."""
        asked: dict[str, Any] = {**(query or {}), "page_size": PAGE}
        if api == "controller":
            asked["order_by"] = "id"  # else a page may repeat or miss what changes meanwhile
        found: list[Object] = []
        page = 1
        while True:
            answer = self.request(api, "GET", f"{path}/", what, query=asked | ({"page": page} if page > 1 else {}))
            results = answer.get("results") if isinstance(answer, dict) else None
            if not isinstance(results, list):
                raise ServerError(f"{what}: {self.access.url} does not answer with a list; check aap_hostname.")
            found += results
            if not answer.get("next"):
                return found
            page += 1

    def get(self, api: Api, path: str, what: str) -> Object:
        answer = self.request(api, "GET", f"{path}/", what)
        return answer if isinstance(answer, dict) else {}

    def post(self, api: Api, path: str, what: str, body: Object, *, repeatable: bool = False) -> Object:
        """Create or do something. AnswerLost if that may have been done, unless it does no harm twice (`repeatable`)."""
        answer = self.request(api, "POST", f"{path}/", what, body=body, repeatable=repeatable)
        return answer if isinstance(answer, dict) else {}

    def patch(self, api: Api, path: str, what: str, body: Object) -> Object:
        answer = self.request(api, "PATCH", f"{path}/", what, body=body)
        return answer if isinstance(answer, dict) else {}

    def delete(self, api: Api, path: str, what: str) -> bool:
        """Delete an object; False where it was gone already."""
        try:
            self.request(api, "DELETE", f"{path}/", what)
        except NotFound:
            return False
        return True

    def may_create(self, api: Api, path: str, what: str) -> bool:
        """Whether the account may create objects of a collection, as far as the API says so."""
        actions = self.request(api, "OPTIONS", f"{path}/", what).get("actions")
        return not isinstance(actions, dict) or "POST" in actions

    def gateway(self, method: str, path: str, what: str, body: Object | None = None, query: Mapping[str, Any] | None = None) -> Any:
        """A request to the gateway itself, which owns the organizations of its controller and of its EDA."""
        return self._json(method, f"{GATEWAY_ROOT}/{path}/", what, query, body, repeatable=method != "POST")

    def in_parallel(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result | KubeError]:
        """Call `work` for each item, at most four at a time; the error of one is its result."""

        def attempt(item: Item) -> Result | KubeError:
            try:
                return work(item)
            except KubeError as error:
                return error

        with ThreadPoolExecutor(CONNECTIONS) as threads:
            return list(threads.map(attempt, items))

    # How it is sent

    def request(
        self,
        api: Api,
        method: str,
        path: str,
        what: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Object | None = None,
        repeatable: bool | None = None,
    ) -> Any:
        again = method != "POST" if repeatable is None else repeatable
        if api == "eda":
            return self._json(method, f"{EDA_ROOT}/{path}", what, query, body, repeatable=again)
        if not self._controller_root:
            with self._lock:
                if not self._controller_root:
                    return self._first(method, path, what, query, body, repeatable=again)
        return self._json(method, f"{self._controller_root}/{path}", what, query, body, repeatable=again)

    def _first(self, method: str, path: str, what: str, query: Mapping[str, Any] | None, body: Object | None, *, repeatable: bool) -> Any:
        """The first request to the controller also finds where it is."""
        for root in CONTROLLER_ROOTS:
            try:
                answer = self._json(method, f"{root}/{path}", what, query, body, repeatable=repeatable)
            except NotFound:
                continue
            self._controller_root = root
            return answer
        raise NotFound(
            f"{what}: {self.access.url} has no controller at {' or '.join(CONTROLLER_ROOTS)}; set aap_hostname to the address of the "
            "gateway of AAP or of AWX."
        )

    def _json(self, method: str, path: str, what: str, query: Mapping[str, Any] | None, body: Object | None, *, repeatable: bool) -> Any:
        url = f"{self.access.url.rstrip('/')}{path}{'?' if query else ''}{urlencode(query or {})}"
        headers = {"Authorization": self._authorization(path), "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        response = self._session.exchange(method, url, what, data, headers, repeatable=repeatable, seconds=self.seconds_left())
        if response.status >= 300:
            raise self._failure(response, what, repeatable=repeatable)
        if not response.data:
            return {}
        try:
            return json.loads(response.data)
        except (ValueError, RecursionError):
            raise ServerError(f"{what}: what {self.access.url} answers is not from Automation Platform; check aap_hostname.") from None

    def _authorization(self, path: str) -> str:
        access = self.access
        if access.token:
            return f"Bearer {access.token}"
        if access.client_id:
            return f"Bearer {self._oauth_token(path)}"
        return _basic(access.username, access.password)

    def _oauth_token(self, path: str) -> str:
        """A token of the OAuth application, from the user's password; fetched once."""
        if not self._granted:
            access, what = self.access, "get a token of the OAuth application"
            form = {"grant_type": "password", "username": access.username, "password": access.password, "scope": "write"}
            # The gateway has its own address for it. Which one is there is known after the first request only, so both
            # are tried.
            for endpoint in ("/o/token/", "/api/o/token/") if path.startswith(CONTROLLER_ROOTS[0]) else ("/api/o/token/", "/o/token/"):
                headers = {
                    "Authorization": _basic(access.client_id, access.client_secret),
                    "Content-Type": "application/x-www-form-urlencoded",
                }
                response = self._session.exchange(
                    "POST",
                    access.url.rstrip("/") + endpoint,
                    what,
                    urlencode(form).encode(),
                    headers,
                    repeatable=True,
                    seconds=self.seconds_left(),
                )
                if response.status != 404:
                    break
            if response.status >= 300:
                raise Unauthorized(
                    f"{what}: {self._said(response)}; check aap_username, aap_password, aap_oauth_client_id and aap_oauth_client_secret, "
                    "and that the application has the grant type password."
                )
            self._granted = str(json.loads(response.data).get("access_token") or "")
            self._session.hide([self._granted])
        return self._granted

    def _failure(self, response: urllib3.BaseHTTPResponse, what: str, *, repeatable: bool) -> KubeError:
        status, said = response.status, self._said(response)
        if status in LOST and not repeatable:
            return AnswerLost(f"{what}: {said}; the platform may have done it all the same, so run it again.")
        if status in (400, 422):
            return Invalid(f"{what}: {said}.", [])
        errors: dict[int, tuple[type[KubeError], str]] = {
            401: (Unauthorized, f"; the platform does not accept {self._credentials()}: create a new one and set it"),
            402: (Forbidden, "; the controller has no valid subscription: add a licence under Settings > Subscription"),
            403: (Forbidden, "; the account lacks the permission, or its token has the scope read: use one with the scope write"),
            404: (NotFound, ""),
            409: (Conflict, ""),
            429: (TooManyRequests, "; the platform is overloaded: try again later"),
        }
        kind, advice = errors.get(status, (ServerError if status >= 500 else KubeError, ""))
        return kind(f"{what}: {said}{advice}.")

    def _credentials(self) -> str:
        return "aap_token" if self.access.token else "aap_username and aap_password"

    def _said(self, response: urllib3.BaseHTTPResponse) -> str:
        """What an answer says, in one line and without secrets."""
        text = response.data.decode(errors="replace")
        try:
            text = "; ".join(_sentences(json.loads(text)))
        except (ValueError, RecursionError):
            text = "" if "<" in text else text
        text = " ".join(text.split())[:TEXT].rstrip(".")
        return self._session.without_secrets(f"{text} (HTTP status {response.status})" if text else f"HTTP status {response.status}")


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _sentences(body: Any, name: str = "") -> Iterable[str]:
    """What a Django application answers: texts, lists of them, and both by field."""
    if isinstance(body, dict):
        for key, value in body.items():
            yield from _sentences(value, "" if key in ("detail", "__all__", "Error", "error", "errors", "non_field_errors") else str(key))
    elif isinstance(body, list):
        for value in body:
            yield from _sentences(value, name)
    elif body not in (None, ""):
        yield f"{name}: {body}" if name else str(body)
