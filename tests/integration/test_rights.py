"""The account that the rules engine runs with in a cluster: its rights are enough for the whole life of an order, and none is too much."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator

import pytest
import urllib3
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox

from .deployed import Deployed, account_kubeconfig, install, manifest
from .engines import AtWork, running
from .orders import GROUP, Orders
from .rights import Recorder, Right, rights_of, without
from .samples import FAULT

# What the server looks for on the way to something else, and no request of its own.
IMPLIED = {Right("rbac.authorization.k8s.io", "clusterroles", "bind")}
ROLE = manifest("cluster_role")
HOLD = "acme.example/hold"


def named(right: Right) -> str:
    """How it is said that this right is missing."""
    return "grant the verb bind of that role" if right.verb == "bind" else f'cannot {right.verb} resource "{right.resource}"'


class Site(AtWork):
    engine: Deployed
    recorder: Recorder

    def delete_slowly(self, name: str) -> None:
        """Delete an order whose cluster is still there when the first run ends, as it is with HyperShift; a second one does the rest."""
        cluster = ("hostedcluster", name, "-n", self.orders.working(name))
        runs = self.orders.lease(name)["leaseTransitions"]
        self.hub.kubectl(
            "patch", *cluster, "--type=json", "-p", json.dumps([{"op": "add", "path": "/metadata/finalizers/-", "value": HOLD}])
        )
        self.hub.kubectl("delete", self.orders.kind, name, "-n", self.orders.namespace, "--wait=false")

        def one_run_has_ended() -> bool:
            lock = self.orders.lease(name)
            return lock["leaseTransitions"] > runs and not lock.get("holderIdentity")

        until(one_run_has_ended, f"a run has deleted what it can; the log is {self.engine.log}")
        held = self.hub.get(*cluster)["metadata"]["finalizers"]
        kept = {"metadata": {"finalizers": [entry for entry in held if entry != HOLD]}}
        self.hub.kubectl("patch", *cluster, "--type=merge", "-p", json.dumps(kept))
        until(lambda: self.orders.is_gone(name), f"it is gone; the log is {self.engine.log}")


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
    until(lambda: site.orders.condition("NodesReady")["message"] == "2 of 2 ready", "it is scaled")
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


@pytest.fixture
def less(site: Site) -> Iterator[Callable[[Right], None]]:
    """Take one right away from the account, for the length of a test."""
    yield lambda right: site.hub.apply(without(ROLE, right))
    site.hub.apply(ROLE)


@pytest.mark.parametrize(
    "right",
    [
        Right("", "namespaces", "create"),
        Right("", "secrets", "create"),
        Right("hypershift.openshift.io", "nodepools", "create"),
        Right("rbac.authorization.k8s.io", "clusterroles", "bind"),
        Right(GROUP, "clusterorders", "patch"),
    ],
    ids=lambda right: f"{right.resource}-{right.verb}",
)
def test_an_order_says_which_right_is_missing(site: Site, less: Callable[[Right], None], right: Right) -> None:
    name = f"no-{right.resource}-{right.verb}"
    less(right)
    site.orders.place(name, nodes={"fc430": 1})
    site.until_phase("Failed", name)
    failure = site.orders.status(name)["failure"]
    assert named(right) in failure["message"]
    assert "\n" not in failure["message"]
    assert failure["retryable"], "a right may be granted any time"


@pytest.mark.parametrize(
    "right",
    [Right("coordination.k8s.io", "leases", "create"), Right(GROUP, "clusterorders/status", "update")],
    ids=lambda right: f"{right.resource}-{right.verb}",
)
def test_the_log_says_which_right_is_missing_where_the_order_cannot(site: Site, less: Callable[[Right], None], right: Right) -> None:
    less(right)
    site.orders.place(f"no-{right.resource.replace('/', '-')}", nodes={"fc430": 1})
    until(lambda: named(right) in site.engine.text(), f"{named(right)!r} is in {site.engine.log}")


def test_it_ends_in_order_and_a_new_one_is_not_well_and_says_why_where_it_may_not_watch(site: Site, less: Callable[[Right], None]) -> None:
    assert site.engine.end(signal.SIGTERM) == 0
    assert site.engine.said("has given back the lead")  # so it was not ended on the spot
    assert site.engine.processes() == []
    less(Right(GROUP, "clusterorders", "list"))
    site.engine.start(wait=False)
    until(lambda: site.engine.said('watch of ClusterOrder: .* cannot list resource "clusterorders"'), f"it is in {site.engine.log}")
    answer = urllib3.request("GET", f"http://127.0.0.1:{site.engine.port}/healthz", timeout=10)
    assert (answer.status, "ClusterOrder is not listed yet" in answer.data.decode()) == (503, True)
