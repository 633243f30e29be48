"""The account that the rules engine has in a cluster: its permissions are enough for the whole life of an order, and none is too many."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import acquire, release

from ..support.deployment import Deployed, account_kubeconfig
from ..support.engines import running
from ..support.manifests import manifest
from ..support.orders import Orders
from ..support.permissions import Permission, Recorder, allowed, permissions_of, permissions_used, without
from ..support.samples import FAULT
from ..support.sources import InProcessEngine, WebhookEngine

ROLE = manifest("cluster_role") | {"rules": manifest("cluster_role")["rules"] + manifest("role")["rules"]}
RBAC, HYPERSHIFT = "rbac.authorization.k8s.io", "hypershift.openshift.io"
# What the event source does for all orders at once.
FOLLOWED = {
    permission
    for permission in permissions_of(ROLE)
    if permission.verb in ("list", "watch") and permission.resource not in ("secrets", "addresspools", "configmaps")
}
POOL = {
    "apiVersion": "infrastructure.openfleet.io/v1alpha1",
    "kind": "AddressPool",
    "metadata": {"name": "vlans", "namespace": "openfleet-system"},
    "spec": {"type": "VLAN", "ranges": ["1-4094"]},
}
INSTALL = """
- name: Allocate a VLAN
  openfleet.clusters.cluster_addresses:
    pools: [{name: vlans}]
- name: Install
  ansible.builtin.include_role:
    name: openfleet.clusters.ocp_4_17_small
    tasks_from: install
    rolespec_validate: false
