# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One fast connection to a cluster's API server: get, list, apply, patch, delete, watch. It knows nothing of orders or locks.

Written on urllib3 and plain dicts: importing the kubernetes package takes 0.3 s, a third of what a whole order may cost, and its
models are neither needed nor faster here. Safe to use from several threads at once.
"""

from __future__ import annotations

import datetime
import email.utils
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from ..common.third_party import MISSING, urllib3
from ..common.types import Object
from .config import Target, target
from .errors import (
    ApplyConflict,
    BadCredentials,
    Conflict,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    ServerError,
    Unauthorized,
    Unreachable,
    Untrusted,
    error_from,
)

Item = TypeVar("Item")
Result = TypeVar("Result")

FIELD_MANAGER = "openfleet.clusters"
CONNECTIONS = 16
CONNECT_SECONDS, READ_SECONDS = 10.0, 60.0
PAGE = 500
TRIES = 4
FIRST_WAIT = 0.25
LONGEST_WAIT = 30.0
# Kinds whose address is known need no discovery request; by API group, since others have kinds of the same names.
KINDS = {
    ("", "ConfigMap"): ("configmaps", True),
    ("", "Event"): ("events", True),
    ("", "Namespace"): ("namespaces", False),
    ("", "Node"): ("nodes", False),
    ("", "Secret"): ("secrets", True),
    ("", "ServiceAccount"): ("serviceaccounts", True),
    ("cloudkit.openshift.io", "ClusterOrder"): ("clusterorders", True),
    ("coordination.k8s.io", "Lease"): ("leases", True),
    ("hypershift.openshift.io", "HostedCluster"): ("hostedclusters", True),
    ("hypershift.openshift.io", "NodePool"): ("nodepools", True),
    ("osac.openshift.io", "ClusterOrder"): ("clusterorders", True),
    ("ramendr.openshift.io", "ClusterRegistry"): ("clusterregistries", True),
    ("ramendr.openshift.io", "DRCluster"): ("drclusters", False),
    ("ramendr.openshift.io", "DRPolicy"): ("drpolicies", False),
    ("rbac.authorization.k8s.io", "ClusterRole"): ("clusterroles", False),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("rolebindings", True),
}
# What others need is applied before them; kinds that are not named here come last but one, NodePools last.
ORDER = (
    ("Namespace", "CustomResourceDefinition"),
    ("ServiceAccount", "Secret", "ConfigMap"),
    ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"),
)
LAST = ("NodePool",)
# What a server says in the handshake when it is the certificate of the client that it does not like.
REFUSED_CERTIFICATE = re.compile(r"ALERT_(\w*CERTIFICATE\w*|UNKNOWN_CA|ACCESS_DENIED)")
MERGE, JSON_PATCH, APPLY = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"


@dataclass(frozen=True)
class WatchEvent:
    """What a watch saw: ADDED, MODIFIED, DELETED or BOOKMARK, and the object."""

    type: str
    object: Object


class ObjectList(list[Object]):
    """All objects of a kind; a watch continues from the `resource_version` of the list."""

    resource_version = ""


class Kube:
    """A connection to one cluster. `requests` counts what was sent; `server_time()` is the server's clock, not ours.

    `tries` is how often a request is sent at most, where sending it again is safe.
    """

    def __init__(self, cluster: Target, timeout: urllib3.Timeout | None = None, tries: int = TRIES) -> None:
        self.target = cluster
        self.requests = 0
        self._tries = tries
        self._timeout = timeout or urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
        # The server's time in its last answer, and our monotonic clock when that arrived.
        self._heard: tuple[datetime.datetime | None, float] | None = None
        self._plurals: dict[tuple[str, str], tuple[str, bool]] = {}
        self._cluster_id = ""
        self._login = threading.Lock()
        self._pool = self._new_pool()

    @classmethod
    def connect(cls, options: Mapping[str, Any], timeout: urllib3.Timeout | None = None, tries: int = TRIES) -> Kube:
        """Connect as module options ask for; nothing is sent yet."""
        if MISSING:
            raise BadCredentials(
                f"The Python library {MISSING} is missing where Ansible runs: install what requirements.txt of the collection names."
            )
        return cls(target(options), timeout, tries)

    def _new_pool(self) -> urllib3.PoolManager:
        settings: dict[str, Any] = {"maxsize": CONNECTIONS, "block": True, "retries": False, "socket_options": _socket_options()}
        if self.target.server.startswith("https://"):
            settings["ssl_context"] = self.target.ssl_context()
            if self.target.server_name:
                settings["server_hostname"] = self.target.server_name
            if not self.target.verify:
                # It was asked for; a warning would be in the way of what a task prints.
                urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        if not self.target.proxy or _is_spared(urlsplit(self.target.server).hostname or "", self.target.no_proxy):
            return urllib3.PoolManager(**settings)
        try:
            account = urllib3.util.parse_url(self.target.proxy).auth
            return urllib3.ProxyManager(self.target.proxy, proxy_headers=urllib3.make_headers(proxy_basic_auth=account), **settings)
        except urllib3.exceptions.HTTPError:
            raise BadCredentials(
                f"The proxy for {self.target.server} is no address of one; it looks like http://proxy.example.com:3128."
            ) from None

    # What can be asked of the server

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object:
        """The object; NotFound where it is not there."""
        return self._json("GET", self._path(api_version, kind, namespace, name), f"get {_called(kind, name, namespace)}")

    def find(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """The object, or None where it is not there."""
        try:
            return self.get(api_version, kind, name, namespace)
        except NotFound:
            return None

    def list_all(
        self, api_version: str, kind: str, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> ObjectList:
        """All objects of a kind, page by page. A list that grew too old between two pages is begun again."""
        path = self._path(api_version, kind, namespace)
        while True:
            items = ObjectList()
            query = {"limit": str(PAGE), "labelSelector": label_selector, "fieldSelector": field_selector, "continue": ""}
            try:
                while True:
                    answer = self._json("GET", path, f"list {kind}", query)
                    items += [{"apiVersion": api_version, "kind": kind} | item for item in answer["items"]]
                    items.resource_version = answer["metadata"].get("resourceVersion", "")
                    query["continue"] = answer["metadata"].get("continue", "")
                    if not query["continue"]:
                        return items
            except Gone:
                continue

    def create(self, item: Object, *, dry_run: bool = False) -> Object:
        query = {"fieldManager": FIELD_MANAGER, "dryRun": "All" if dry_run else ""}
        return self._send(item, "POST", f"create {_called_of(item)}", named=False, query=query)

    def replace(self, item: Object, subresource: str = "") -> Object:
        """Write the whole object; with the resourceVersion in it, only if nobody has changed it since."""
        return self._send(item, "PUT", f"replace {_called_of(item)}", subresource=subresource)

    def apply(self, item: Object, *, force: bool = False, dry_run: bool = False) -> Object:
        """Server-side apply as one field manager. Another manager's fields are an ApplyConflict, unless `force`."""
        query = {"fieldManager": FIELD_MANAGER, "force": str(force).lower(), "dryRun": "All" if dry_run else ""}
        try:
            return self._send(item, "PATCH", f"apply {_called_of(item)}", query=query, content_type=APPLY)
        except ApplyConflict as error:
            if force or set(error.fields) != {FIELD_MANAGER}:
                raise
            # What we have written otherwise than by apply is ours as well, though the server keeps a separate book on it.
            return self.apply(item, force=True, dry_run=dry_run)

    def patch(
        self, item: Object, changes: Object | Sequence[Object], *, subresource: str = "", checked: bool = True, dry_run: bool = False
    ) -> Object:
        """Merge `changes` into the object, or carry out a JSON patch where they are a list.

        `checked` makes it conditional: it is a Conflict if the object is not the one, and the version, that `item` is.
        """
        body: Any = changes
        if checked and isinstance(changes, Mapping):
            version = {"resourceVersion": item["metadata"]["resourceVersion"]}
            body = dict(changes) | {"metadata": dict(changes.get("metadata") or {}) | version}
        elif checked:
            # Not as a `test`: the server answers a failed one as if the patch were wrong, and does not say which.
            body = [{"op": "add", "path": "/metadata/resourceVersion", "value": item["metadata"]["resourceVersion"]}, *changes]
        content_type = MERGE if isinstance(changes, Mapping) else JSON_PATCH
        return self._send(
            item,
            "PATCH",
            f"patch {_called_of(item)}",
            body=body,
            subresource=subresource,
            query={"fieldManager": FIELD_MANAGER, "dryRun": "All" if dry_run else ""},
            content_type=content_type,
        )

    def delete(self, item: Object, *, checked: bool = False, dry_run: bool = False, propagation: str = "Background") -> bool:
        """Ask for the object's deletion; False where it was gone already. `checked` spares an object that is not this very one."""
        options: Object = {"propagationPolicy": propagation}
        if checked:
            options["preconditions"] = {"uid": item["metadata"]["uid"]}
        if dry_run:
            # Here, and not in the address: where a deletion has a body, the server does not look at the rest.
            options["dryRun"] = ["All"]
        try:
            self._send(item, "DELETE", f"delete {_called_of(item)}", body=options)
        except NotFound:
            return False
        return True

    def watch(
        self, api_version: str, kind: str, namespace: str | None = None, *, since: str, seconds: int = 300, **selectors: str
    ) -> Iterator[WatchEvent]:
        """Follow a kind from the version `since` on, for `seconds`; it is being followed when this returns.

        Gone means: list again and watch from there.
        """
        query = {"watch": "true", "resourceVersion": since, "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds), **selectors}
        url = self._url(self._path(api_version, kind, namespace), query)
        what = f"watch {kind}"
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=seconds + 30)
        return self._events(self._exchange("GET", url, what, preload=False, timeout=timeout), what)

    def _events(self, response: urllib3.BaseHTTPResponse, what: str) -> Iterator[WatchEvent]:
        try:
            for line in _lines(response):
                seen = json.loads(line)
                if seen["type"] == "ERROR":
                    raise error_from(int(seen["object"].get("code", 500)), seen["object"], what)
                yield WatchEvent(seen["type"], seen["object"])
        except urllib3.exceptions.HTTPError as error:
            raise Unreachable(f"{what}: the connection to {self.target.server} broke ({reason_of(error)}).") from error
        finally:
            # In this order: a connection with the rest of a watch in it must not be used again.
            response.close()
            response.release_conn()

    def namespaced(self, api_version: str, kind: str) -> bool:
        """Whether objects of that kind are in namespaces; NotFound where the server doesn't know it."""
        return self._address(api_version, kind)[1]

    def version(self) -> str:
        """The server's version, as v1.36.3."""
        return str(self._json("GET", "/version", "get the server's version").get("gitVersion") or "")

    def cluster_id(self) -> str:
        """What tells the cluster from every other: the uid of a namespace that nobody can make anew. It is asked for once."""
        if not self._cluster_id:
            self._cluster_id = str(self.get("v1", "Namespace", "kube-system")["metadata"]["uid"])
        return self._cluster_id

    def readyz(self) -> None:
        """ServerError, with the checks that fail, unless the server is ready."""
        try:
            self._exchange("GET", self._url("/readyz", {"verbose": "true"}), "ask whether the server is ready")
        except ServerError as error:
            failed = re.findall(r"^\[-\](\S+) failed", str(error), re.MULTILINE)
            raise ServerError(f"{self.target.server} is not ready: {', '.join(failed) or error}.") from error

    def server_time(self) -> datetime.datetime | None:
        """The server's own time, never ahead of it and up to a second behind; None where something on the way takes it out.

        It is that of its last answer, plus what our monotonic clock has counted since.
        """
        if self._heard is None:
            self.version()
        date, arrived = self._heard or (None, 0.0)
        return date + datetime.timedelta(seconds=time.monotonic() - arrived) if date else None

    # Many at once

    def in_parallel(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result | KubeError]:
        """Do `work` for each item over this one connection, several at a time; the error of one is its result."""

        def attempt(item: Item) -> Result | KubeError:
            try:
                return work(item)
            except KubeError as error:
                return error

        todo = list(items)
        if len(todo) < 2:
            return [attempt(item) for item in todo]
        with ThreadPoolExecutor(min(len(todo), CONNECTIONS)) as threads:
            return list(threads.map(attempt, todo))

    # How it is sent

    def _path(self, api_version: str, kind: str, namespace: str | None = None, name: str | None = None, subresource: str = "") -> str:
        """The address of an object; without a name, of all of its kind."""
        plural, namespaced = self._address(api_version, kind)
        root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
        parts = [root, *(["namespaces", _segment(namespace, kind)] if namespaced and namespace else []), plural]
        return "/".join([*parts, *([_segment(name, kind)] if name is not None else []), *([subresource] if subresource else [])])

    def _address(self, api_version: str, kind: str) -> tuple[str, bool]:
        """What the kind is called in addresses, and whether its objects are in namespaces."""
        return KINDS.get((api_version.rpartition("/")[0], kind)) or self._discover(api_version, kind)

    def _discover(self, api_version: str, kind: str) -> tuple[str, bool]:
        if (api_version, kind) not in self._plurals:
            root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
            try:
                known = self._json("GET", root, f"discover {api_version}")["resources"]
            except NotFound:
                known = []
            for entry in known:
                if "/" not in entry["name"]:
                    self._plurals[api_version, entry["kind"]] = (entry["name"], entry["namespaced"])
        try:
            return self._plurals[api_version, kind]
        except KeyError:
            raise NotFound(f"{self.target.server} knows no kind {kind} in {api_version}; check its spelling, or install its CRD.") from None

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
        path = self._path(item["apiVersion"], item["kind"], metadata.get("namespace"), metadata["name"] if named else None, subresource)
        return self._json(method, path, what, query, item if body is None else body, content_type)

    def _json(
        self,
        method: str,
        path: str,
        what: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Object:
        response = self._exchange(method, self._url(path, query or {}), what, body, content_type)
        answer = _body(response)
        if not isinstance(answer, dict):
            raise ServerError(
                f"{what}: what {self.target.server} answers is not from a Kubernetes API server; check the address and the proxy."
            )
        return answer

    def _url(self, path: str, query: Mapping[str, str]) -> str:
        given = {name: value for name, value in query.items() if value}
        return f"{self.target.server}{path}{'?' if given else ''}{urlencode(given)}"

    def _exchange(
        self,
        method: str,
        url: str,
        what: str,
        body: Any = None,
        content_type: str = "application/json",
        preload: bool = True,
        timeout: urllib3.Timeout | None = None,
    ) -> urllib3.BaseHTTPResponse:
        """Send a request, and again where that is safe: reads on any failure of the way, writes only if they cannot have arrived."""
        data = json.dumps(body).encode() if body is not None else None
        renewed = False
        for attempt in range(1, self._tries + 1):
            wait = FIRST_WAIT * 2 ** (attempt - 1)
            headers = urllib3.HTTPHeaderDict({"Accept": "application/json", "Content-Type": content_type, "User-Agent": FIELD_MANAGER})
            for name, value in self.target.headers():
                headers.add(name, value)
            pool = self._pool
            try:
                self.requests += 1
                response = pool.request(
                    method, url, body=data, headers=headers, preload_content=preload, timeout=timeout or self._timeout, redirect=False
                )
            except urllib3.exceptions.HTTPError as error:
                never_sent = isinstance(error, urllib3.exceptions.NewConnectionError | urllib3.exceptions.ConnectTimeoutError)
                if attempt == self._tries or not (method == "GET" or never_sent) or isinstance(error, urllib3.exceptions.SSLError):
                    raise self._unreachable(error, what) from error
                time.sleep(wait)
                continue
            date = _date(response)
            if date or self._heard is None:
                self._heard = (date, time.monotonic())
            if response.status < 300:
                return response
            again = response.status == 429 or (method == "GET" and response.status >= 500)
            renew = response.status == 401 and not renewed and attempt < self._tries and self._log_in_again(pool)
            if not renew and (not again or attempt == self._tries):
                raise error_from(response.status, _body(response), what)
            response.drain_conn()
            if renew:
                renewed = True
                continue
            asked = response.headers.get("Retry-After", "")
            time.sleep(min(LONGEST_WAIT, max(wait, float(asked if asked.isdecimal() else 0))))
        raise AssertionError("the last try returns or raises")

    def _log_in_again(self, refused: urllib3.PoolManager) -> bool:
        """New credentials from the plugin, and new connections for them; once, however many threads were refused. False without one."""
        with self._login:
            if self._pool is refused:
                if not self.target.run_plugin():
                    return False
                self._pool = self._new_pool()
        return True

    def _unreachable(self, error: Exception, what: str) -> KubeError:
        reason = reason_of(error)
        if REFUSED_CERTIFICATE.search(reason):
            return Unauthorized(f"{what}: {self.target.server} refuses the client certificate ({reason}); check the kubeconfig.")
        if "certificate verify failed" in reason or "CERTIFICATE_VERIFY_FAILED" in reason:
            return Untrusted(
                f"{what}: the certificate of {self.target.server} is not trusted ({reason}); "
                "set ca_cert to its authority, and use an address that it is for."
            )
        return Unreachable(f"{what}: {self.target.server} does not answer ({reason}); check the address, the network and the proxy.")


def in_apply_order(items: Iterable[Object]) -> list[list[Object]]:
    """The objects in groups: those of one group can be written at once, each group needs the ones before it."""

    def rank(item: Object) -> int:
        if item["kind"] in LAST:
            return len(ORDER) + 1
        return next((number for number, kinds in enumerate(ORDER) if item["kind"] in kinds), len(ORDER))

    ranked: dict[int, list[Object]] = {}
    for item in items:
        ranked.setdefault(rank(item), []).append(item)
    return [ranked[number] for number in sorted(ranked)]


def retry_on_conflict(work: Callable[[], Result], tries: int = 10) -> Result:
    """Read, change, write: again from the read when somebody else was quicker. An ApplyConflict would only come back."""
    for attempt in range(1, tries + 1):
        try:
            return work()
        except Conflict as error:
            if attempt == tries or not error.retryable:
                raise
            # Some seconds in all: a controller that has just begun with an object writes to it several times a second.
            time.sleep(min(1.0, 0.01 * 2**attempt))
    raise AssertionError("the last try returns or raises")


def _is_spared(host: str, no_proxy: str) -> bool:
    """Whether the host is one of those to be reached without the proxy: by name, by domain, or all with `*`."""
    names = [name.strip() for name in no_proxy.split(",")]
    domains = [name.lstrip("*.") for name in names]
    return "*" in names or any(domain and f".{host}".endswith(f".{domain}") for domain in domains)


def _segment(name: str, kind: str) -> str:
    """The name as a part of an address; never one that would make it the address of something else."""
    if name in ("", ".", "..") or "/" in name or "%" in name:
        raise Invalid(f"{name!r} cannot be the name or the namespace of a {kind}.", ["metadata.name"])
    return quote(name)


def _called(kind: str, name: str, namespace: str | None) -> str:
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _called_of(item: Object) -> str:
    return _called(item["kind"], item["metadata"].get("name", ""), item["metadata"].get("namespace"))


def _socket_options() -> list[tuple[int, int, int]]:
    """Those of urllib3, and that a peer which is silently gone is noticed: a watch only reads, and would wait for it in vain."""
    wanted = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
    there = [(socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in wanted.items() if hasattr(socket, name)]
    return [*urllib3.connection.HTTPConnection.default_socket_options, (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *there]


def _body(response: urllib3.BaseHTTPResponse) -> Any:
    text = response.data.decode(errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text[:500]


def _date(response: urllib3.BaseHTTPResponse) -> datetime.datetime | None:
    try:
        return email.utils.parsedate_to_datetime(response.headers["Date"]).astimezone(datetime.UTC)
    except (KeyError, ValueError):
        return None


def reason_of(error: BaseException) -> str:
    """The innermost cause, without the addresses of objects that urllib3 puts in front of it."""
    inner = error
    while causes := [cause for cause in (getattr(inner, "reason", None), *inner.args) if isinstance(cause, BaseException)]:
        inner = causes[-1]
    return str(inner).rpartition(": ")[2] if isinstance(inner, urllib3.exceptions.NewConnectionError) else str(inner)


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    for chunk in response.stream(amt=None, decode_content=True):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line)
