"""The REST API of a fleet as a process with its shipped account, tenants with real tokens, and a client."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.launcher import die_with_me
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, CLUSTER, hub_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kubeconfig_request import KubeconfigAnswer, is_request
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.workloads_request import WorkloadsAnswer
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Forbidden

from .manifests import MANIFESTS, manifest
from .tenants import RBAC, connect_as

API = "/api/fleet/v1"
MODULE = "ansible_collections.openfleet.clusters.extensions.fleet_api"
TENANT_ROLE, OPERATOR_ROLE = "openfleet-fleet-tenant", "openfleet-fleet-operator"
PATIENCE = 120


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of the problem that it is."""
        assert self.headers["Content-Type"] == "application/problem+json", self.body
        return str(self.json()["code"])


@dataclass
class Client:
    """Sends requests with a token. Paths are relative to the API, or begin with // for others of the service."""

    address: str
    token: str = ""
    pool: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(retries=False, maxsize=10))

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        url = f"{self.address}{path[1:] if path.startswith('//') else f'{API}{path}'}"
        answer = self.pool.request(method, url, body=data, headers=sent, timeout=PATIENCE, redirect=False)
        assert len(answer.headers["X-Operation-Id"]) == 32
        return Answer(answer.status, answer.headers, answer.data)

    def get(self, path: str, **headers: str) -> Answer:
        return self("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self("POST", path, body, **headers)

    def with_token(self, token: str) -> Client:
        return Client(self.address, token, self.pool)


class Facade:
    """One replica."""

    def __init__(self, kubeconfig: Path, folder: Path, settings: Mapping[str, Any]) -> None:
        folder.mkdir()
        self.port, self.health_port, self.log = int(settings.get("port") or free_port()), free_port(), folder / "log"
        content = {"port": self.port, "health_port": self.health_port, "kubeconfig": str(kubeconfig), **settings}
        (folder / "settings.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
        self._command = [sys.executable, "-m", MODULE, f"--settings={folder / 'settings.yaml'}"]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        with open(self.log, "ab") as output:
            self.process = subprocess.Popen(die_with_me(self._command), stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        until(self.is_ready, "the service is ready", PATIENCE)

    def is_ready(self) -> bool:
        assert self.process
        assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
        return self.health("/readyz") == 200

    def health(self, path: str) -> int:
        try:
            return urllib3.request("GET", f"http://127.0.0.1:{self.health_port}{path}", retries=False, timeout=60).status
        except urllib3.exceptions.HTTPError:
            return 0

    def metrics(self) -> str:
        return urllib3.request("GET", f"http://127.0.0.1:{self.health_port}/metrics", retries=False, timeout=60).data.decode()

    def stop(self) -> int:
        assert self.process
        self.process.terminate()
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait(PATIENCE)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]


@dataclass
class Site:
    """A home cluster with the objects of the API, its replicas, and tenants."""

    home: Access
    folder: Path
    kubeconfig: Path
    facades: list[Facade] = field(default_factory=list)

    def start(self, **settings: Any) -> Facade:
        defaults = {"limits": {"requests_per_second": 10000, "burst": 100000}, "cached": {"token_seconds": 1, "access_seconds": 1}}
        facade = self.prepare(**(defaults | settings))
        facade.start()
        return facade

    def prepare(self, **settings: Any) -> Facade:
        """A replica that is not started yet, whose address is known."""
        facade = Facade(Path(settings.pop("kubeconfig", self.kubeconfig)), self.folder / f"facade-{len(self.facades)}", settings)
        self.facades.append(facade)
        return facade

    def account(self, namespace: str, name: str, *, audience: str = "") -> str:
        """A token of a new ServiceAccount."""
        self.home.kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}})
        return self.token(namespace, name, audience=audience)

    def token(self, namespace: str, name: str, *, audience: str = "") -> str:
        options = [f"--audience={audience}"] if audience else []
        return self.home.kubectl("create", "token", name, "-n", namespace, *options).stdout.strip()

    def bind(self, where: str, role: str, **subject: str) -> Object:
        """Bind the role to an account or another subject in a namespace, or everywhere."""
        kind = "RoleBinding" if where else "ClusterRoleBinding"
        name = "-".join([role, subject.get("namespace", ""), subject["name"]]).replace(":", "-")
        metadata = {"name": name} | ({"namespace": where} if where else {})
        if "kind" in subject:
            subject |= {"apiGroup": RBAC}
        else:
            subject = {"kind": "ServiceAccount", "namespace": where} | subject
        item = {
            "apiVersion": f"{RBAC}/v1",
            "kind": kind,
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        }
        self.home.kube.apply(item, force=True)
        return item

    def let_ask(self, hub: str) -> None:
        """The service may ask the agent of the hub about clusters."""
        for name in ("role", "role_binding"):
            item = manifest(f"fleet/api/hub/{name}")
            self.home.kube.create(item | {"metadata": item["metadata"] | {"namespace": hub_namespace(hub)}})

    def answer_one(self, hub: str, answer: KubeconfigAnswer | WorkloadsAnswer) -> list[Object]:
        """Answer the next request as the agent of the hub does. Returns the requests that it saw."""
        seen: list[Object] = []

        def run() -> None:
            deadline = time.monotonic() + PATIENCE
            while not seen and time.monotonic() < deadline:
                found = [item for item in self.home.kube.list_all("v1", "Secret", hub_namespace(hub)) if is_request(item)]
                seen.extend(found)  # before the answer, after which the test reads it
                for item in found:
                    self.home.kube.replace(answer.apply_to(item))
                time.sleep(0.01)

        threading.Thread(target=run, daemon=True).start()
        return seen

    @contextlib.contextmanager
    def operator(self, namespace: str) -> Iterator[str]:
        """A token of an operator of the fleet."""
        token = self.account(namespace, "operator")
        bound = self.bind("", OPERATOR_ROLE, name="operator", namespace=namespace)
        try:
            yield token
        finally:
            self.home.kube.delete(bound)

    @contextlib.contextmanager
    def tenant(self, facade: Facade) -> Iterator[Tenant]:
        """A namespace with an account that has the shipped role for tenants."""
        with fresh_namespace(self.home) as namespace:
            token = self.account(namespace, "user")
            self.bind(namespace, TENANT_ROLE, name="user")
            tenant = Tenant(namespace, Client(facade.address, token))
            until(lambda: tenant.client.get("/tenants").json().get("items"), "the service knows the tenant", PATIENCE)
            until(lambda: self._is_guarded(namespace), "the policy for clusters is in force", PATIENCE)
            yield tenant

    def _is_guarded(self, namespace: str) -> bool:
        """Whether the home cluster refuses that a tenant chooses a hub."""
        spec = {"template": "any", "placement": {"hub": "any"}}
        item = {"apiVersion": API_VERSION, "kind": CLUSTER, "metadata": {"name": "probe", "namespace": namespace}, "spec": spec}
        try:
            connect_as(self.home, f"system:serviceaccount:{namespace}:user").create(item, dry_run=True)
        except Forbidden as error:
            return "placement.hub" in str(error)
        return False


