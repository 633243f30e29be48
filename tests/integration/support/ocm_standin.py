"""A stand-in for OpenShift Cluster Manager, and for the SSO service that gives its tokens: what its users see of it, on one port.

It makes no clusters: it walks them through their states, one step each time `advance` is called, or with `hurried` each time one is
read. Every request and every answer is judged by the service's own description; what is wrong is in `violations`. Faults can be
asked for: see `Fault`. What it refuses is what the service refuses, as far as that is known.
"""

from __future__ import annotations

import http.server
import itertools
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from ansible_collections.openfleet.clusters.extensions.sandbox.api_proxy import Request
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

from .ocm_contract import contract, request_of

ROOT = "/api/clusters_mgmt/v1"
TOKEN_PATH = "/sso/token"  # noqa: S105 - an address
ACCOUNT_PATH = "/api/accounts_mgmt/v1/current_account"
OFFLINE_TOKEN = "offline-token-of-the-tests"  # noqa: S105 - made up
COLLEAGUES_TOKEN, STRANGERS_TOKEN = "offline-token-of-a-colleague", "offline-token-of-a-stranger"
# By offline token: the account, and its organization, whose clusters alone it sees.
ACCOUNTS = {OFFLINE_TOKEN: ("account-1", "org-1"), COLLEAGUES_TOKEN: ("account-2", "org-1"), STRANGERS_TOKEN: ("account-3", "org-2")}
CLOUDS = {"aws": ("us-east-1", "eu-west-1"), "gcp": ("us-east1",)}
SINGLE_ZONE = "eu-west-1"
WALK = {"pending": "installing", "installing": "ready", "updating": "ready"}
SECRET = ("access_key_id", "secret_access_key", "private_key", "private_key_id", "client_secret", "bind_password", "hashed_password")
ADDONS = ("logging-operator",)


@dataclass
class Fault:
    """What happens to requests of a method whose path matches, so many times.

    busy: 429 with Retry-After; put-off: 503 with it; broken: 500, nothing done; failed: 500, and yet done; lost: done, and no answer;
    cut: done, and half an answer; hang: nothing is done or said; stale: the token is refused, and is no longer good.
    """

    how: str
    method: str = ".*"
    path: str = ".*"
    times: int = 1
    met: int = 0

    def is_for(self, method: str, path: str) -> bool:
        return self.times > 0 and bool(re.fullmatch(self.method, method) and re.search(self.path, path))


