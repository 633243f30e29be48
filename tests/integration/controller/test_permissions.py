"""The account that the rules engine runs with in a cluster: its rights are enough for the whole life of an order, and none is too much."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import urllib3
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import acquire, release

from ..support.deployment import Deployed, account_kubeconfig, install, manifest
from ..support.engines import AtWork, running
from ..support.orders import Orders
from ..support.permissions import Recorder, Right, rights_of, rights_used, without
from ..support.samples import FAULT

# What the server looks for on the way to something else, and no request of its own.
IMPLIED = {Right("rbac.authorization.k8s.io", "clusterroles", "bind")}
ROLE = manifest("cluster_role")
RBAC, HYPERSHIFT = "rbac.authorization.k8s.io", "hypershift.openshift.io"
# What the event source does for all orders at once.
FOLLOWED = {right for right in rights_of(ROLE) if right.verb in ("list", "watch") and right.resource != "secrets"}
HOLD = "acme.example/hold"


def named(right: Right) -> str:
    """How it is said that this right is missing."""
    return "grant the verb bind of that role" if right.verb == "bind" else f'cannot {right.verb} resource "{right.resource}"'


class Site(AtWork):
    engine: Deployed
    recorder: Recorder

    def delete_slowly(self, *names: str, until_then: Callable[[str], bool] = lambda _name: False) -> None:
        """Delete orders whose clusters are still there when their first runs end, as it is with HyperShift; second ones do the rest.

        Of those for which `until_then` holds nothing more is expected.
        """
        runs = {name: self.orders.lease(name)["leaseTransitions"] for name in names}
        for name in names:
            self._patch_cluster(name, "json", [{"op": "add", "path": "/metadata/finalizers/-", "value": HOLD}])
        self.hub.kubectl("delete", self.orders.kind, *names, "-n", self.orders.namespace, "--wait=false")

        def one_run_has_ended(name: str) -> bool:
            lock = self.orders.lease(name)
            return lock["leaseTransitions"] > runs[name] and not lock.get("holderIdentity")

        for name in names:
            until(lambda name=name: until_then(name) or one_run_has_ended(name), f"{name} is deleted as far as it goes; {self.engine.log}")
        for name in names:
            held = self.hub.get("hostedcluster", name, "-n", self.orders.working(name))["metadata"]["finalizers"]
            self._patch_cluster(name, "merge", {"metadata": {"finalizers": [entry for entry in held if entry != HOLD]}})
        for name in names:
            until(lambda name=name: until_then(name) or self.orders.is_gone(name), f"{name} is gone; the log is {self.engine.log}")

    def _patch_cluster(self, name: str, kind: str, patch: object) -> None:
        place = ("hostedcluster", name, "-n", self.orders.working(name))
        self.hub.kubectl("patch", *place, f"--type={kind}", "-p", json.dumps(patch))


@pytest.fixture(scope="module")
def site(new_sandbox: Callable[..., Sandbox], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    sandbox, folder = new_sandbox(status_only=True), tmp_path_factory.mktemp("site")
    hub = Access(sandbox.kubeconfig())
    install(hub)
    with fresh_namespace(hub) as namespace, Recorder(hub).running() as recorder:
        orders = Orders(hub, namespace, folder)
        orders.template("finished", post_install="[]\n")
        account = Access(account_kubeconfig(hub, f"http://127.0.0.1:{recorder.port}", folder / "account.kubeconfig"))
        with running(Deployed(account, folder)) as engine:
            yield Site(hub=hub, orders=orders, engine=engine, recorder=recorder)
    sandbox.down()


def test_a_pod_of_the_deployment_is_let_into_a_namespace_for_restricted_pods(site: Site) -> None:
    template = manifest("deployment")["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"], "metadata": template["metadata"] | {"generateName": "engine-"}}
    place = ("-n", manifest("namespace")["metadata"]["name"])
    site.hub.kubectl("create", "--dry-run=server", "-f", "-", *place, stdin=json.dumps(pod))
    pod["spec"]["containers"][0]["securityContext"].pop("capabilities")
    refused = site.hub.kubectl("create", "--dry-run=server", "-f", "-", *place, stdin=json.dumps(pod), check=False)
    assert "unrestricted capabilities" in refused.stderr


def test_with_the_rights_of_the_manifest_and_no_others_an_order_lives_its_whole_life(site: Site) -> None:
    site.orders.place("demo", nodes={"fc430": 1}, template="acme.site.finished")
    site.until_phase("Ready", "demo")
    site.orders.place("demo", nodes={"fc430": 2}, template="acme.site.finished")
    until(lambda: site.orders.condition("NodesReady")["message"] == "2 of 2 nodes ready", "it is scaled")
    site.until_phase("Ready", "demo")
    place = ("hostedcluster", "demo", "-n", site.orders.working("demo"))
    site.hub.kubectl("annotate", *place, f"{FAULT}=degraded")
    site.until_phase("Degraded", "demo")
    site.hub.kubectl("annotate", *place, f"{FAULT}-")
    site.until_phase("Ready", "demo")
    site.delete_slowly("demo")
    actions = site.engine.actions(f"{site.orders.namespace}/demo")
    assert actions[:2] == ["provision", "post_install"]
    assert actions[-1] == "delete"
    assert site.recorder.refused == set()
    assert site.recorder.used | IMPLIED == rights_of(ROLE)


class LessBy:
    """Somebody for each right who has all of them but that one."""

    def __init__(self, site: Site) -> None:
        self.users = {right: f"without-{number:02}" for number, right in enumerate(sorted(rights_of(ROLE)))}
        self._site = site
        roles = [without(ROLE, right) | {"metadata": {"name": user}} for right, user in self.users.items()]
        bindings = [_binding(user, user, {"kind": "User", "name": user, "apiGroup": RBAC}) for user in self.users.values()]
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "actor", "namespace": site.orders.namespace}}
        actor = _binding("actor", "cluster-admin", {"kind": "ServiceAccount", "name": "actor", "namespace": site.orders.namespace})
        items = {"apiVersion": "v1", "kind": "List", "items": [account, *roles, *bindings, actor]}
        site.hub.kubectl("create", "-f", "-", stdin=json.dumps(items))
        site.recorder.credential = site.hub.kubectl("create", "token", "actor", "-n", site.orders.namespace).stdout.strip()
        last = ("auth", "can-i", "list", "namespaces", f"--as={bindings[-1]['metadata']['name']}")
        until(lambda: site.hub.kubectl(*last, check=False).returncode == 0, "the server knows them all")

    def for_orders(self) -> None:
        """What is asked for about an order is asked by whom the order is named after."""
        self._site.recorder.act_as = lambda _method, path, body: _found(r"without-\d\d", f"{path} {body.decode()}")

    def for_all(self, missing: set[Right]) -> None:
        """Whatever needs one of these rights is asked by whoever does not have it."""

        def act_as(method: str, path: str, _body: bytes) -> str:
            address = urlsplit(path)
            needed = rights_used(method, address.path, dict(parse_qsl(address.query)), 200) & missing
            return self.users[needed.pop()] if needed else ""

        self._site.recorder.act_as = act_as


def _binding(name: str, role: str, subject: dict[str, str]) -> dict[str, Any]:
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    about = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}}
    return about | {"roleRef": reference, "subjects": [subject]}


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


@pytest.fixture(scope="module")
def less(site: Site) -> Iterator[LessBy]:
    yield LessBy(site)
    site.recorder.act_as = lambda _method, _path, _body: ""


def test_whichever_right_is_missing_for_an_order_is_named(site: Site, less: LessBy) -> None:
    """As many orders as rights, each carried out by somebody who has one right less, many in the same runs."""
    less.for_orders()
    kube = Kube.connect({"kubeconfig": str(site.hub.kubeconfig)})
    rights = {user: right for right, user in less.users.items() if right not in FOLLOWED}
    # A run that cannot lock its order holds up others for a while: nobody knows whether it has begun.
    locks = [user for user, right in rights.items() if right.resource == "leases"]
    others = [user for user in rights if user not in locks]
    failures: dict[str, dict[str, Any]] = {}

    def unnamed(users: Iterable[str]) -> list[str]:
        text = site.engine.text()
        return [user for user in users if named(rights[user]) not in text]

    def are_ready() -> bool:
        """All whose right was not named."""
        items = site.hub.get(site.orders.kind, "-n", site.orders.namespace)["items"]
        statuses = {item["metadata"]["name"]: item.get("status", {}) for item in items}
        failures.update({name: status["failure"] for name, status in statuses.items() if "failure" in status})
        return all(statuses[user].get("phase") == "Ready" for user in unnamed(others))

    def place(users: list[str]) -> None:
        with ThreadPoolExecutor(4) as tenants:
            list(tenants.map(lambda user: site.orders.place(user, nodes={"fc430": 1}, template="acme.site.finished"), users))

    place(others)
    until(are_ready, f"all are Ready, or say why not; the log is {site.engine.log}", 300)
    site.delete_slowly(*unnamed(others), until_then=lambda user: not unnamed([user]))
    for user in locks:
        if rights[user].verb == "patch":  # of a lock that was there before
            release(kube, acquire(kube, site.orders.namespace, user, "somebody"))
    place(locks)
    until(lambda: not unnamed(locks), f"{locks} say why not; the log is {site.engine.log}", 300)
    assert [rights[user] for user in unnamed(rights)] == []
    assert len(failures) > len(rights) / 2, "most are named on the order"
    for user, failure in failures.items():
        assert named(rights[user]) in failure["message"] and "\n" not in failure["message"]
        assert failure["retryable"], "a right may be granted any time"


def test_it_ends_in_order_and_a_new_one_is_not_well_and_says_why_where_it_may_not_follow(site: Site, less: LessBy) -> None:
    assert site.engine.end(signal.SIGTERM) == 0
    assert site.engine.said("released the leader Lease")  # so it was not ended on the spot
    assert site.engine.processes() == []
    lists, watches = ({right for right in FOLLOWED if right.verb == verb} for verb in ("list", "watch"))
    of_clusters = {right for right in FOLLOWED if right.group == HYPERSHIFT}
    less.for_all(lists - of_clusters)
    site.engine.start(wait=False)
    said_of(site, lists - of_clusters)
    answer = urllib3.request("GET", f"http://127.0.0.1:{site.engine.port}/healthz", timeout=10)
    assert (answer.status, "ClusterOrder is not listed yet" in answer.data.decode()) == (503, True)
    pools = {right for right in of_clusters if right.resource == "nodepools"}  # which are followed when clusters are
    for missing in (
        (watches - of_clusters) | (lists & of_clusters - pools),
        (watches & of_clusters - pools) | (lists & pools),
        watches & pools,
    ):
        less.for_all(missing)
        said_of(site, missing)
    less.for_all(set())
    until(site.engine.is_well, f"with all rights it is well; the log is {site.engine.log}")


def said_of(site: Site, rights: set[Right]) -> None:
    for right in rights:
        until(lambda right=right: site.engine.said(f"watch of .*{re.escape(named(right))}"), f"{named(right)!r} is in {site.engine.log}")
