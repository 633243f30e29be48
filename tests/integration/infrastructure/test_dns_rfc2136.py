"""DNS records by dynamic updates on a real DNS server, and the locks on a real API server."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure import dns_resolution, dns_rfc2136
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE

from ..orders.test_sweep import sweep
from ..support.actions import answer
from ..support.name_server import KEY_NAME, ZONE, NameServer, name_server
from ..support.orders import Orders
from ..support.playbooks import Answer
from ..support.restored import adopt, restore

RECORDS = {"api": ["192.0.2.10"], "api-int": ["192.0.2.10"], "*.apps": ["192.0.2.11", "2001:db8::11"]}
SECRET = "dns-key"  # noqa: S105 - its name
Task = Callable[..., Answer]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServer]:
    with name_server(tmp_path_factory.mktemp("knot")) as running:
        yield running


@pytest.fixture
def task(server: NameServer, orders: Orders) -> Iterator[Task]:
    """The task for a cluster of that name, which has no order."""
    secret = _secret(orders.hub, SECRET, server.key)

    def run(name: str, state: str = "present", **arguments: Any) -> Answer:
        cluster = {"name": name, "namespace": orders.namespace, "provider": "hypershift", "kubeconfig": str(orders.hub.kubeconfig)}
        settings = {"server": "127.0.0.1", "port": server.port, "secret": SECRET} | arguments.pop("rfc2136", {})
        records = {"records": RECORDS} if state == "present" else {}
        return answer("cluster_dns_records", **{"zone": ZONE, **cluster, **records, **arguments}, state=state, rfc2136=settings)

    yield run
    orders.kube.delete(secret)


def _secret(hub: Access, called: str, key: str) -> Object:
    encoded = {name: base64.b64encode(value.encode()).decode() for name, value in {"name": KEY_NAME, "secret": key}.items()}
    return hub.kube.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": called, "namespace": SITE_NAMESPACE}, "data": encoded}
    )


def test_the_records_of_a_cluster_are_written_once_and_deleted(server: NameServer, task: Task) -> None:
    before = server.serial
    predicted = task("demo", check=True)
    assert predicted.changed and not predicted.result["visible"] and server.serial == before
    written = task("demo")
    assert written.changed and written.result["visible"] and written.result["part"]["reason"] == "RecordsVisible"
    assert "*.apps.demo.example.com 300 AAAA 2001:db8::11" in written.result["diff"]["after"]
    assert server.values("api.demo.example.com") == server.values("api-int.demo.example.com") == {"192.0.2.10"}
    assert server.values("console.apps.demo.example.com", "AAAA") == {"2001:db8::11"}
    assert server.serial == before + 1, "one update has all records"
    assert not task("demo").changed and server.serial == before + 1

    unknown = task("demo", records={"api": ["192.0.2.10"], "api-int": ["192.0.2.10"]}, keep=["*.apps", "never-written"])
    assert not unknown.failed and not unknown.changed, "an address that is unknown for a while costs no record"
    assert server.values("console.apps.demo.example.com", "AAAA") == {"2001:db8::11"}

    moved = task("demo", records={"api": ["lb.example.net"], "*.apps": ["192.0.2.11"]})
    assert moved.changed and moved.result["visible"]
    assert server.values("api.demo.example.com", "CNAME") == {"lb.example.net."}
    assert server.values("api-int.demo.example.com") == server.values("x.apps.demo.example.com", "AAAA") == set()
    assert "api.demo.example.com 300 A 192.0.2.10" in moved.result["diff"]["before"]

    assert task("demo", "absent").changed
    for name, kind in {"api": "CNAME", "x.apps": "A", "_openfleet-clusters": "TXT"}.items():
        assert server.values(f"{name}.demo.example.com", kind) == set()
    assert not task("demo", "absent").changed


def test_records_that_are_not_visible_are_reported_for_a_later_event(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns_resolution, "QUERY_SECONDS", 0.5)
    written = task("hidden", resolvers=[f"127.0.0.1:{free_port()}"])
    assert not written.failed and written.changed and not written.result["visible"]
    assert written.result["part"]["reason"] == "RecordsNotVisible"
    assert "api.hidden.example.com" in written.result["part"]["message"]
    later = task("hidden")
    assert not later.changed and later.result["part"]["ready"]
    task("hidden", "absent")


def test_no_cluster_changes_the_records_of_another_or_of_people(server: NameServer, task: Task) -> None:
    task("first", domain="shared.example.com")
    serial = server.serial
    refused = task("second", domain="shared.example.com")
    assert refused.result["reason"] == "DnsNameTaken" and "belong to another cluster" in refused.message
    for name, domain in (("second", "shared.example.com"), ("second", "of.another.zone"), ("sec.ond", None)):
        left = task(name, "absent", domain=domain)
        assert not left.failed and not left.changed, "what was refused does not keep a cluster from its deletion"
    refused = task("third", domain=ZONE, records={"ns": ["192.0.2.66"]})
    assert "ns.example.com has DNS records that this collection did not make" in refused.message
    assert server.serial == serial and server.values("ns.example.com") == {"127.0.0.1"}
    task("first", "absent", domain="shared.example.com")


def test_of_clusters_that_claim_a_domain_at_once_one_has_it(server: NameServer, task: Task) -> None:
    names = [f"racer-{number}" for number in range(4)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda name: task(name, domain="race.example.com", records={"api": ["192.0.2.1"]}), names))
    assert sorted(item.failed for item in found) == [False, True, True, True]
    assert {item.result["reason"] for item in found if item.failed} == {"DnsNameTaken"}
    task(names[[item.failed for item in found].index(False)], "absent", domain="race.example.com")
    assert server.values("api.race.example.com") == set()


def test_a_run_that_lost_its_lock_writes_nothing(server: NameServer, task: Task, orders: Orders) -> None:
    locks = []
    for holder in ("late", "current"):
        locks.append(lease.acquire(orders.kube, orders.namespace, "fenced", holder, duration=3600).as_dict())
        if holder == "late":
            lease.release(orders.kube, lease.Lock(**locks[0]))
    serial = server.serial
    assert task("fenced", lock=locks[0]).result["reason"] == "LockLost" and server.serial == serial
    assert task("fenced", lock=locks[1]).changed
    late = task("fenced", "absent", lock=locks[0])
    assert "written by a later run" in late.message and server.values("api.fenced.example.com") == {"192.0.2.10"}
    task("fenced", "absent", lock=locks[1])


@pytest.mark.parametrize(
    ("settings", "reason", "message"),
    [
        ({"port": 1}, "DnsUnreachable", "The DNS server 127.0.0.1 port 1 does not answer (Connection refused): check its address"),
        ({"server": "no-such-host.invalid"}, "DnsUnreachable", "cannot be found"),
        ({"secret": None}, "DnsRefused", "refuses the update of the zone example.com"),
        ({"secret": "dns-other-key"}, "DnsRefused", "check its TSIG key"),
        ({"secret": "no-such-secret"}, "SiteMistake", "The Secret no-such-secret with the credentials for DNS does not exist"),
        ({"secret": "dns-bad-key"}, "SiteMistake", "has no TSIG key"),
    ],
)
def test_a_server_that_cannot_be_used_has_one_message_without_its_key(
    server: NameServer, task: Task, orders: Orders, settings: Object, reason: str, message: str
) -> None:
    other = base64.b64encode(b"another key of thirty-two bytes.").decode()
    made = [
        _secret(orders.hub, "dns-other-key", other),
        _secret(orders.hub, "dns-bad-key", "%"),
    ]
    serial = server.serial
    refused = task("refused", rfc2136=settings)
    for secret in made:
        orders.kube.delete(secret)
    assert refused.result["reason"] == reason and message in refused.message
    assert server.serial == serial
    assert server.key not in json.dumps(refused.result) and other not in json.dumps(refused.result)


def test_a_zone_that_the_server_does_not_serve_is_named(task: Task) -> None:
    refused = task("demo", zone="example.org")
    assert refused.result["reason"] == "DnsRefused" and "check that it serves the zone example.org" in refused.message


def test_a_server_that_accepts_and_never_answers_ends_in_time(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(dns_rfc2136, "REQUEST_SECONDS", 0.5)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        refused = task("demo", rfc2136={"port": silent.getsockname()[1]})
    assert refused.result["reason"] == "DnsUnreachable" and "no answer in time" in refused.message


def test_an_unreachable_server_is_reported_on_the_order_which_has_nothing(server: NameServer, orders: Orders) -> None:
    install = f"""
