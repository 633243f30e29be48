"""Read from web servers within a deadline: short texts, and files that are resumed and verified. It knows nothing of releases.

Every transfer runs in a thread of its own, because a name lookup has no timeout, and a server that sends byte by byte never reaches
the timeout of a socket. The calling thread keeps the deadline.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

SILENCE_SECONDS = 15.0
ATTEMPTS = 3
RETRY_SECONDS = 1.0
STOP_SECONDS = 1.0
CHUNK = 2**18
TEXT_LIMIT = 2**16
Result = TypeVar("Result")
# It ends soon after the event is set, and writes nothing more.
Transfer = Callable[[threading.Event], Result]


class NotDownloaded(Exception):
    """Something could not be downloaded. The text is the reason, for a sentence of the caller's."""


def within(seconds: float, transfers: Mapping[str, Transfer[Result]]) -> dict[str, Result]:
    """Run the transfers, each named by its address, at the same time. The first failure, or the deadline, ends them all."""
    stop, outcomes = threading.Event(), SimpleQueue[tuple[str, Result | None, Exception | None]]()

    def run(url: str, transfer: Transfer[Result]) -> None:
        try:
            outcomes.put((url, transfer(stop), None))
        except Exception as error:  # noqa: BLE001 - the calling thread raises it
            outcomes.put((url, None, error))

    deadline = time.monotonic() + seconds
    results: dict[str, Result] = {}
    # Daemons, because the process must be able to end while one of them waits for the network.
    threads = [threading.Thread(target=run, args=entry, daemon=True) for entry in transfers.items()]
    try:
        for thread in threads:
            thread.start()
        while len(results) < len(transfers):
            url, result, error = outcomes.get(timeout=max(deadline - time.monotonic(), 0))
            if error:
                raise error if isinstance(error, NotDownloaded) else NotDownloaded(_reason(url, error)) from error
            results[url] = result  # type: ignore[assignment] # without an error there is a result, be it None
    except Empty:
        late = " and ".join(sorted({urlsplit(url).netloc for url in transfers if url not in results}))
        raise NotDownloaded(f"{late} did not complete the transfer within {seconds:g} seconds") from None
    finally:
        stop.set()
        # Those that do not wait for the network end now: the caller may delete the folder that they write to.
        grace = time.monotonic() + STOP_SECONDS
        for thread in threads:
            if thread.ident:
                thread.join(max(grace - time.monotonic(), 0))
    return results


def read_text(url: str, _stop: threading.Event) -> str:
    with _open(url) as response:
        return response.read(TEXT_LIMIT).decode(errors="replace")


def have_file(url: str, file: Path, checksum: str, progress: Callable[[int, int], None], stop: threading.Event) -> None:
    """Have a file with this SHA-256 checksum. A broken connection is resumed; a whole file with another checksum is discarded."""
    for attempt in range(1, ATTEMPTS + 1):
        if _matches(file, checksum):
            progress(file.stat().st_size, file.stat().st_size)
            return
        resumed = file.exists()
        try:
            _receive(url, file, progress, stop)
        except (OSError, HTTPException) as error:
            if attempt == ATTEMPTS or not _is_temporary(error) or stop.wait(RETRY_SECONDS):
                raise
            continue
        if _matches(file, checksum):
            return
        file.unlink()
        # The part that was there before may have been wrong. Without one, another attempt gets the same file.
        if not resumed:
            break
    raise NotDownloaded(f"{url} does not match its published checksum and was discarded")


def _matches(file: Path, checksum: str) -> bool:
    if not file.exists():
        return False
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == checksum


def _receive(url: str, file: Path, progress: Callable[[int, int], None], stop: threading.Event) -> None:
    """Append what is missing, or start again where the server does not resume."""
    done = file.stat().st_size if file.exists() else 0
    try:
        response = _open(url, {"Range": f"bytes={done}-"} if done else {})
    except HTTPError as error:
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            file.unlink()
        raise
    with response:
        if response.status != HTTPStatus.PARTIAL_CONTENT:
            done = 0
        total = done + int(response.headers.get("Content-Length") or 0)
        if stop.is_set():
            raise NotDownloaded("the deadline has passed, or another transfer has failed")
        with open(file, "ab" if done else "wb") as content:
            while chunk := response.read1(CHUNK):
                if stop.is_set():
                    raise NotDownloaded("the deadline has passed, or another transfer has failed")
                content.write(chunk)
                done += len(chunk)
                progress(done, total)
    if done < total:
        raise ConnectionError(f"the connection ended after {done} of {total} bytes")


def _is_temporary(error: Exception) -> bool:
    """Whether another attempt may succeed. Most answers about the request itself stay the same."""
    again = (HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
    return not isinstance(error, HTTPError) or error.code in again or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR


def _reason(url: str, error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"{url} answers {error.code} {error.reason}"
    cause = error.reason if isinstance(error, URLError) else error
    return f"{urlsplit(url).netloc}: {getattr(cause, 'strerror', None) or str(cause) or type(cause).__name__}"


class _KeepTls(HTTPRedirectHandler):
    """Refuses a redirect from TLS to plain HTTP, where a published checksum could be replaced together with its file."""

    def redirect_request(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str) -> Request | None:
        if req.type == "https" and urlsplit(newurl).scheme != "https":
            raise URLError(f"the redirect to {newurl} is refused, because it leaves TLS")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(url: str, headers: Mapping[str, str] | None = None) -> HTTPResponse:
    """Open an address, through the proxy that the environment names."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise NotDownloaded(f"{url} begins neither with https:// nor with http://")
    request = Request(url, headers=dict(headers or {}))  # noqa: S310 - the scheme is checked above
    response: HTTPResponse = build_opener(_KeepTls).open(request, timeout=SILENCE_SECONDS)
    return response
