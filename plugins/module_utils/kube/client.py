# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The Kubernetes API of one cluster: get, list, apply, patch, delete, watch. It knows nothing of orders or locks.

Written on urllib3 and plain dicts: importing the kubernetes package takes 0.3 s, a third of the time budget of a whole order, and its
models are neither needed nor faster here. Safe to use from several threads at once.
"""

from __future__ import annotations

import copy
import datetime
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ..common.third_party import MISSING, urllib3
from ..common.types import Object
from .config import Target, target
from .connections import Limits
from .errors import ApplyConflict, BadCredentials, Conflict, Gone, KubeError, NotFound, ServerError, Unexpected, Unreachable, error_from
from .rest_mapper import RestMapper
from .transport import CONNECT_SECONDS, USER_AGENT, Transport, reason_of

Item = TypeVar("Item")
Result = TypeVar("Result")

FIELD_MANAGER = USER_AGENT
CONNECTIONS = 16
TRIES = 4
PAGE = 500
MERGE, JSON_PATCH, APPLY = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"


@dataclass(frozen=True)
class WatchEvent:
    """An event of a watch: ADDED, MODIFIED, DELETED or BOOKMARK, and the object."""

    type: str
    object: Object


class ObjectList(list[Object]):
    """All objects of a kind; a watch continues from the `resource_version` of the list."""

    resource_version = ""


class Kube:
    """The API of one cluster.

    `tries` is how often a request is sent at most, where repeating it is safe. Writes are those of `field_manager`. `limits` are for
    clusters that the site does not trust. A `read_only` connection sends no write.
    """

    def __init__(
        self,
        cluster: Target,
        timeout: urllib3.Timeout | None = None,
        tries: int = TRIES,
        field_manager: str = FIELD_MANAGER,
        limits: Limits | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        self.target = cluster
        self._field_manager = field_manager
        self._transport = Transport(cluster, timeout, tries, CONNECTIONS, limits, read_only=read_only)
        self._mapper = RestMapper(self._transport)
        self._cluster_id = ""

    @classmethod
    def connect(cls, options: Mapping[str, Any], timeout: urllib3.Timeout | None = None, tries: int = TRIES) -> Kube:
        """The cluster that module options name; nothing is sent yet."""
        if MISSING:
            raise BadCredentials(
                f"The Python library {MISSING} is missing where Ansible runs: install what requirements.txt of the collection names."
            )
        return cls(target(options), timeout, tries)

    def impersonate(self, user: str, groups: Sequence[str] = (), extra: Iterable[tuple[str, str]] = ()) -> Kube:
        """The same API as this user, over the same connections. Requests are counted apart."""
        other = copy.copy(self)
        other.target = replace(self.target, impersonate_user=user, impersonate_groups=tuple(groups), impersonate_extra=tuple(extra))
        other._transport = self._transport.with_target(other.target)  # noqa: SLF001 - of a copy of this object
        return other

    @property
    def requests(self) -> int:
        """How many requests were sent."""
        return self._transport.requests

    # Objects

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object:
        """The object; NotFound where it is not there."""
        return self._transport.json("GET", self._mapper.path(api_version, kind, namespace, name), f"get {_called(kind, name, namespace)}")

    def find(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """The object, or None where it is not there."""
        try:
            return self.get(api_version, kind, name, namespace)
        except NotFound:
            return None

    def list_all(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        *,
        version: str = "",
    ) -> ObjectList:
        """All objects of a kind, page by page. A list that expires between two pages is started again.

        With the `version` of an object, they are as they were when that version was written; Gone if the server has forgotten it.
        """
        path = self._mapper.path(api_version, kind, namespace)
        while True:
            items = ObjectList()
            query = {"limit": str(PAGE), "labelSelector": label_selector, "fieldSelector": field_selector, "continue": ""}
            query |= {"resourceVersion": version, "resourceVersionMatch": "Exact"} if version else {}
            try:
                while True:
                    answer = self._transport.json("GET", path, f"list {kind}", query)
                    if not _is_list(answer):
                        raise ServerError(f"list {kind}: {self.target.server} does not answer with a list of objects; check the address.")
                    items += [{"apiVersion": api_version, "kind": kind} | item for item in answer["items"]]
                    items.resource_version = answer["metadata"].get("resourceVersion", "")
                    query["continue"] = answer["metadata"].get("continue", "")
                    query.pop("resourceVersion", None)  # the following pages are of the version of the first one
                    query.pop("resourceVersionMatch", None)
                    if not query["continue"]:
                        return items
            except Gone:
                if version:
                    raise

    def create(self, item: Object, *, dry_run: bool = False, strict: bool = False) -> Object:
        """Create the object. `strict` refuses fields that the server does not know; otherwise it drops them."""
        query = {"fieldManager": self._field_manager, "dryRun": "All" if dry_run else "", "fieldValidation": _validation(strict)}
        return self._send(item, "POST", f"create {_called_of(item)}", named=False, query=query)

    def replace(self, item: Object, subresource: str = "", *, strict: bool = False) -> Object:
        """Write the whole object; with its resourceVersion, only if it has not changed since. `strict` as for `create`."""
        query = {"fieldManager": self._field_manager, "fieldValidation": _validation(strict)}
        return self._send(item, "PUT", f"replace {_called_of(item)}", subresource=subresource, query=query)

    def apply(self, item: Object, *, force: bool = False, dry_run: bool = False) -> Object:
        """Server-side apply as one field manager. Another manager's fields are an ApplyConflict, unless `force`."""
        query = {"fieldManager": self._field_manager, "force": str(force).lower(), "dryRun": "All" if dry_run else ""}
        try:
            return self._send(item, "PATCH", f"apply {_called_of(item)}", query=query, content_type=APPLY)
        except ApplyConflict as error:
            if force or set(error.fields) != {self._field_manager}:
                raise
            # Fields that we wrote otherwise than by apply are ours as well, though the server tracks them separately.
            return self.apply(item, force=True, dry_run=dry_run)

    def patch(
        self,
        item: Object,
        changes: Object | Sequence[Object],
        *,
        subresource: str = "",
        checked: bool = True,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Object:
        """Merge `changes` into the object; a list is a JSON patch.

        `checked` makes it conditional: a Conflict if the object is not the one, or not in the version, that `item` is. `strict` as for
        `create`.
        """
        body: Any = changes
        if checked and isinstance(changes, Mapping):
            version = {"resourceVersion": item["metadata"]["resourceVersion"]}
            body = dict(changes) | {"metadata": dict(changes.get("metadata") or {}) | version}
        elif checked:
            # Not as a `test`: the server reports a failed one as if the patch were invalid.
            body = [{"op": "add", "path": "/metadata/resourceVersion", "value": item["metadata"]["resourceVersion"]}, *changes]
        content_type = MERGE if isinstance(changes, Mapping) else JSON_PATCH
        return self._send(
            item,
            "PATCH",
            f"patch {_called_of(item)}",
            body=body,
            subresource=subresource,
            query={
                "fieldManager": self._field_manager,
                "dryRun": "All" if dry_run else "",
                "fieldValidation": _validation(strict),
            },
            content_type=content_type,
        )

    def delete(
        self, item: Object, *, checked: bool = False, unchanged: bool = False, dry_run: bool = False, propagation: str = "Background"
    ) -> bool:
        """Delete the object; False where it did not exist. `checked` deletes only the object with this uid, `unchanged` in this version."""
        options: Object = {"propagationPolicy": propagation}
        conditions = {"uid": checked or unchanged, "resourceVersion": unchanged}
        if preconditions := {name: item["metadata"][name] for name, wanted in conditions.items() if wanted}:
            options["preconditions"] = preconditions
        if dry_run:
            # Here, and not in the query: the server ignores the query of a DELETE with a body.
            options["dryRun"] = ["All"]
        try:
            self._send(item, "DELETE", f"delete {_called_of(item)}", body=options)
        except NotFound:
            return False
        return True

    def request_token(self, account: Object, seconds: int) -> tuple[str, str]:
        """A token of a ServiceAccount for so many seconds, and when it expires."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}}
        answer = self._send(account, "POST", f"request a token of {_called_of(account)}", body=body, subresource="token").get("status")
        known = answer if isinstance(answer, dict) else {}
        return str(known.get("token") or ""), str(known.get("expirationTimestamp") or "")

    def watch(
        self, api_version: str, kind: str, namespace: str | None = None, *, since: str, seconds: int = 300, **selectors: str
    ) -> Iterator[WatchEvent]:
        """Watch a kind from the resourceVersion `since` on, for `seconds`; the watch is open when this returns.

        Gone means: list again and watch from there.
        """
        query = {"watch": "true", "resourceVersion": since, "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds), **selectors}
        path = self._mapper.path(api_version, kind, namespace)
        what = f"watch {kind}"
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=seconds + 30)
        return self._events(self._transport.request("GET", path, what, query, preload=False, timeout=timeout), what)

    def _events(self, response: urllib3.BaseHTTPResponse, what: str) -> Iterator[WatchEvent]:
        try:
            for line in _lines(response):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise error_from(int(event["object"].get("code", 500)), event["object"], what)
                yield WatchEvent(event["type"], event["object"])
        except urllib3.exceptions.HTTPError as error:
            raise Unreachable(f"{what}: the connection to {self.target.server} broke ({reason_of(error)}).") from error
        finally:
            # In this order: a connection that still holds the rest of a watch must not be reused.
            response.close()
            response.release_conn()

    def _send(
        self,
        item: Object,
        method: str,
        what: str,
        *,
        body: Any = None,
        named: bool = True,
        subresource: str = "",
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        metadata = item["metadata"]
        name = metadata["name"] if named else None
        path = self._mapper.path(item["apiVersion"], item["kind"], metadata.get("namespace"), name, subresource)
        return self._transport.json(method, path, what, query, item if body is None else body, content_type)

    # The server

    def namespaced(self, api_version: str, kind: str) -> bool:
        """Whether objects of that kind are in namespaces; NotFound where the server doesn't know it."""
        return self._mapper.resource(api_version, kind).namespaced

    def serves(self, api_version: str, kind: str) -> bool:
        """Whether the server itself lists the kind. It is asked until it does."""
        try:
            self._mapper.discover(api_version, kind)
        except NotFound:
            return False
        return True

    def version(self) -> str:
        """The server's version, as v1.36.3."""
        return str(self._transport.json("GET", "/version", "get the server's version").get("gitVersion") or "")

    def cluster_id(self) -> str:
        """A unique id of the cluster: the uid of a namespace that cannot be deleted. It is read once."""
        if not self._cluster_id:
            metadata = self.get("v1", "Namespace", "kube-system").get("metadata")
            self._cluster_id = str(metadata.get("uid") or "") if isinstance(metadata, dict) else ""
        return self._cluster_id

    def readyz(self) -> None:
        """ServerError, with the checks that fail, unless the server is ready."""
        try:
            self._transport.request("GET", "/readyz", "check that the server is ready", {"verbose": "true"})
        except ServerError as error:
            failed = re.findall(r"^\[-\](\S+) failed", str(error), re.MULTILINE)
            raise ServerError(f"{self.target.server} is not ready: {', '.join(failed) or str(error).rstrip('.')}.") from error

    def server_time(self) -> datetime.datetime | None:
        """The server's own time, never ahead of it and up to a second behind; None where a proxy removes it from responses."""
        if not self._transport.clock.has_reading:
            self.version()
        return self._transport.clock.earliest()

    def latest_server_time(self) -> datetime.datetime | None:
        """A time that the server's clock has not passed yet, after a response; None where a proxy removes the time from responses."""
        return self._transport.clock.latest()

    # Many at once

    def in_parallel(
        self, work: Callable[[Item], Result], items: Iterable[Item], connections: int = CONNECTIONS
    ) -> list[Result | KubeError]:
        """Call `work` for each item, at most `connections` at a time; the error of one, of any kind, is its result."""

        def attempt(item: Item) -> Result | KubeError:
            try:
                return work(item)
            except KubeError as error:
                return error
            except Exception as fault:  # noqa: BLE001 - of any kind: the items are orders of different tenants
                return Unexpected(fault)

        todo = list(items)
        threads_needed = min(len(todo), connections)
        if threads_needed < 2:
            return [attempt(item) for item in todo]
        with ThreadPoolExecutor(threads_needed) as threads:
            return list(threads.map(attempt, todo))


def _validation(strict: bool) -> str:
    return "Strict" if strict else ""


def retry_on_conflict(work: Callable[[], Result], tries: int = 10) -> Result:
    """Repeat a read, change and write after a conflict. An ApplyConflict is not repeated: it would only come back."""
    for attempt in range(1, tries + 1):
        try:
            return work()
        except Conflict as error:
            if attempt == tries or not error.retryable:
                raise
            # Some seconds in all: a controller that reconciles a new object writes to it several times a second.
            time.sleep(min(1.0, 0.01 * 2**attempt))
    raise AssertionError("the last try returns or raises")


def _called(kind: str, name: str, namespace: str | None) -> str:
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _called_of(item: Object) -> str:
    return _called(item["kind"], item["metadata"].get("name", ""), item["metadata"].get("namespace"))


def _is_list(answer: Object) -> bool:
    items = answer.get("items")
    if not isinstance(items, list) or not isinstance(answer.get("metadata"), dict):
        return False
    return all(isinstance(item, dict) and isinstance(item.get("metadata"), dict) for item in items)


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    for chunk in response.stream(amt=None, decode_content=True):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line)
