"""Tenants that create, change and delete clusters through the REST API at random moments, and what has to remain of that in the end."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import urllib3
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.assigned_order import UID_LABEL
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import (
    API_VERSION,
    ASSIGNMENT,
    CLUSTER,
    FINALIZER,
    HUB,
    QUOTA,
    QUOTA_NAME,
    RECORD,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError

from .fleet import TEMPLATE
from .fleet_api import Answer, Client, Tenant
from .order_standin import ORDER, ORDERS

WORKERS = 8
RETRY_SECONDS, PATIENCE = 0.3, 300.0
DELETED, RESIZED = 0.6, 0.2  # the shares of the clusters
LARGEST = 3
MERGE = "application/merge-patch+json"


@dataclass
class Life:
    """What a tenant does with one cluster, and when, in seconds from the beginning."""

    tenant: Tenant
    name: str
    nodes: int
    created_at: float
    resized_at: float | None = None
    deleted_at: float | None = None
    later_nodes: int = 0
    uid: str = ""
    had_finalizer: bool = False
    had_hub: bool = False

    @property
    def final_nodes(self) -> int:
        return self.later_nodes or self.nodes


def lives_of(tenants: list[Tenant], count: int, seconds: float, randomness: random.Random) -> list[Life]:
    found = []
    for number in range(count):
        created = randomness.uniform(0, seconds)
        life = Life(tenants[number % len(tenants)], f"cluster-{number}", randomness.randint(1, LARGEST), created)
        share = randomness.random()
        if share < DELETED:
            life.deleted_at = randomness.uniform(created, seconds * 1.2)
        elif share < DELETED + RESIZED:
            life.resized_at, life.later_nodes = randomness.uniform(created, seconds * 1.2), randomness.randint(1, LARGEST)
        found.append(life)
    return found


@dataclass
class Load:
    """Lives the lives. A request that fails because a part is killed is repeated."""

    home: Access
    lives: list[Life]

    def live(self) -> None:
        began = time.monotonic()
        steps: list[tuple[float, Any, Life]] = []
        for life in self.lives:
            steps.append((life.created_at, self._create, life))
            steps += [(moment, step, life) for moment, step in ((life.resized_at, self._resize), (life.deleted_at, self._delete)) if moment]
        created: dict[str, Future[None]] = {}

        def take(moment: float, step: Any, life: Life) -> None:
            time.sleep(max(0.0, began + moment - time.monotonic()))
            if step != self._create:
                created[life.name].result()
            step(life)

        with ThreadPoolExecutor(WORKERS) as workers:
            futures = []
            for moment, step, life in sorted(steps, key=lambda each: each[0]):
                future = workers.submit(take, moment, step, life)
                created.setdefault(life.name, future)  # the first step of a life
                futures.append(future)
        for future in futures:
            future.result()

    def delete_all(self) -> None:
        """Delete the clusters that were kept."""
        kept = [life for life in self.lives if life.deleted_at is None]
        with ThreadPoolExecutor(WORKERS) as workers:
            list(workers.map(self._delete, kept))
        for life in kept:
            life.deleted_at = 0.0

    def _create(self, life: Life) -> None:
        spec = {"template": TEMPLATE, "nodeSets": {"workers": {"class": "fc430", "size": life.nodes}}}
        answer = _persistent(life.tenant.client, "POST", "/clusters", {"name": life.name, "spec": spec}, Idempotency_Key=life.name)
        assert answer.status == 202, answer.body
        life.uid = answer.json()["id"]

    def _resize(self, life: Life) -> None:
        changes = {"spec": {"nodeSets": {"workers": {"class": "fc430", "size": life.later_nodes}}}}
        answer = _persistent(life.tenant.client, "PATCH", f"/clusters/{life.uid}", changes, Content_Type=MERGE)
        assert answer.status == 200, answer.body

    def _delete(self, life: Life) -> None:
        """A cluster that had the finalizer of the fleet leaves a record, with its hub if it had one."""
        item = self._observed(life)
        life.had_finalizer = FINALIZER in (item["metadata"].get("finalizers") or ())
        life.had_hub = bool((item.get("status") or {}).get("hub"))
        answer = _persistent(life.tenant.client, "DELETE", f"/clusters/{life.uid}")
        assert answer.status in (202, 404), answer.body  # the answer to the first try may have been lost

    def _observed(self, life: Life) -> Object:
        try:
            return self.home.kube.get(API_VERSION, CLUSTER, life.name, life.tenant.name)
        except KubeError:  # its API server is killed: what the cluster has is not known
            return {"metadata": {}}


def _persistent(client: Client, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    """Send the request until a part that was killed does not stop it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            answer = client(method, path, body, **headers)
            if answer.status < 500 and answer.status != 429:
                return answer
        except urllib3.exceptions.HTTPError:
            pass
        assert time.monotonic() < deadline, f"{method} {path} does not succeed"
        time.sleep(RETRY_SECONDS)


# What has to be in the end