class Refused(Exception):
    """An answer of the service that is no success."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass
class Shelf:
    """A collection of the service below a cluster: what it holds by id."""

    kind: str
    items: dict[str, Object] = field(default_factory=dict)


class OcmStandIn(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hurried: bool = False) -> None:
        self.contract = contract()
        self.hurried = hurried
        self.kubeconfig = ""  # of all clusters; by default one that leads nowhere
        self.clusters: dict[str, Object] = {}
        self.shelves: dict[str, dict[str, Shelf]] = {}
        self.faults: list[Fault] = []
        self.violations: list[str] = []
        self.requests: list[str] = []
        self.tokens: dict[str, tuple[str, str]] = {}
        self.organizations: dict[str, str] = {}
        self.over = threading.Event()
        self.lock = threading.RLock()
        # As with the proxy of a hub: called with a request before it is served and before it is answered; a
        # ConnectionError cuts it off.
        self.before: Callable[[Request], None] = lambda _request: None
        self.after: Callable[[Request], None] = lambda _request: None
        self._numbers = itertools.count(1)
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing when a client disconnects."""

    # What tests do to it

    def advance(self) -> None:
        """A step for everything that is on its way."""
        with self.lock:
            for cluster in list(self.clusters.values()):
                self._step(cluster)

    def fail_installation(self, code: str, message: str) -> None:
        with self.lock:
            for cluster in self.clusters.values():
                cluster["state"] = "error"
                cluster["status"] = {"state": "error", "provision_error_code": code, "provision_error_message": message}

    def writes(self) -> list[str]:
        return [request for request in self.requests if not request.startswith("GET ") and TOKEN_PATH not in request]

    def shelf(self, cluster: str, name: str) -> dict[str, Object]:
        return self.shelves[cluster][name].items

    def _step(self, cluster: Object) -> None:
        state = cluster["state"]
        if state == "uninstalling":
            del self.clusters[cluster["id"]], self.shelves[cluster["id"]]
            return
        cluster["state"] = WALK.get(state, state)
        cluster["status"] = {**cluster["status"], "state": cluster["state"]}
        if state == "installing":
            host = f"{cluster['name']}.example.com"
            cluster |= {"api": {"url": f"https://api.{host}:6443"}, "console": {"url": f"https://console.apps.{host}"}}
            cluster |= {"external_id": f"external-{cluster['id']}", "health_state": "healthy"}
            cluster["status"]["dns_ready"] = True
        for addon in self.shelf(cluster["id"], "addons").values():
            addon["state"] = {"pending": "installing", "installing": "ready"}.get(addon["state"], addon["state"])

    # What the service does

    def token(self, form: dict[str, str]) -> tuple[int, Object]:
        with self.lock:
            account = ACCOUNTS.get(form.get("refresh_token", ""))
            if form.get("grant_type") != "refresh_token" or not account or not form.get("client_id"):
                return 400, {"error": "invalid_grant", "error_description": "Invalid refresh token"}
            token = f"access-token-{next(self._numbers)}"
            self.tokens[token] = account
            return 200, {"access_token": token, "expires_in": 900, "token_type": "Bearer"}

    def handle(self, method: str, path: str, query: dict[str, str], body: Any, organization: str) -> tuple[int, Object | None]:
        """A request of the API, below its root. What belongs to another organization does not exist for it."""
        parts = path.strip("/").split("/")
        with self.lock:
            match parts:
                case ["clusters"]:
                    return self._all_clusters(method, query, body, organization)
                case ["clusters", cluster, *_rest] if self.organizations.get(cluster, organization) != organization:
                    raise Refused(404, f"Cluster with id '{cluster}' not found")
                case ["clusters", cluster]:
                    return self._one_cluster(method, self._get(self.clusters, cluster, "Cluster"), body, query)
                case ["clusters", cluster, "credentials"]:
                    nowhere = f"apiVersion: v1\nkind: Config\nclusters: [{{name: {self._get_ready(cluster)['name']}}}]\n"
                    return 200, {"kubeconfig": self.kubeconfig or nowhere}
                case ["clusters", cluster, "identity_providers", provider, "htpasswd_users", *rest]:
                    self._get(self.shelf(cluster, "identity_providers"), provider, "IdentityProvider")
                    users = self.shelves[cluster].setdefault(f"users of {provider}", Shelf("HTPasswdUser"))
                    return self._on_shelf(method, users, rest, body, query)
                case ["clusters", cluster, *names]:
                    self._get(self.clusters, cluster, "Cluster")
                    name = next((name for name in reversed(names) if name in self.shelves[cluster]), "")
                    if method in ("POST", "PATCH") and name:
                        self._judge(self._get_ready(cluster), name, body, method)
                    rest = names[names.index(name) + 1 :]
                    return self._on_shelf(method, self.shelves[cluster][name], rest, body, query)
                case ["cloud_providers"]:
                    return 200, _page([{"kind": "CloudProvider", "id": name, "name": name} for name in CLOUDS], query)
                case ["cloud_providers", cloud, "regions"]:
                    return 200, _page([_region(name) for name in self._get(CLOUDS, cloud, "CloudProvider")], query)
        raise Refused(404, f"The stand-in has no {path}")

    def _all_clusters(self, method: str, query: dict[str, str], body: Any, organization: str) -> tuple[int, Object | None]:
        if method == "GET":
            return 200, self._search(query, organization)
        return 201, self._create(body, query.get("dryRun") == "true", organization)

    def _search(self, query: dict[str, str], organization: str) -> Object:
        wanted = re.fullmatch(r"name = '([^']*)'", query.get("search", ""))
        if query.get("search") and not wanted:
            raise Refused(400, f"The stand-in does not understand the search {query['search']}")
        own = [cluster for cluster in self.clusters.values() if self.organizations[cluster["id"]] == organization]
        found = [cluster for cluster in own if not wanted or cluster["name"] == wanted[1]]
        answer = _page([_visible(cluster) for cluster in found], query)
        if self.hurried:
            for cluster in found:
                self._step(cluster)
        return answer

    def _create(self, body: Object, dry_run: bool, organization: str) -> Object:
        cloud, region = body["cloud_provider"]["id"], body["region"]["id"]
        if region not in CLOUDS.get(cloud, ()):
            raise Refused(400, f"Region '{region}' is not supported for cloud provider '{cloud}'")
        if body["multi_az"] and region == SINGLE_ZONE:
            raise Refused(400, f"Region '{region}' does not support multiple availability zones")
        if any(cluster["name"] == body["name"] and self.organizations[key] == organization for key, cluster in self.clusters.items()):
            raise Refused(400, f"Cluster name '{body['name']}' already exists")
        if body.get("aws", {}).get("secret_access_key", "").startswith("bad"):
            raise Refused(400, f"The AWS key {body['aws']['secret_access_key']} is not valid")
        nodes = body.get("nodes") or {"compute": 3 if body["multi_az"] else 2, "compute_machine_type": {"id": "m5.xlarge"}}
        pool = _pool_of(nodes)
        _judge_size(pool, body["multi_az"])
        number = next(self._numbers)
        cluster = {
            **body,
            "kind": "Cluster",
            "id": f"id{number}",
            "href": f"{ROOT}/clusters/id{number}",
            "state": "pending",
            "status": {"state": "pending", "dns_ready": False},
            "creation_timestamp": "2026-01-02T03:04:05Z",
            "openshift_version": str(body.get("version", {}).get("id", "openshift-v4.18.1")).removeprefix("openshift-v").partition("-")[0],
            "nodes": nodes,
        }
        if not dry_run:
            self.clusters[cluster["id"]] = cluster
            self.organizations[cluster["id"]] = organization
            ingress = {"kind": "Ingress", "id": "a1b2", "default": True, "dns_name": f"apps.{body['name']}.example.com"}
            self.shelves[cluster["id"]] = {
                "machine_pools": Shelf("MachinePool", {"worker": pool}),
                "ingresses": Shelf("Ingress", {"a1b2": ingress}),
                "identity_providers": Shelf("IdentityProvider"),
                "syncsets": Shelf("Syncset"),
                "addons": Shelf("AddOnInstallation"),
                "upgrade_policies": Shelf("UpgradePolicy"),
            }
        return _visible(cluster)

    def _one_cluster(self, method: str, cluster: Object, body: Any, query: dict[str, str]) -> tuple[int, Object | None]:
        if method == "PATCH":
            if fixed := set(body) & {"name", "region", "cloud_provider", "multi_az"}:
                raise Refused(400, f"Attribute '{min(fixed)}' is not allowed")
            cluster |= body
        elif method == "DELETE":
            if query.get("dry_run") != "true":
                cluster["state"] = "uninstalling"
                cluster["status"] = {"state": "uninstalling"}
            return 204, None
        answer = _visible(cluster)
        if self.hurried:
            self._step(cluster)
        return 200, answer

    def _judge(self, cluster: Object, name: str, body: Object, method: str) -> None:
        if name == "machine_pools":
            _judge_size(body, cluster["multi_az"])
        if name == "addons" and method == "POST" and body["addon"]["id"] not in ADDONS:
            raise Refused(404, f"Add-on '{body['addon']['id']}' not found")
        if name == "upgrade_policies":
            cluster["state"], cluster["openshift_version"] = "updating", body["version"]

    def _on_shelf(self, method: str, shelf: Shelf, rest: list[str], body: Any, query: dict[str, str]) -> tuple[int, Object | None]:
        if not rest and method == "GET":
            return 200, _page([_visible(item) for item in shelf.items.values()], query)
        if not rest:
            name = body.get("id") or body.get("addon", {}).get("id") or f"id{next(self._numbers)}"
            if name in shelf.items or any(item.get("name") == body.get("name", 0) for item in shelf.items.values()):
                raise Refused(409, f"{shelf.kind} '{body.get('name', name)}' already exists")
            item = {**body, "id": name}
            if shelf.kind != "HTPasswdUser":
                item["kind"] = shelf.kind
            if shelf.kind == "AddOnInstallation":
                item["state"] = "pending"
            shelf.items[name] = item
            return 201, _visible(item)
        item = self._get(shelf.items, rest[0], shelf.kind)
        if method == "DELETE":
            del shelf.items[rest[0]]
            return 204, None
        if method == "PATCH":
            if "replicas" in body:
                item.pop("autoscaling", None)
            if "autoscaling" in body:
                item.pop("replicas", None)
            item |= body
        return 200, _visible(item)

    def _get(self, items: Any, name: str, kind: str) -> Any:
        if name not in items:
            raise Refused(404, f"{kind} with id '{name}' not found")
        return items[name]

    def _get_ready(self, cluster: str) -> Object:
        found: Object = self._get(self.clusters, cluster, "Cluster")
        if found["state"] not in ("ready", "updating"):
            raise Refused(400, f"Cluster '{cluster}' is not in a 'ready' state")
        return found


