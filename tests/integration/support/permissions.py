"""What an account asks an API server for: a proxy that forwards everything, watches too, and records the permissions that were used."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import aiohttp
import yaml
from aiohttp import web
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
HOP_BY_HOP = ("host", "connection", "accept-encoding", "content-length", "transfer-encoding", "content-encoding")


class Permission(NamedTuple):
    """One verb on one resource, as RBAC counts."""

    group: str
    resource: str
    verb: str


def permissions_of(role: Mapping[str, Any]) -> set[Permission]:
    return {
        Permission(group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def without(role: Mapping[str, Any], missing: Permission) -> dict[str, Any]:
    """The role without this permission. Each resource gets a rule of its own: a rule may be about several."""
    rules = [
        dict(rule) | {"resources": [resource], "verbs": [verb for verb in rule["verbs"] if (*rule["apiGroups"], resource, verb) != missing]}
        for rule in role["rules"]
        for resource in rule["resources"]
    ]
    return dict(role) | {"rules": [rule for rule in rules if rule["verbs"]]}


def allowed(kube: Kube, verb: str, resource: str, group: str = "", namespace: str = "", subresource: str = "") -> bool:
    """Whether the user of this connection has the permission, in one namespace or everywhere: `kubectl auth can-i`."""
    attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace, "subresource": subresource}
    review: Object = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {}}
    return bool(kube.create(review | {"spec": {"resourceAttributes": attributes}})["status"]["allowed"])


def permissions_used(method: str, path: str, query: Mapping[str, str], status: int) -> set[Permission]:
    """The permissions that the server checked before it answered; none for what every account may, such as reading its version."""
    parts = path.strip("/").split("/")
    root = 2 if parts[0] == "api" else 3
    group = parts[1] if parts[0] == "apis" else ""
    inner = parts[root:]
    if parts[0] not in ("api", "apis") or not inner:
        return set()
    if inner[0] == "namespaces" and len(inner) > 2:
        inner = inner[2:]
    resource = "/".join([inner[0], *inner[2:]])
    if method == "GET":
        return {Permission(group, resource, "watch" if query.get("watch") else "get" if len(inner) > 1 else "list")}
    used = {Permission(group, resource, VERBS[method])}
    if method == "PATCH" and status == 201:  # an apply of what was not there
        used.add(Permission(group, resource, "create"))
    return used


class Recorder:
    """The proxy. It forwards the credentials of the client.

    `act_as` may name another user for a request, by its method, its path with the query, and its body. That needs `credential`, the
    token of an account that may impersonate.
    """

    def __init__(self, hub: Access) -> None:
        cluster = yaml.safe_load(hub.kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]
        self._server = cluster["server"]
        self._trust = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        self.used: set[Permission] = set()
        self.refused: set[Permission] = set()
        self.act_as: Callable[[str, str, bytes], str] = lambda _method, _path, _body: ""
        self.credential = ""
        self.port = 0

    def forget(self) -> None:
        """Reset: no request is recorded, and each has the credentials of its client."""
        self.used.clear()
        self.refused.clear()
        self.act_as = lambda _method, _path, _body: ""

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        headers = {key: value for key, value in request.headers.items() if key.lower() not in HOP_BY_HOP} | {"Accept-Encoding": "identity"}
        body = await request.read()
        if user := self.act_as(request.method, request.raw_path, body):
            headers |= {"Authorization": f"Bearer {self.credential}", "Impersonate-User": user}
        async with self._session.request(
            request.method, f"{self._server}{request.raw_path}", headers=headers, data=body or None, allow_redirects=False
        ) as answer:
            permissions = permissions_used(request.method, request.path, request.query, answer.status)
            refusal = await answer.read() if answer.status == 403 else b""
            # A namespace that is being deleted refuses new objects after the permission was checked.
            is_refused = answer.status == 403 and b"because it is being terminated" not in refusal
            (self.refused if is_refused else self.used).update(permissions)
            kept = {key: value for key, value in answer.headers.items() if key.lower() not in HOP_BY_HOP}
            passed = web.StreamResponse(status=answer.status, headers=kept)
            await passed.prepare(request)
            await passed.write(refusal)
            async for chunk in answer.content.iter_any():
                await passed.write(chunk)
            await passed.write_eof()
            return passed

    async def _serve(self, ready: threading.Event, over: asyncio.Event) -> None:
        application = web.Application(client_max_size=2**26)
        application.router.add_route("*", "/{path:.*}", self._pass_on)
        connections, patience = aiohttp.TCPConnector(ssl=self._trust, limit=0), aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connections, timeout=patience) as session:
            self._session = session
            runner = web.AppRunner(application, shutdown_timeout=1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.port = runner.addresses[0][1]
            ready.set()
            await over.wait()
            await runner.cleanup()

    @contextlib.contextmanager
    def running(self) -> Iterator[Recorder]:
        loop, ready, over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
        thread = threading.Thread(target=loop.run_until_complete, args=(self._serve(ready, over),), daemon=True)
        thread.start()
        try:
            ready.wait(30)
            yield self
        finally:
            loop.call_soon_threadsafe(over.set)
            thread.join(30)