def differences(home: Access, hub: Access, lives: Iterable[Life]) -> list[str]:
    """What of the fleet is not as the tenants left it; empty in the end."""
    lives = list(lives)
    tenants = {life.tenant.name for life in lives}
    kept = {life.uid: life for life in lives if life.deleted_at is None}
    gone = {life.uid: life for life in lives if life.deleted_at is not None}
    clusters = _by_uid(each for each in home.kube.list_all(API_VERSION, CLUSTER) if each["metadata"]["namespace"] in tenants)
    hub_of = {uid: str((each.get("status") or {}).get("hub", "")) for uid, each in clusters.items()}
    found = [_difference("clusters", kept, clusters)]
    for uid, item in clusters.items():
        if life := kept.get(uid):
            state, nodes = (item.get("status") or {}).get("state"), (item.get("status") or {}).get("nodes")
            if (state, nodes) != ("Ready", f"{life.final_nodes}/{life.final_nodes}"):
                found.append(f"{life.name} is {state} with {nodes} nodes instead of {life.final_nodes}: {_why(item)}")
    found += _reservation_differences(home, tenants, kept, hub_of)
    assigned = {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in home.kube.list_all(API_VERSION, ASSIGNMENT)}
    found.append(_difference("assignments", {(f"hub-{hub_of[uid]}", uid) for uid in clusters}, assigned))
    orders = [each["metadata"]["labels"][UID_LABEL] for each in hub.kube.list_all(ORDERS, ORDER, label_selector=UID_LABEL)]
    found.append(_difference("orders", sorted(kept), sorted(orders)))
    found += _record_differences(home, tenants, gone)
    return [each for each in found if each]


def _reservation_differences(home: Access, tenants: set[str], kept: dict[str, Life], hub_of: dict[str, str]) -> list[str]:
    found = []
    for namespace in sorted(tenants):
        status = home.kube.get(API_VERSION, QUOTA, QUOTA_NAME, namespace).get("status") or {}
        wanted = {uid: life.final_nodes for uid, life in kept.items() if life.tenant.name == namespace}
        reserved = {uid: each["amounts"]["nodes"] for uid, each in (status.get("reservations") or {}).items()}
        found.append(_difference(f"reservations of {namespace}", wanted.items(), reserved.items()))
        used = (status.get("used") or {}).get("nodes", 0)
        if used != sum(wanted.values()):
            found.append(f"{namespace} uses {used} nodes instead of {sum(wanted.values())}")
    for item in home.kube.list_all(API_VERSION, HUB):
        name, status = item["metadata"]["name"], item.get("status") or {}
        wanted = {uid: life.final_nodes for uid, life in kept.items() if hub_of.get(uid) == name}
        reserved = {uid: sum(each["nodes"].values()) for uid, each in (status.get("reservations") or {}).items()}
        found.append(_difference(f"reservations on {name}", wanted.items(), reserved.items()))
    return found


def _record_differences(home: Access, tenants: set[str], gone: dict[str, Life]) -> list[str]:
    """Each deleted cluster has one complete record. One that was deleted before the fleet knew of it may have none."""
    records = {each["spec"]["uid"]: each["spec"] for namespace in tenants for each in home.kube.list_all(API_VERSION, RECORD, namespace)}
    found = [f"{life.name} has no record" for uid, life in gone.items() if life.had_finalizer and uid not in records]
    found += [f"{uid} has a record, and was not deleted" for uid in records if uid not in gone]
    for uid, record in records.items():
        if (life := gone.get(uid)) and (record["name"], record["reason"]) != (life.name, "Deleted"):
            found.append(f"the record of {life.name} says {record}")
        bound = ("hub", "nodeHours") if uid in gone and gone[uid].had_hub else ()
        if missing := [name for name in ("owner", "created", "deleted", "template", *bound) if not record.get(name)]:
            found.append(f"the record of {record['name']} lacks {', '.join(missing)}")
    return found


def _by_uid(items: Iterable[Object]) -> dict[str, Object]:
    return {each["metadata"]["uid"]: each for each in items}


def _why(item: Object) -> str:
    conditions = (item.get("status") or {}).get("conditions") or ()
    return "; ".join(f"{each['type']} {each['status']} {each['message']}" for each in conditions)


def _difference(what: str, wanted: Iterable[Any], found: Iterable[Any]) -> str:
    wanted, found = list(wanted), list(found)
    missing, more = [each for each in wanted if each not in found], [each for each in found if each not in wanted]
    doubled = len(found) - len(set(map(str, found)))
    if not missing and not more and not doubled:
        return ""
    return f"{what}: missing {missing[:3]} ({len(missing)}), too many {more[:3]} ({len(more)}), double {doubled}"


# What holds at any moment


class Watchman:
    """Reads quotas, hubs and assignments again and again, and notes what must never be."""

    def __init__(self, home: Access) -> None:
        self._home = home
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.samples = 0
        self.violations: list[str] = []

    def __enter__(self) -> Watchman:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(0.2):
            try:
                self._observe()
                self.samples += 1
            except KubeError:
                continue  # its API server is killed

    def _observe(self) -> None:
        for item in self._home.kube.list_all(API_VERSION, QUOTA):
            reserved = (item.get("status") or {}).get("reservations") or {}
            for name, hard in (item["spec"].get("hard") or {}).items():
                if (used := sum(each["amounts"].get(name, 0) for each in reserved.values())) > hard:
                    self.violations.append(f"{item['metadata']['namespace']} has {used} {name} of {hard}")
        for item in self._home.kube.list_all(API_VERSION, HUB):
            reserved = (item.get("status") or {}).get("reservations") or {}
            if len(reserved) > item["spec"]["capacity"]["clusters"]:
                self.violations.append(f"{item['metadata']['name']} has {len(reserved)} clusters")
        names = [each["metadata"]["name"] for each in self._home.kube.list_all(API_VERSION, ASSIGNMENT)]
        if len(set(names)) < len(names):
            self.violations.append("a cluster is assigned to two hubs")