"""


def named(permission: Permission) -> str:
    """How a message names a missing permission."""
    return f'cannot {permission.verb} resource "{permission.resource}"'


@dataclass(frozen=True)
class Site:
    """A hub with the manifests on it, and its orders, which the engine reaches as the account of the manifests, through the recorder."""

    orders: Orders
    account: Access
    recorder: Recorder

    @property
    def of_account(self) -> Orders:
        return Orders(self.account, self.orders.namespace, self.orders.folder)


@pytest.fixture(scope="module")
def site(quick_hub: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with fresh_namespace(quick_hub) as namespace, Recorder(quick_hub).running() as recorder:
        orders = Orders(quick_hub, namespace, folder)
        orders.template("finished", install=INSTALL, post_install="[]\n")
        pool = quick_hub.kube.create(POOL)
        account = Access(account_kubeconfig(quick_hub, f"http://127.0.0.1:{recorder.port}", folder / "account.kubeconfig"))
        yield Site(orders, account, recorder)
        orders.clean_up()
        quick_hub.kube.delete(pool)


def delete_slowly(orders: Orders, names: Iterable[str], is_named: Callable[[str], bool] = lambda _name: False) -> None:
    """Delete orders whose clusters still exist when their first runs end, as it is with HyperShift; later runs do the rest.

    Of those for which `is_named` holds nothing more is expected.
    """
    runs = {name: orders.lease(name)["leaseTransitions"] for name in names}
    for name in runs:
        orders.hold_cluster(name)
        orders.ask_to_delete(name)

    def one_run_has_ended(name: str) -> bool:
        lock = orders.lease(name)
        return lock["leaseTransitions"] > runs[name] and not lock.get("holderIdentity")

    for name in runs:
        until(lambda name=name: is_named(name) or one_run_has_ended(name), f"the first run that deletes {name} has ended")
    for name in runs:
        orders.release_cluster(name)
    for name in runs:
        until(lambda name=name: is_named(name) or orders.is_deleted(name), f"{name} is deleted")


def test_a_pod_of_the_deployment_is_admitted_to_a_namespace_for_restricted_pods(site: Site) -> None:
    template = manifest("deployment")["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"], "metadata": template["metadata"] | {"generateName": "engine-"}}
    options = ("-n", manifest("namespace")["metadata"]["name"])
    site.orders.hub.kubectl("create", "--dry-run=server", "-f", "-", *options, stdin=json.dumps(pod))
    pod["spec"]["containers"][0]["securityContext"].pop("capabilities")
    refused = site.orders.hub.kubectl("create", "--dry-run=server", "-f", "-", *options, stdin=json.dumps(pod), check=False)
    assert "unrestricted capabilities" in refused.stderr


def test_the_permissions_of_the_manifest_are_enough_for_the_life_of_an_order_and_all_are_used(site: Site) -> None:
    """With a real rules engine, run as the manifest runs it; asked to end, it ends in order."""
    orders = site.orders
    site.recorder.forget()  # another test of this file may have been the first

    def until_phase(phase: str) -> None:
        until(lambda: orders.status().get("phase") == phase, f"it is {phase}; the log is {engine.log}", 600)

    with running(Deployed(site.account, orders.folder)) as engine:
        orders.apply(nodes={"fc430": 1}, template="acme.site.finished")
        until_phase("Ready")
        assert engine.post_with_tls("create-hosted-cluster", {"metadata": {"namespace": orders.namespace, "name": "demo"}}) == 202
        orders.apply(nodes={"fc430": 2}, template="acme.site.finished")
        until(lambda: orders.condition("NodesReady")["message"] == "2 of 2 nodes ready", "it is scaled")
        until_phase("Ready")
        orders.patch_cluster({"metadata": {"annotations": {FAULT: "degraded"}}})
        until_phase("Degraded")
        orders.patch_cluster({"metadata": {"annotations": {FAULT: None}}})
        until_phase("Ready")
        delete_slowly(orders, ["demo"])
        actions = engine.actions(f"{orders.namespace}/demo")
        assert actions[:2] == ["provision", "post_install"]
        assert actions[-1] == "delete"
        assert engine.end(signal.SIGTERM) == 0
        assert engine.said("released the leader Lease")  # so it was not ended on the spot
        assert engine.processes() == []
    assert site.recorder.refused == set()
    assert site.recorder.used == permissions_of(ROLE)


class Users:
    """For each permission a user who has all of them but that one."""

    def __init__(self, site: Site) -> None:
        self.users = {permission: f"without-{number:02}" for number, permission in enumerate(sorted(permissions_of(ROLE)))}
        self._recorder = site.recorder
        hub, namespace = site.orders.hub, site.orders.namespace
        roles = [without(ROLE, permission) | {"metadata": {"name": user}} for permission, user in self.users.items()]
        bindings = [_binding(user, user, {"kind": "User", "name": user, "apiGroup": RBAC}) for user in self.users.values()]
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "actor", "namespace": namespace}}
        actor = _binding("actor", "cluster-admin", {"kind": "ServiceAccount", "name": "actor", "namespace": namespace})
        policy = manifest("policy_config_map")
        policy["data"]["accounts"] += "\n".join(self.users.values())
        hub.kubectl("apply", "-f", "-", stdin=json.dumps(policy))
        self._items = json.dumps({"apiVersion": "v1", "kind": "List", "items": [account, *roles, *bindings, actor]})
        self._hub = hub
        hub.kubectl("create", "-f", "-", stdin=self._items)
        site.recorder.credential = hub.kubectl("create", "token", "actor", "-n", namespace).stdout.strip()
        last = hub.kube.impersonate(bindings[-1]["metadata"]["name"])
        until(lambda: allowed(last, "list", "namespaces"), "the server knows them all")

    def delete(self) -> None:
        self._hub.kubectl("delete", "-f", "-", "--wait=false", stdin=self._items)
        self._hub.kubectl("apply", "-f", "-", stdin=json.dumps(manifest("policy_config_map")))

    def for_orders(self) -> None:
        """Whatever is about an order is requested by the user whom the order is named after."""
        self._recorder.act_as = lambda _method, path, body: _found(r"without-\d\d", f"{path} {body.decode()}")

    def for_all(self, missing: set[Permission]) -> None:
        """Whatever needs one of these permissions is requested by the user without it."""

        def act_as(method: str, path: str, _body: bytes) -> str:
            address = urlsplit(path)
            needed = permissions_used(method, address.path, dict(parse_qsl(address.query)), 200) & missing
            return self.users[needed.pop()] if needed else ""

        self._recorder.act_as = act_as


def _binding(name: str, role: str, subject: dict[str, str]) -> dict[str, Any]:
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    about = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}}
    return about | {"roleRef": reference, "subjects": [subject]}


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


@pytest.fixture(scope="module")
def users(site: Site) -> Iterator[Users]:
    made = Users(site)
    yield made
    site.recorder.act_as = lambda _method, _path, _body: ""
    made.delete()


def test_whichever_permission_is_missing_for_an_order_is_named(site: Site, users: Users, caplog: pytest.LogCaptureFixture) -> None:
    """As many orders as permissions, each reconciled by a user without one of them, many in the same runs."""
    users.for_orders()
    orders = site.orders
    # No order fails for its Events. A run reads the settings of the site once for all its orders, and no list of pools
    # names an order.
    others_use = {permission for permission in permissions_of(ROLE) if permission.resource in ("events", "configmaps", "addresspools")}
    missing = {user: permission for permission, user in users.users.items() if permission not in FOLLOWED | others_use}
    locks = [user for user, permission in missing.items() if permission.resource == "leases"]
    others = [user for user in missing if user not in locks]
    failures: dict[str, dict[str, Any]] = {}

    def unnamed(some: Iterable[str]) -> list[str]:
        text = caplog.text + "".join(run.messages for run in list(engine.runs))
        return [user for user in some if named(missing[user]) not in text]

    def are_ready() -> bool:
        """All whose missing permission was not named."""
        items = orders.kube.list_all(orders.api_version, "ClusterOrder", orders.namespace)
        statuses = {item["metadata"]["name"]: item.get("status", {}) for item in items}
        failures.update({name: status["failure"] for name, status in statuses.items() if "failure" in status})
        return all(statuses[user].get("phase") == "Ready" for user in unnamed(others))

    with InProcessEngine(site.of_account).running() as engine:
        for user in others:
            orders.apply(user, nodes={"fc430": 1}, template="acme.site.finished")
        until(are_ready, "all are Ready, or report why not")
        delete_slowly(orders, unnamed(others), is_named=lambda user: not unnamed([user]))
        for user in locks:
            if missing[user].verb == "patch":  # of a lock that existed before
                release(orders.kube, acquire(orders.kube, orders.namespace, user, "an earlier run"))
            orders.apply(user, nodes={"fc430": 1}, template="acme.site.finished")
        until(lambda: not unnamed(locks), f"{locks} report why not")
        assert [missing[user] for user in unnamed(missing)] == []
    assert len(failures) >= len(others) / 2, "many are named on the order"
    for user, failure in failures.items():
        assert named(missing[user]) in failure["message"] and "\n" not in failure["message"]
        assert failure["retryable"], "a permission may be granted any time"


def test_an_event_source_that_may_not_follow_the_hub_is_not_healthy_and_logs_why(
    site: Site, users: Users, caplog: pytest.LogCaptureFixture
) -> None:
    lists, watches = ({permission for permission in FOLLOWED if permission.verb == verb} for verb in ("list", "watch"))
    of_clusters = {permission for permission in FOLLOWED if permission.group == HYPERSHIFT}

    def until_logged(missing: set[Permission]) -> None:
        for permission in missing:
            pattern = f"watch of .*{re.escape(named(permission))}"
            until(lambda pattern=pattern: re.search(pattern, caplog.text), f"{pattern!r} is logged")

    site.orders.apply("observed", nodes={"fc430": 1})
    site.orders.provision("observed", wait=0)  # so that it has a provider, whose kinds are followed
    users.for_all(lists - of_clusters)
    with WebhookEngine(site.of_account).running(wait=False) as engine:
        until_logged(lists - of_clusters)
        assert "ClusterOrder is not listed yet" in str(engine.problems())
        # Clusters are followed once the orders are listed.
        for missing in ((watches - of_clusters) | (lists & of_clusters), watches & of_clusters):
            users.for_all(missing)
            until_logged(missing)
        users.for_all(set())
        until(lambda: not engine.problems(), "with all permissions it is healthy")
