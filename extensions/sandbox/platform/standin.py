"""The stand-in as a whole: its objects, its APIs below their paths, what tests see of it, and the server."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from ....plugins.module_utils.common.types import Object
from ..certificates import Authority
from . import controller_kinds, eda_kinds
from .accounts import Accounts, forbidden, may_write
from .activations import Activations
from .controller import HEADERS, Controller, playbooks_of
from .eda import Eda
from .exchange import Refused, Request, Response, not_found
from .faults import STATUSES, Fault
from .jobs import Jobs, Launch, Runner
from .queries import page
from .server import Server
from .store import Store
from .surveys import Surveys

ROOT = Path(__file__).resolve().parents[3]
ADMIN, PASSWORD = "admin", "password-of-the-stand-in"
READER = "reader"


class Platform:
    """Automation Platform as its clients see it.

    With `gateway` it is AAP, whose parts are below /api/controller, /api/eda and /api/gateway, else AWX with an EDA controller beside
    it. `checkout` is what every project contains. With a `folder` and a `runner`, jobs run and their output is kept.
    """

    def __init__(self, *, gateway: bool = False, checkout: Path = ROOT, folder: Path | None = None, runner: Runner | None = None) -> None:
        self.lock = threading.RLock()
        self.controller_store, self.eda_store = Store(controller_kinds.KINDS), Store(eda_kinds.KINDS)
        # One organization is the same for all parts.
        self.eda_store.rows["organizations"] = self.controller_store.rows["organizations"]
        self.accounts = Accounts(self.controller_store)
        surveys = Surveys()
        self.jobs = Jobs(self.controller_store, surveys, self.lock, folder, runner)
        playbooks = playbooks_of(checkout)
        self.controller = Controller(self.controller_store, self.accounts, surveys, self.jobs, lambda _project: playbooks)
        self.controller.behind_gateway = gateway
        self.eda = Eda(self.eda_store, self.accounts, checkout / "rulebooks")
        self.gateway = gateway
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        # Called before a request is handled and before it is answered; an OSError there ends the connection.
        self.before: Callable[[Request], None] = lambda _request: None
        self.after: Callable[[Request], None] = lambda _request: None
        self._bases: dict[str, Callable[[Request], Response]] = {
            "/api/v2/": self.controller.handle,
            "/api/controller/v2/": self.controller.handle,
            "/api/eda/v1/": self.eda.handle,
            "/api/gateway/v1/": self._gateway,
        }
        self._supply()

    @contextlib.contextmanager
    def serving(self, tls_folder: Path | None = None) -> Iterator[str]:
        """Serve on a free port of this machine. With a folder for its certificate by TLS; the authority is in ca.pem there."""
        with Server(self.answer, _tls(tls_folder) if tls_folder else None) as server:
            self.jobs.host = server.url
            try:
                yield server.url
            finally:
                server.shutdown()
                self.jobs.end()

    # What tests see

    @property
    def activations(self) -> Activations:
        return self.eda.activations

    @property
    def launches(self) -> list[Launch]:
        return self.jobs.launches

    def writes(self) -> list[str]:
        """Every request that changes an object, as method and path."""
        written = [request for request in self.requests if request.is_write and "/tokens/" not in request.path]
        return [f"{request.method} {request.path}" for request in written]

    def reads(self) -> list[str]:
        return [request.path for request in self.requests if not request.is_write]

    def objects(self, collection: str) -> list[Object]:
        """All objects of a collection, of the controller or else of EDA."""
        store = self.controller_store if collection in self.controller_store.kinds else self.eda_store
        return list(store.rows[collection].values())

    def eda_objects(self, collection: str) -> list[Object]:
        return list(self.eda_store.rows[collection].values())

    def token(self, username: str = ADMIN) -> str:
        return str(self.accounts.new_token(self.controller_store.named("users", username=username))["token"])

    # Requests

    def answer(self, request: Request) -> Response | None:
        """The response, or None where the connection ends without one."""
        self.requests.append(request)
        with self.lock:
            fault = next((fault for fault in self.faults if fault.meets(request)), None)
            if fault:
                fault.times -= 1
        if fault and fault.how in STATUSES:
            return STATUSES[fault.how]
        if fault and fault.how == "dead":
            return None
        if fault and fault.how == "slow":
            threading.Event().wait(fault.seconds)
        try:
            self.before(request)
            with self.lock:
                response = self._handle(request)
            self.after(request)
        except OSError:
            return None
        if fault and fault.how == "done-502":
            return STATUSES["502"]
        return None if fault and fault.how == "lost" else response

    def _handle(self, request: Request) -> Response:
        try:
            if request.path == "/api/":
                return Response(200, self._index(), HEADERS)
            if request.path in ("/api/o/token/", "/o/token/") and request.method == "POST":
                return self.accounts.grant(request)
            for base, handle in self._bases.items():
                if request.path.startswith(base) and (self.gateway or not base.startswith(("/api/controller", "/api/gateway"))):
                    response = handle(_below(request, base))
                    return Response(response.status, response.body, {**HEADERS, **response.headers}, response.content_type)
            raise not_found()
        except Refused as refused:
            answer = refused.response
            return Response(answer.status, answer.body, {**HEADERS, **answer.headers})

    def _index(self) -> Object:
        if self.gateway:
            return {"apis": {name: f"/api/{name}/" for name in ("gateway", "controller", "eda")}}
        return {"description": "AWX REST API", "current_version": "/api/v2/", "available_versions": {"v2": "/api/v2/"}, "oauth2": "/api/o/"}

    def _gateway(self, request: Request) -> Response:
        """What clients need of the gateway: who they are, and the organizations, teams and users that only it creates."""
        match request.parts:
            case ["ping"]:
                return Response(200, {"version": "2.5", "status": "good", "db_connected": True})
            case ["me"]:
                user = self.accounts.user(request)
                shown = {"id": user["id"], "username": user["username"], "is_superuser": user["is_superuser"]}
                return Response(200, page(request, [shown], lambda item: item))
            case ["tokens" | "organizations" | "teams" | "users", *_rest]:
                return self.controller.handle(request)
        user = self.accounts.user(request)
        raise not_found() if may_write(user) or not request.is_write else forbidden()

    # What every platform comes with

    def _supply(self) -> None:
        store = self.controller_store
        user = store.kinds["users"]
        store.create(user, {"username": ADMIN, "password": PASSWORD, "is_superuser": True})
        store.create(user, {"username": READER, "password": PASSWORD, "is_system_auditor": True})
        store.create(store.kinds["organizations"], {"name": "Default"})
        for name in ("controlplane", "default"):
            store.create(store.kinds["instance_groups"], {"name": name, "is_container_group": name == "default"})
        for name, kind, namespace, fields in controller_kinds.MANAGED_CREDENTIAL_TYPES:
            fixed = {"kind": kind, "namespace": namespace, "managed": True}
            store.create(store.kinds["credential_types"], {"name": name, "kind": "cloud", "inputs": {"fields": fields}}, fixed)
        environment = {"name": "Control Plane Execution Environment", "image": "registry.example.com/awx-ee:24.6.1"}
        store.create(store.kinds["execution_environments"], environment, {"managed": True})
        store.create(store.kinds["system_job_templates"], {"name": "Cleanup Job Details"})
        for title, stream, inputs in eda_kinds.MANAGED_CREDENTIAL_TYPES:
            self.eda_store.create(
                self.eda_store.kinds["credential-types"], {"name": title, "inputs": inputs}, {"kind": stream, "managed": True}
            )


def _below(request: Request, base: str) -> Request:
    return Request(request.method, request.path, request.query, request.body, request.authorization, base, request.form)


def _tls(folder: Path) -> ssl.SSLContext:
    authority = Authority("platform-standin")
    certificate, key = authority.server("127.0.0.1", ["127.0.0.1", "localhost"])
    (folder / "ca.pem").write_bytes(authority.pem)
    (folder / "server.pem").write_bytes(certificate + key)
    (folder / "server.pem").chmod(0o600)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return context
