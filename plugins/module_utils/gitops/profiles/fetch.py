# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""GET requests to one repository of charts, confined to the hosts that the site names for it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from urllib.parse import urljoin, urlsplit

from ...infrastructure.profile_offer import ChartRepository
from ..bounded_http import Answer, AnswerTooLarge, BoundedHttp, HttpFailed, shown
from .errors import RepositoryFailed

TOTAL_SECONDS = 30.0  # of all requests for one order
REQUEST_SECONDS = 10.0
REDIRECTS = 5
REDIRECT_STATUS = (301, 302, 303, 307, 308)
PORTS = {"https": 443, "http": 80}


class Deadline:
    """The moment at which all requests for one order end."""

    def __init__(self, seconds: float = TOTAL_SECONDS) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self._end - time.monotonic()


class Fetcher:
    """Fetches from one repository. It follows redirects to known hosts only, and keeps no cookie and no credential.

    Once the repository has not answered, all later requests fail at once: the other orders of a run need not wait for it too.
    """

    def __init__(self, repository: ChartRepository) -> None:
        self._repository = repository
        self._silent: RepositoryFailed | None = None
        scheme = "http" if repository.insecure else "https"
        self.base = repository.url.replace("oci://", f"{scheme}://", 1)
        self._schemes = ("https", "http") if repository.insecure else ("https",)
        self._hosts = {_host(self.base), *(host if ":" in host else f"{host}:{PORTS[scheme]}" for host in repository.hosts)}
        try:
            self._http = BoundedHttp(repository.ca)
        except HttpFailed as error:
            raise self.failed(str(error)) from None

    def failed(self, problem: str) -> RepositoryFailed:
        return RepositoryFailed(self._repository.name, problem)

    def get(self, url: str, limit: int, deadline: Deadline, headers: Mapping[str, str] | None = None) -> Answer:
        """The answer of 200, 401 or 404; any other, a longer one or none is an error."""
        sent = dict(headers or {})
        for _redirect in range(REDIRECTS + 1):
            answer = self._get(url, limit, deadline, sent)
            if answer.status not in REDIRECT_STATUS:
                if answer.status in (200, 401, 404):
                    return answer
                raise self.failed(f"{shown(url)} answers {answer.status}")
            target = urljoin(url, answer.headers.get("location", ""))
            if _host(target) != _host(url):
                sent.pop("Authorization", None)
            url = target
        raise self.failed(f"{shown(url)} redirects more than {REDIRECTS} times")

    def _get(self, url: str, limit: int, deadline: Deadline, headers: Mapping[str, str]) -> Answer:
        if _host(url) not in self._hosts or urlsplit(url).scheme not in self._schemes:
            raise self.failed(
                f"it refers to {shown(url)}, and the site allows only {', '.join(sorted(self._hosts))}: add the host to its hosts"
            )
        if self._silent:
            raise self._silent
        if deadline.left <= 0:
            raise self.failed(f"its charts could not be read within {TOTAL_SECONDS:.0f} seconds")
        seconds = min(deadline.left, REQUEST_SECONDS)
        try:
            return self._http.request("GET", url, limit, seconds, headers)
        except AnswerTooLarge as error:
            raise self.failed(str(error)) from None
        except HttpFailed as error:
            failed = self.failed(str(error))
            if seconds == REQUEST_SECONDS:
                self._silent = failed
            raise failed from None


def _host(url: str) -> str:
    """Host and port; an address that is none, or has an account, has an empty one, which no site allows."""
    try:
        parts = urlsplit(url)
        # urllib3 connects to the first host of https://one\@two, and urlsplit names the second.
        if "\\" in url or "@" in parts.netloc:
            return ""
        return f"{parts.hostname}:{parts.port or PORTS.get(parts.scheme, 0)}" if parts.hostname else ""
    except ValueError:
        return ""