@dataclass(frozen=True)
class Tenant:
    name: str
    client: Client

    def at(self, facade: Facade) -> Client:
        """The client of the tenant at another replica, once that one knows the tenant."""
        client = Client(facade.address, self.client.token)
        until(lambda: client.get("/tenants").json().get("items"), "the replica knows the tenant", PATIENCE)
        return client


@contextlib.contextmanager
def site_on(home: Access, folder: Path) -> Iterator[Site]:
    """The shipped objects of the fleet and of its API on the home cluster, and what a Pod would connect with."""
    folders = [str(MANIFESTS / "fleet"), str(MANIFESTS / "fleet/api")]
    for each in folders:
        home.kubectl("apply", "-k", each)
    site = Site(home, folder, folder / "kubeconfig")
    account = manifest("fleet/api/service_account")["metadata"]
    config = yaml.safe_load(home.kubeconfig.read_text(encoding="utf-8"))
    config["users"][0]["user"] = {"token": site.token(account["namespace"], account["name"])}
    site.kubeconfig.write_text(yaml.safe_dump(config), encoding="utf-8")
    site.kubeconfig.chmod(0o600)
    try:
        yield site
    finally:
        for facade in site.facades:
            if facade.process and facade.process.poll() is None:
                facade.kill()
        for each in reversed(folders):
            home.kubectl("delete", "-k", each)


@dataclass(frozen=True)
class Event:
    name: str
    id: str
    data: Any


class Stream:
    """A client of Server-Sent Events, which reads when the test asks for the next one."""

    def __init__(self, client: Client, path: str = "/events", last: str = "") -> None:
        headers = {"Authorization": f"Bearer {client.token}"} | ({"Last-Event-ID": last} if last else {})
        self._answer = client.pool.request(
            "GET", f"{client.address}{API}{path}", headers=headers, preload_content=False, timeout=PATIENCE, redirect=False
        )
        assert self._answer.status == 200, self._answer.data
        self._lines = self._read_lines()
        self.last = last
        self.comments = 0

    def _read_lines(self) -> Iterator[str]:
        rest = b""
        for chunk in self._answer.stream(amt=None):
            *whole, rest = (rest + chunk).split(b"\n")
            yield from (line.decode() for line in whole)

    def next(self) -> Event:
        """The next event; EOFError at the end of the stream."""
        found: dict[str, str] = {}
        deadline = time.monotonic() + PATIENCE
        for line in self._lines:
            assert time.monotonic() < deadline, "the stream has heartbeats only"
            name, _colon, value = line.partition(": ")
            if not line and "data" in found:
                self.last = found["id"]
                return Event(found["event"], found["id"], json.loads(found["data"]))
            self.comments += line.startswith(":")
            found = found | {name: value} if line else {}
        raise EOFError

    def until(self, name: str, **data: Any) -> Event:
        """The next event of this name with this content."""
        while True:
            event = self.next()
            if event.name == name and data.items() <= event.data.items():
                return event

    def close(self) -> None:
        self._answer.close()