class Handler(http.server.BaseHTTPRequestHandler):
    server: OcmStandIn
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Request(self.command, self.path)
        try:
            self.server.before(request)
            answer = self._answer_to(data)
            self.server.after(request)
        except ConnectionError:
            answer = None
        if answer is None:
            self.close_connection = True
        else:
            self._answer(*answer)

    def _answer_to(self, data: bytes) -> tuple[int, Object | None, dict[str, str], str] | None:
        """What to say to a request; None says nothing."""
        address = urlsplit(self.path)
        server = self.server
        with server.lock:
            server.requests.append(f"{self.command} {self.path}")
            fault = next((fault for fault in server.faults if fault.is_for(self.command, address.path)), None)
            if fault:
                fault.times, fault.met = fault.times - 1, fault.met + 1
        how = fault.how if fault else ""
        if how == "hang":
            server.over.wait(60)
            return None
        if how in ("busy", "put-off", "broken"):
            status = {"busy": 429, "put-off": 503, "broken": 500}[how]
            return status, _error(status, "not now"), {"Retry-After": "1"} if how != "broken" else {}, how
        body: Object | None
        if address.path == TOKEN_PATH:
            status, body = server.token(dict(parse_qsl(data.decode())))
        else:
            status, body = self._judged(address.path, address.query, data, stale=how == "stale")
        if how == "failed":
            status, body = 500, _error(500, "it broke after it was done")
        return None if how == "lost" else (status, body, {}, how)

    def _judged(self, path: str, query: str, data: bytes, *, stale: bool) -> tuple[int, Object | None]:
        """The answer of the API; requests and answers that its description does not allow are noted."""
        server = self.server
        token = self.headers["Authorization"].removeprefix("Bearer ")
        if path == ACCOUNT_PATH:  # another service of the same address, with a description of its own
            account, organization = server.tokens.get(token, ("", ""))
            found = {"kind": "Account", "id": account, "username": account, "organization": {"id": organization}}
            return (200, found) if account else (401, _error(401, "Bearer token is expired"))
        request = request_of(server.url, self.command, path, query, dict(self.headers.items()), data)
        if problem := server.contract.of_request(request):
            server.violations.append(f"{self.command} {self.path}: {problem}")
            return 400, _error(400, f"against the description: {problem}")
        if stale:
            server.tokens.pop(token, None)
        try:
            if token not in server.tokens:
                raise Refused(401, "Bearer token is expired")
            values = {name: value[0] for name, value in parse_qs(query).items()}
            status, body = server.handle(
                self.command, path.removeprefix(ROOT), values, json.loads(data) if data else None, server.tokens[token][1]
            )
        except Refused as refused:
            status, body = refused.status, _error(refused.status, str(refused))
        if problem := server.contract.of_answer(request, status, json.dumps(body).encode() if body is not None else b""):
            server.violations.append(f"answer {status} to {self.command} {self.path}: {problem}")
        return status, body

    def _answer(self, status: int, body: Object | None, headers: dict[str, str], how: str) -> None:
        data = json.dumps(body).encode() if body is not None else b""
        if how == "cut" and not data:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if body is not None:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if how == "cut" else data)
        self.close_connection = self.close_connection or how == "cut"

    do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815 - the names http.server calls

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


