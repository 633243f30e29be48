"""What a large fleet costs: scheduling, lists, the lag of changes, memory. Hubs are reports that the benchmark writes, without agents."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_report import (
    CONFIG_MAP,
    KEY,
    LEASE,
    Check,
    ClassNodes,
    HubReport,
    OfferedTemplate,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import (
    API_VERSION,
    ASSIGNMENT,
    CLUSTER,
    HUB,
    QUOTA,
    QUOTA_NAME,
    hub_namespace,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError, Unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE

from ...sandbox.access import Access, until
from ...sandbox.processes import free_port
from ...sandbox.sandbox import Sandbox
from ...sandbox.screen import UserError
from ..fleet_home import API, ENGINE, FleetApi, FleetHome, page
from .event_rows import percentile
from .floor import BareClient
from .page_rows import page_rows
from .timing import Row, at_least, at_most, timed

HUBS, TENANTS, CLUSTERS = 50, 20, 10_000
EACH = CLUSTERS // TENANTS
REFUSED = 100  # clusters of the first tenant beyond its quota
TEMPLATE, CLASS = "openfleet.clusters.ocp_4_17_small", "fc430"
PAGES, PAGE_SIZE, CHANGES = 300, 100, 200
PACE_SECONDS = 0.02
SCRAPE_SECONDS = 2.0  # seldom: a scrape counts all clusters, which takes time of the engine
WAIT_SECONDS = 1800
USER, OPERATOR = "user", "operator"
COLLECTION = "/apis/fleet.openfleet.io/v1alpha1/fleetclusters"
# The event source alone, without a rules engine, so that only it is measured.
SOURCE = """
import asyncio, json, sys
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.fleet_source import serve
class Discard:
    async def put(self, event):
        pass