- name: Write the DNS records
  openfleet.clusters.cluster_dns_records:
    zone: {ZONE}
    records: {{api: [192.0.2.1]}}
    rfc2136: {{server: 127.0.0.1, port: 1}}
"""
    orders.apply(template=orders.template("named", install=install), nodes={"fc430": 1})
    orders.run("provision", "demo").complete()
    failure = orders.status()["failure"]
    assert failure["reason"] == "DnsUnreachable" and failure["retryable"] and failure["task"] == "Write the DNS records"
    assert orders.hosted_cluster() is None and server.values("api.demo.example.com") == set()


def named_template(orders: Orders, server: NameServer, domain: str) -> str:
    """A template that has DNS records and nothing else."""
    text = """
- name: Have the DNS records
  openfleet.clusters.cluster_dns_records:
    state: {state}
    zone: {zone}
    domain: {domain}
    records: {{api: [192.0.2.1]}}
    rfc2136: {{server: 127.0.0.1, port: {port}, secret: {secret}}}
"""
    states = {"install": "present", "delete": "absent"}
    tasks = {entry: text.format(state=state, zone=ZONE, domain=domain, port=server.port, secret=SECRET) for entry, state in states.items()}
    return orders.template("of_names", **tasks)


@pytest.mark.usefixtures("task")  # it has the key on the hub
def test_a_restored_order_has_the_records_of_its_cluster_once_it_adopted_it(server: NameServer, orders: Orders) -> None:
    orders.apply(template=named_template(orders, server, "restored.example.com"), nodes={"fc430": 1})
    orders.run("provision", "demo").complete().successful()
    before = server.serial
    for _each in range(2):  # a second restore finds the records of the first order, whose uid is not the last one
        _former, restored = restore(orders)
        assert adopt(orders)["changed"] and not adopt(orders)["changed"]
    assert server.serial == before, "the run of the template moves them, not the adoption"
    orders.run("provision", "demo").complete().successful()
    (claim,) = server.values("_openfleet-clusters.restored.example.com", "TXT")
    assert f"owner={restored} " in claim and server.values("api.restored.example.com") == {"192.0.2.1"}
    orders.run("provision", "demo").complete().successful()
    assert server.serial == before + 1
    restore(orders)
    adopt(orders)
    orders.run("delete", "demo").complete().successful()
    assert server.values("_openfleet-clusters.restored.example.com", "TXT") == server.values("api.restored.example.com") == set()


@pytest.mark.usefixtures("task")
def test_the_records_of_a_deleted_order_are_deleted_with_its_namespace_once_the_server_answers(
    server: NameServer, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.apply(template=named_template(orders, server, "left.example.com"), nodes={"fc430": 1})
    orders.run("provision", "demo").complete().successful()
    orders.patch({"metadata": {"finalizers": None}})
    orders.ask_to_delete()
    sweep(orders, timedelta(0))  # it reports the namespace
    assert server.values("api.left.example.com") == {"192.0.2.1"}
    with monkeypatch.context() as unreachable:
        unreachable.setattr(dns_rfc2136, "TOTAL_SECONDS", -1.0)
        sweep(orders, timedelta(0))
    assert orders.kube.find("v1", "Namespace", orders.working()), "it says where the records are"
    until(lambda: not sweep(orders, timedelta(0)), "the namespace is deleted")
    assert server.values("api.left.example.com") == server.values("_openfleet-clusters.left.example.com", "TXT") == set()