def _error(status: int, reason: str) -> Object:
    return {"kind": "Error", "id": status, "code": f"CLUSTERS-MGMT-{status}", "reason": reason, "operation_id": f"operation-{status}"}


def _page(items: list[Object], query: dict[str, str]) -> Object:
    page, size = int(query.get("page", 1)), int(query.get("size", 100))
    shown = items[(page - 1) * size : page * size]
    return {"items": shown, "page": page, "size": len(shown), "total": len(items)}


def _region(name: str) -> Object:
    return {
        "kind": "CloudRegion",
        "id": name,
        "display_name": name.upper(),
        "enabled": True,
        "supports_multi_az": name != SINGLE_ZONE,
    }


def _pool_of(nodes: Object) -> Object:
    """The machine pool that comes with a cluster."""
    size = {"autoscaling": nodes["autoscale_compute"]} if "autoscale_compute" in nodes else {"replicas": nodes.get("compute", 2)}
    labels = {"labels": nodes["compute_labels"]} if "compute_labels" in nodes else {}
    return {"kind": "MachinePool", "id": "worker", "instance_type": nodes["compute_machine_type"]["id"], **labels, **size}


def _judge_size(pool: Object, multi_az: bool) -> None:
    limits = pool.get("autoscaling") or {}
    if "replicas" in pool and limits:
        raise Refused(400, "Replicas and autoscaling cannot be used together")
    numbers = [pool.get("replicas"), limits.get("min_replicas"), limits.get("max_replicas")]
    if multi_az and any(number % 3 for number in numbers if number is not None):
        raise Refused(400, "Multi AZ clusters require that the number of nodes be a multiple of 3")


def _visible(value: Any) -> Any:
    """What the service returns: never a secret."""
    if isinstance(value, dict):
        return {key: _visible(inner) for key, inner in value.items() if key not in SECRET}
    return [_visible(inner) for inner in value] if isinstance(value, list) else value
