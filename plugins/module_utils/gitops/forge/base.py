# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What proposals need of a forge, and the requests that all kinds of forges share. The token is in a header and in no message."""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from ..bounded_http import Answer, BoundedHttp, HttpFailed

REQUEST_SECONDS = 20.0
MAX_ANSWER = 8 * 1024 * 1024
MAX_PAGES = 50


class ForgeError(Exception):
    """The forge refuses a request, or does not answer. The message says what to do."""

    retryable = False


class ForgeUnavailable(ForgeError):
    """The same request may succeed later."""

    retryable = True


@dataclass(frozen=True)
class File:
    """A file on a branch. `revision` is what the forge wants to know when the file is changed."""

    content: str
    revision: str


@dataclass(frozen=True)
class PullRequest:
    """An open pull request, or merge request."""

    number: int
    url: str


@dataclass(frozen=True)
class Credentials:
    """How to reach a forge. `ca` has further certificates in PEM."""

    url: str
    repository: str
    token: str
    ca: str = ""
    verify: bool = True

    def __repr__(self) -> str:
        return f"Credentials(url={self.url!r}, repository={self.repository!r})"


class Forge(ABC):
    """One repository on a forge. Every call may be repeated: what exists already is no error."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        try:
            self._http = BoundedHttp(credentials.ca, credentials.verify)
        except HttpFailed as error:
            raise ForgeError(f"The forge cannot be used: {error}.") from None

    @abstractmethod
    def files(self, path: str, ref: str) -> list[str]:
        """The paths of all files below a folder; none where there is no such folder."""

    @abstractmethod
    def file(self, path: str, ref: str) -> File | None: ...

    @abstractmethod
    def create_branch(self, name: str, base: str) -> None: ...

    @abstractmethod
    def write(self, path: str, content: str | None, before: File | None, branch: str, message: str) -> None:
        """Commit one file to a branch; without content it is deleted."""

    @abstractmethod
    def find_pull_request(self, head: str, base: str) -> PullRequest | None: ...

    @abstractmethod
    def open_pull_request(self, head: str, base: str, title: str, body: str) -> PullRequest | None:
        """Open a pull request; None where there is one already."""

    # For subclasses

    @property
    @abstractmethod
    def _root(self) -> str:
        """The address of the API."""

    @property
    @abstractmethod
    def _login(self) -> Mapping[str, str]:
        """The headers with the token."""

    def _call(
        self, method: str, path: str, body: Any = None, allowed: tuple[int, ...] = (), query: Mapping[str, Any] | None = None
    ) -> Answer:
        """The answer of a success, or of a status in `allowed`; any other is an error."""
        url = f"{self._root}{path}" + (f"?{urlencode(query)}" if query else "")
        content = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", **self._login} | ({"Content-Type": "application/json"} if content else {})
        try:
            answer = self._http.request(method, url, MAX_ANSWER, REQUEST_SECONDS, headers, content)
        except HttpFailed as error:
            raise ForgeUnavailable(f"The forge cannot be used: {error}; check its address and the network.") from None
        if answer.status // 100 == 2 or answer.status in allowed:
            return answer
        raise self._refused(answer)

    def _refused(self, answer: Answer) -> ForgeError:
        name, status = self._credentials.repository, answer.status
        if status == 401:
            return ForgeError(f"{self._credentials.url} refuses the token: give one that is valid.")
        if status == 403:
            return ForgeError(f"The token may not do this in {name}: give it the permission to write files and pull requests.")
        if status == 404:
            return ForgeError(f"{self._credentials.url} has no repository {name} or no such branch, or the token may not see it.")
        if status in (409, 412):
            return ForgeUnavailable(f"{name} was changed at the same time: run the task again.")
        if status == 429:
            wait = answer.headers.get("retry-after", "")
            when = f"in {wait} seconds" if wait.isdigit() else "later"
            return ForgeUnavailable(f"{self._credentials.url} has too many requests: try again {when}.")
        if 300 <= status < 400:
            return ForgeError(f"{name} has moved: use its new address.")
        kind = ForgeUnavailable if status >= 500 else ForgeError
        return kind(f"{self._credentials.url} answers {status} to a request for {name}.")


def decoded(answer: Answer) -> Any:
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        raise ForgeError("The forge does not answer with JSON: check its address.") from None


def text_of(content: Any) -> str:
    """The text in an answer, which is in Base64."""
    try:
        return base64.b64decode(str(content)).decode()
    except ValueError:
        raise ForgeError("A file of the repository is not text.") from None


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def quoted(text: str) -> str:
    """As one segment of a path."""
    return quote(text, safe="")