asyncio.run(serve(Discard(), json.loads(sys.argv[1])))
"""


def large_fleet(folder: Path) -> Iterator[Row]:
    """Ten thousand clusters that are there before the engine starts."""
    sandbox = Sandbox(folder / "fleet")
    api = FleetApi(folder / "fleet-api")
    try:
        sandbox.up(clusters=("home",), hub=False, attached=True)
        home = FleetHome(Access(sandbox.kubeconfig("home")), folder)
        with timed(f"{HUBS} simulated hubs and {TENANTS} tenants"):
            _prepare(home)
        with HomeEngine(home):
            until(lambda: _ready_hubs(home.access.kube) == HUBS, "each hub is ready", WAIT_SECONDS)
        with timed(f"{CLUSTERS + REFUSED} clusters created"):
            _create_clusters(home.access.kube)
        with HomeEngine(home) as engine:
            yield from _scheduling(home.access.kube, engine)
            api.start(
                home.kubeconfig(SITE_NAMESPACE, API), limits={"requests_per_second": 10_000, "burst": 10_000}, cached={"access_seconds": 60}
            )
            until(api.is_ready, "the API is ready", WAIT_SECONDS)
            yield from _lists(home, api)
            operator = home.token(SITE_NAMESPACE, OPERATOR)
            yield from page_rows(api, operator, ApiClient(api, operator).get, CLUSTERS)
            yield from _lag(home, api)
            engine_memory, api_memory = _memory(engine.pid), _memory(api.pid)
        yield Row(f"memory of the home engine with {CLUSTERS} clusters", f"{engine_memory} MB")
        yield Row(f"memory of the REST API with {CLUSTERS} clusters", f"{api_memory} MB", goal=at_most(api_memory, 300, "MB"))
    finally:
        if api.was_started:
            api.stop()
        sandbox.down()


# What is there before


def _prepare(home: FleetHome) -> None:
    home.install()
    home.add_operator(OPERATOR)
    tenants = [f"tenant-{number}" for number in range(TENANTS)]
    home.add_tenant(tenants[0], USER)
    kube = home.access.kube

    def add_tenant(name: str) -> None:
        kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, force=True)
        quota = {"apiVersion": API_VERSION, "kind": QUOTA, "metadata": {"name": QUOTA_NAME, "namespace": name}}
        kube.create(quota | {"spec": {"hard": {"clusters": EACH}}})

    kube.delete({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "openfleet-fleet", "namespace": tenants[0]}})
    _each(kube, add_tenant, tenants)
    _each(kube, lambda number: _add_hub(kube, f"hub-{number}"), range(HUBS))


def _add_hub(kube: Kube, name: str) -> None:
    """A hub, and what its agent would report of it."""
    namespace, count = hub_namespace(name), 2 * CLUSTERS // HUBS
    kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    capacity = {"clusters": count, "nodes": {CLASS: 2 * count}}
    kube.create({"apiVersion": API_VERSION, "kind": HUB, "metadata": {"name": name}, "spec": {"capacity": capacity}})
    report = HubReport((Check("crds", passed=True),), {CLASS: ClassNodes(2 * count, 2 * count)}, (OfferedTemplate(TEMPLATE, "Small"),))
    own = {"name": CONFIG_MAP, "namespace": namespace}
    kube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": own, "data": {KEY: report.to_json()}})
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    lease = {"holderIdentity": "bench", "leaseDurationSeconds": 60, "renewTime": now}
    own = {"name": LEASE, "namespace": namespace}
    kube.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": own, "spec": lease})


def _create_clusters(kube: Kube) -> None:
    def create(number: int) -> None:
        tenant = 0 if number >= CLUSTERS else number % TENANTS
        metadata = {"name": f"cluster-{number}", "namespace": f"tenant-{tenant}"}
        spec = {"template": TEMPLATE, "nodeSets": {"workers": {"class": CLASS, "size": 1}}}
        kube.create({"apiVersion": API_VERSION, "kind": CLUSTER, "metadata": metadata, "spec": spec})

    _each(kube, create, range(CLUSTERS + REFUSED))


def _ready_hubs(kube: Kube) -> int:
    conditions = [(item.get("status") or {}).get("conditions") or () for item in kube.list_all(API_VERSION, HUB)]
    return sum(any((each["type"], each["status"]) == ("Ready", "True") for each in found) for found in conditions)


# The engine


class HomeEngine:
    """The event source of a home cluster, in a process of its own, with its shipped account."""

    def __init__(self, home: FleetHome) -> None:
        self._port = free_port()
        kubeconfig = str(home.kubeconfig(SITE_NAMESPACE, ENGINE))
        arguments = {"kubeconfig": kubeconfig, "health": {"port": self._port}, "hub_timeout": 86400}
        self._command = [sys.executable, "-c", SOURCE, json.dumps(arguments)]

    def __enter__(self) -> HomeEngine:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.terminate()  # in order, so that the next one leads at once
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def metric(self, name: str) -> float:
        text = page(self._port, "metrics").decode()
        return sum(float(value) for value in re.findall(rf"^openfleet_fleet_{re.escape(name)} (\S+)$", text, re.MULTILINE))


def _scheduling(kube: Kube, engine: HomeEngine) -> Iterator[Row]:
    """From the moment that the engine leads until each cluster that has quota is assigned to a hub."""
    until(lambda: engine.metric("leader") == 1, "the engine leads", WAIT_SECONDS)
    with QuotaWatch(kube) as quotas, timed(f"{CLUSTERS} clusters scheduled on {HUBS} hubs") as taken:
        deadline = time.monotonic() + WAIT_SECONDS
        while engine.metric('reconciles_total{result="scheduled"}') < CLUSTERS:
            if time.monotonic() > deadline:
                raise UserError(f"Not within {WAIT_SECONDS} s: each cluster is scheduled.")
            time.sleep(SCRAPE_SECONDS)
    assigned = len(kube.list_all(API_VERSION, ASSIGNMENT))
    used = [item["status"]["used"]["clusters"] for item in kube.list_all(API_VERSION, QUOTA)]
    if assigned != CLUSTERS or used != [EACH] * TENANTS:
        raise UserError(f"{assigned} clusters are assigned, and the tenants use {used}.")
    rate = CLUSTERS / taken[0]
    used_cpu = f"{taken[0]:.0f} s, {engine.cpu():.0f} CPU seconds of the engine"
    what, goal = f"{CLUSTERS} clusters scheduled on {HUBS} hubs", at_least(rate, 100, "a second")
    yield Row(what, f"{rate:.0f} a second", used_cpu, goal=goal)
    what, goal = f"quota exceeded, with {REFUSED} clusters too many", at_most(quotas.exceeded, 0, "times")
    yield Row(what, f"{quotas.exceeded} times", f"of {quotas.versions} versions", goal=goal)


class QuotaWatch:
    """Counts the versions of all quotas that a watch shows, and those with more than the quota."""

    def __init__(self, kube: Kube) -> None:
        self._since = kube.list_all(API_VERSION, QUOTA).resource_version
        self._kube = kube
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.versions = self.exceeded = 0

    def __enter__(self) -> QuotaWatch:
        self._thread.start()
        return self

    def __exit__(self, error: object, *_more: object) -> None:
        time.sleep(1)  # the last versions
        if error is None and not self._thread.is_alive():
            raise UserError("The watch of the quotas has ended, so versions above a quota may be missing. Measure again.")

    def _watch(self) -> None:
        with contextlib.suppress(Unreachable):  # the end of the benchmark
            for event in self._kube.watch(API_VERSION, QUOTA, since=self._since, seconds=WAIT_SECONDS):
                reserved = (event.object.get("status") or {}).get("reservations") or {}
                self.versions += 1
                self.exceeded += sum(each["amounts"]["clusters"] for each in reserved.values()) > EACH


# The REST API


class ApiClient:
    """One connection to the REST API with the token of a user."""

    def __init__(self, api: FleetApi, token: str) -> None:
        address = urlsplit(api.url)
        self._path = address.path
        self._connection = http.client.HTTPConnection(str(address.hostname), address.port)
        self._headers = {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> Any:
        response = self.open(path)
        body = json.loads(response.read())
        if response.status != http.HTTPStatus.OK:
            raise UserError(f"GET {path}: {body}")
        return body

    def open(self, path: str) -> http.client.HTTPResponse:
        self._connection.request("GET", f"{self._path}{path}", headers=self._headers)
        return self._connection.getresponse()


def _lists(home: FleetHome, api: FleetApi) -> Iterator[Row]:
    """Page after page, of all clusters and of one tenant; the same from the API server, which has no order and no filter."""
    operator = ApiClient(api, home.token(SITE_NAMESPACE, OPERATOR))
    tenant = ApiClient(api, home.token("tenant-0", USER))
    bare = BareClient(home.access.kubeconfig)

    def next_of_api(client: ApiClient, path: str) -> Callable[[str], str]:
        return lambda cursor: str(client.get(f"{path}?limit={PAGE_SIZE}{f'&cursor={cursor}' if cursor else ''}").get("nextCursor", ""))

    def next_of_server(cursor: str) -> str:
        answer = json.loads(bare.send("GET", f"{COLLECTION}?limit={PAGE_SIZE}{f'&continue={cursor}' if cursor else ''}"))
        return str(answer["metadata"].get("continue", ""))

    server = _walk("the API server alone", next_of_server)
    for what, walked in (
        (f"a page of {PAGE_SIZE} of all {CLUSTERS} clusters", _walk("all clusters", next_of_api(operator, "/admin/clusters"))),
        (f"a page of {PAGE_SIZE} of a tenant's {EACH + REFUSED} clusters", _walk("a tenant's clusters", next_of_api(tenant, "/clusters"))),
    ):
        for percent in (50, 99):
            ours, theirs = percentile(walked, percent) * 1000, percentile(server, percent) * 1000
            goal = at_most(ours, 50, "ms") if percent == 99 else None
            yield Row(
                f"{what} by the REST API, p{percent}",
                f"{ours:.0f} ms",
                f"API server alone: {theirs:.0f} ms",
                f"{ours / theirs:.2f} x",
                goal,
            )


def _walk(what: str, next_page: Callable[[str], str]) -> list[float]:
    """The seconds of each page. After the last page comes the first."""
    cursor, taken = "", []
    with timed(f"{PAGES} pages of {what}"):
        for _page in range(PAGES):
            began = time.monotonic()
            cursor = next_page(cursor)
            taken.append(time.monotonic() - began)
    return sorted(taken)


def _lag(home: FleetHome, api: FleetApi) -> Iterator[Row]:
    """From the response to the write of an assignment's status, as the agent of a hub writes it, until a client of the API receives it."""
    kube = home.access.kube
    chosen = [item for item in kube.list_all(API_VERSION, ASSIGNMENT) if item["spec"]["cluster"]["namespace"] == "tenant-0"][:CHANGES]
    shown: dict[str, float] = {}
    stream = ApiClient(api, home.token("tenant-0", USER)).open("/events")
    threading.Thread(target=_follow, args=(stream, shown), daemon=True).start()
    until(lambda: "synced" in shown, "the client has the present state", WAIT_SECONDS)
    sent = {}
    with timed(f"{CHANGES} assignments change one after the other"):
        for item in chosen:
            sets = {"workers": {"class": CLASS, "size": 1, "ready": 1}}
            status = {"state": "Ready", "observedGeneration": item["metadata"]["generation"], "nodeSets": sets}
            kube.patch(item, {"status": status}, subresource="status", checked=False)
            sent[item["metadata"]["name"]] = time.monotonic()
            time.sleep(PACE_SECONDS)
        until(lambda: sent.keys() <= shown.keys(), "the client has received each change", WAIT_SECONDS)
    lags = sorted(shown[uid] - began for uid, began in sent.items())
    for percent in (50, 99):
        lag = percentile(lags, percent) * 1000
        yield Row(f"a hub's report until a client of the REST API receives it, p{percent}", f"{lag:.0f} ms")


def _follow(stream: http.client.HTTPResponse, shown: dict[str, float]) -> None:
    """Note when each cluster was Ready for the first time, and when the present state was complete."""
    kind = ""
    for line in stream:
        name, _colon, value = line.decode().strip().partition(": ")
        if name == "event":
            kind = value
            if kind == "synced":
                shown["synced"] = time.monotonic()
        elif name == "data" and kind in ("added", "modified"):
            item = json.loads(value)
            if item["status"].get("state") == "Ready":
                shown.setdefault(item["id"], time.monotonic())


def _memory(pid: int) -> int:
    return int(re.findall(r"^VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[0]) // 1024


def _each(kube: Kube, work: Callable[[Any], None], items: Any) -> None:
    for result in kube.in_parallel(work, items):
        if isinstance(result, KubeError):
            raise result
