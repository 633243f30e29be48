"""The agent of a hub on real API servers: it follows both sides, outlives the absence of each, reports, and answers requests."""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections.abc import Iterator

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import fleet_agent, hub_reporting, informer
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet import cluster_connection, kubeconfig_request
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.assigned_order import PROVISIONED_ANNOTATION
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kubeconfig_request import (
    ACCESS_NAMESPACE,
    KubeconfigAnswer,
    KubeconfigRequest,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.workloads_request import WorkloadsAnswer, request_for
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import target
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names

from ..support.agents import CLASS, configure, site_agents
from ..support.fleet_agents import AgentSite, agent_installed, agent_site
from ..support.kubeconfigs import kubeconfig
from ..support.links import Links
from ..support.manifests import manifest
from ..support.permissions import Recorder, permissions_of
from ..support.running_agents import RunningAgent

NODES = {"nodeSets": [{"resourceClass": "fc430", "requested": 2, "ready": 2}]}


@pytest.fixture(scope="module")
def installed(quick_hub: Access) -> Iterator[Access]:
    with agent_installed(quick_hub) as access:
        yield access


@pytest.fixture
def site(installed: Access) -> Iterator[AgentSite]:
    with fresh_namespace(installed) as name, agent_site(installed, installed, name) as made:
        yield made


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waits between two tries, shortened. A cluster has as long to answer as a busy machine may need."""
    monkeypatch.setattr(fleet_agent, "UNREACHABLE_SECONDS", (0.2, 0.5))
    monkeypatch.setattr(fleet_agent, "SWEEP_SECONDS", 0.5)
    monkeypatch.setattr(hub_reporting, "LAST_BACKOFF", 0.5)
    monkeypatch.setattr(informer, "LAST_RETRY_SECONDS", 1.0)
    for name in ("REQUEST_SECONDS", "TOTAL_SECONDS"):
        monkeypatch.setattr(cluster_connection, name, 120.0)


def test_agent_follows_both_sides(site: AgentSite) -> None:
    early = site.assign("early")
    with RunningAgent(site).running() as agent:
        agent.until_ordered(early)
        item = site.assign("demo")
        agent.until_ordered(item)
        site.report(item, "Ready", **NODES)
        agent.until_state(item, "Ready")
        site.change(item, nodeSets={"workers": {"class": "fc430", "size": 5}})
        until(lambda: (site.order(item) or {})["spec"]["nodeRequests"][0]["numberOfNodes"] == 5, "the order is changed")
        renewed = agent.lease()["spec"]["renewTime"]
        until(lambda: agent.lease()["spec"]["renewTime"] > renewed, "the Lease is renewed")
        for each in (early, item):
            site.delete(each)
            agent.until_gone(each)

        def results() -> list[tuple[str, str, str]]:
            found = [event for event in list(agent.events) if event["type"] == "assignment_reconciled"]
            return [(event["name"], event["result"], event["state"]) for event in found]

        until(lambda: ("demo", "deleted", "") in results(), "the deletion is reported")
        assert ("demo", "created", "Progressing") in results()
        assert ("demo", "unchanged", "Ready") in results()


@pytest.mark.parametrize("refuse", [True, False], ids=["refused", "silent"])
def test_hub_goes_on_without_home_and_catches_up(site: AgentSite, refuse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_agent, "WATCH_SECONDS", 5)
    monkeypatch.setattr("ansible_collections.openfleet.clusters.plugins.module_utils.controller.agent_connections.TIMES", {"total": 2})
    with Links().running() as links, RunningAgent(site, links).running() as agent:
        kept, doomed, quiet = site.assign("kept"), site.assign("doomed"), site.assign("quiet")
        for each in (kept, doomed, quiet):
            agent.until_ordered(each)
            agent.until_state(each, "Progressing")
        assert agent.to_home is not None
        agent.to_home.cut(refuse=refuse)
        until(lambda: "home_unreachable" in agent.types(), "the agent reports that home is unreachable")
        # Meanwhile, on both sides:
        site.report(kept, "Ready", **NODES)
        site.report(quiet, "Ready", **NODES)  # which no change at home brings to the agent's attention later
        site.delete(doomed)
        new = site.assign("new")
        site.change(kept, nodeSets={"workers": {"class": "fc430", "size": 3}})
        lost = site.assign("lost")
        site.delete(lost)
        namespace, _name = site.reference(quiet)
        until(
            lambda: PROVISIONED_ANNOTATION in site.hub.kube.get("v1", "Namespace", namespace)["metadata"]["annotations"],
            "the agent has seen the change on the hub",
        )
        time.sleep(2)  # also the last of a burst of changes was tried in vain
        assert site.order(doomed) is not None
        assert site.status(kept)["state"] == site.status(quiet)["state"] == "Progressing"
        agent.to_home.heal()
        agent.until_gone(doomed)
        agent.until_ordered(new)
        agent.until_state(quiet, "Ready")
        until(lambda: (site.order(kept) or {})["spec"]["nodeRequests"][0]["numberOfNodes"] == 3, "the order follows")
        until(lambda: "Provisioned" in [each["type"] for each in site.status(kept).get("conditions", ())], "what happened is reported")
        until(lambda: "home_reachable" in agent.types(), "home is reachable")
        assert site.order(lost) is None


def test_heartbeat_goes_on_without_the_hub_and_says_so(site: AgentSite) -> None:
    with Links().running() as links, RunningAgent(site, links).running() as agent:
        until(lambda: "crds" in {each.name for each in agent.report().checks}, "the hub is reported")
        before = agent.report()
        assert agent.to_hub is not None
        agent.to_hub.cut(refuse=True)
        until(lambda: agent.report().missing.startswith("api: The API server of the hub does not answer"), "the report says so")
        assert agent.report().templates == before.templates
        renewed = agent.lease()["spec"]["renewTime"]
        until(lambda: agent.lease()["spec"]["renewTime"] > renewed, "the Lease is renewed")
        item = site.assign()
        agent.to_hub.heal()
        agent.until_ordered(item)
        until(lambda: agent.report() == before, "the report is as before")


def test_report_has_hosts_templates_and_checks(site: AgentSite) -> None:
    with site_agents(site.hub) as hosts:
        hosts.discover({"one": {CLASS: "fc430"}, "two": {CLASS: "fc430"}})
        configure(site.hub.kube, classes={"fc430": {"kind": "agent"}, "gpu": {"kind": "agent"}})
        with RunningAgent(site).running() as agent:
            until(lambda: agent.report().nodes.get("fc430"), "the hosts are reported")
            report = agent.report()
            assert (report.nodes["fc430"].total, report.nodes["fc430"].free) == (2, 2)
            assert "classes: There is no host of the class gpu" in report.missing
            assert report.agent_version == "test"
            assert report.versions["kubernetes"].startswith("v1.")
            offered = {each.name: each for each in report.templates}
            assert offered["openfleet.clusters.ocp_4_17_small"].parameters["type"] == "object"
            hosts.discover({"three": {CLASS: "gpu"}})
            until(lambda: "classes" not in agent.report().missing, "the new host is reported")
            until(lambda: agent.report().nodes["gpu"].free == 1, "it is reported as free")


def request(site: AgentSite, item: Object, user: str = "anna", seconds: int = 600) -> Object:
    return site.home.kube.create(KubeconfigRequest(item["metadata"]["name"], user, seconds).to_secret(site.name))


def answer_to(site: AgentSite, secret: Object) -> KubeconfigAnswer:
    def answered() -> KubeconfigAnswer | None:
        return KubeconfigAnswer.from_secret(site.home.kube.get("v1", "Secret", secret["metadata"]["name"], site.namespace))

    found = until(answered, "the request is answered")
    assert found is not None
    return found


def workloads_of(site: AgentSite, item: Object) -> WorkloadsAnswer:
    secret = site.home.kube.create(request_for(site.name, item["metadata"]["name"]))

    def answered() -> WorkloadsAnswer | None:
        return WorkloadsAnswer.from_secret(site.home.kube.get("v1", "Secret", secret["metadata"]["name"], site.namespace))

    found = until(answered, "the request is answered")
    assert found is not None
    return found


def test_kubeconfig_is_short_lived_and_of_an_account_of_its_own(site: AgentSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster is the hub itself, as a cluster that the provider standalone has adopted."""
    item = site.assign()
    with RunningAgent(site, allowed_addresses=["127.0.0.0/8"]).running() as agent:
        agent.until_ordered(item)
        assert "not created yet" in answer_to(site, request(site, item)).error
        working = adopt_as_cluster(site, agent, item)
        try:
            made = answer_to(site, request(site, item))
            assert made.error == ""
            account = KubeconfigRequest("", "anna").account
            inside = Kube(target({"kubeconfig": yaml.safe_load(made.kubeconfig)}, {}))
            review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {"name": ""}}
            user = inside.create(review)["status"]["userInfo"]["username"]
            assert user == f"system:serviceaccount:openfleet-access:{account}"
            assert inside.list_all("v1", "Secret", "kube-system") is not None
            assert made.expires_at is not None
            workloads = workloads_of(site, item)
            assert workloads.error == ""
            assert {each["kind"] for each in workloads.content()["items"]} <= {"Deployment", "StatefulSet"}
            assert "does not have the cluster" in workloads_of(site, {"metadata": {"name": "unknown"}}).error
            # Another user has another account, an unknown cluster and a bad request an error.
            other = json.loads(answer_to(site, request(site, item, "otto")).kubeconfig)
            assert other["users"] != json.loads(made.kubeconfig)["users"]
            assert "does not have the cluster" in answer_to(site, request(site, {"metadata": {"name": "unknown"}})).error
            assert "expirationSeconds" in answer_to(site, request(site, item, seconds=5)).error
            monkeypatch.setattr(kubeconfig_request, "MAX_AGE", kubeconfig_request.timedelta(0))
            requests = f"{kubeconfig_request.LABEL}"
            until(lambda: not site.home.kube.list_all("v1", "Secret", site.namespace, requests), "old requests are deleted")
        finally:
            for kind, name in (("Namespace", working), ("Namespace", ACCESS_NAMESPACE)):
                site.hub.kube.delete({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
            for user in ("anna", "otto"):
                site.hub.kubectl("delete", "--ignore-not-found", "clusterrolebinding", KubeconfigRequest("", user).account)


def adopt_as_cluster(site: AgentSite, agent: RunningAgent, item: Object) -> str:
    """What a run of the provider standalone leaves: its Secret in the working namespace, and its name in the status.

    The agent has seen it: it answers requests from its cache of orders.
    """
    until(lambda: site.hub.kube.find("v1", "Namespace", ACCESS_NAMESPACE) is None, "the accounts of an earlier test are deleted")
    order = site.order(item)
    assert order is not None
    parsed = ClusterOrder.from_object(order, Names())
    namespace = parsed.working_namespace
    content = kubeconfig(site.hub)
    for each in content["clusters"]:
        each["cluster"]["server"] = each["cluster"]["server"].replace("localhost", "127.0.0.1")
    site.hub.kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": parsed.labels}})
    metadata = {"name": f"{parsed.names.cluster_name(parsed.name)}-kubeconfig", "namespace": namespace, "labels": parsed.labels}
    data = {"kubeconfig": base64.b64encode(yaml.safe_dump(content).encode()).decode()}
    site.hub.kube.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    site.report(item, "Ready", provider={"type": "standalone"})
    agent.until_state(item, "Ready")
    return namespace


def test_order_without_an_assignment_is_reported_and_kept(site: AgentSite) -> None:
    item = site.assign()
    site.reconcile(item)
    site.home.kube.patch(site.current(item), {"metadata": {"finalizers": None}})
    site.delete(item)
    with RunningAgent(site).running() as agent:
        until(lambda: "order_orphaned" in agent.types(), "the orphan is reported")
        assert site.order(item) is not None


def token_kubeconfig(access: Access, server: str, account: str, namespace: str) -> Object:
    token = access.kubectl("create", "token", account, "-n", namespace).stdout.strip()
    return {
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "users": [{"name": "it", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "current-context": "it",
    }


def test_permissions_of_the_manifests_are_enough_and_all_are_used(site: AgentSite) -> None:
    of_home = manifest("fleet/hub/role")
    of_hub = manifest("fleet_agent/cluster_role") | {
        "rules": manifest("fleet_agent/cluster_role")["rules"] + manifest("fleet_agent/role")["rules"]
    }
    with (
        site_agents(site.hub) as hosts,
        Recorder(site.home).running() as at_home,
        Recorder(site.hub).running() as at_hub,
        contextlib.ExitStack() as after,
    ):
        hosts.discover({"one": {CLASS: "fc430"}})
        home = {"kubeconfig": token_kubeconfig(site.home, f"http://127.0.0.1:{at_home.port}", "agent", site.namespace)}
        hub = token_kubeconfig(site.hub, f"http://127.0.0.1:{at_hub.port}", "openfleet-fleet-agent", "openfleet-system")
        options = {"home": home, "kubeconfig": hub, "impersonate_user": None, "impersonate_groups": None}
        lease = {"name": f"fleet-agent.{site.name}-leader", "namespace": "openfleet-system"}
        after.callback(site.hub.kube.delete, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": lease})
        agent = RunningAgent(site, elected=True, allowed_addresses=["127.0.0.0/8"], **options)
        after.enter_context(agent.running())
        value, other = (base64.b64encode(each).decode() for each in (b"one", b"two"))
        item = site.assign(templateParameters={"pull_secret": {"secretRef": {"name": "registries", "key": "auth"}}})
        site.copy_secrets(item, {"registries": {"data": {"auth": value}}})
        agent.until_ordered(item)
        site.copy_secrets(item, {"registries": {"data": {"auth": other}}})
        namespace, _name = site.reference(item)
        until(lambda: site.hub.kube.get("v1", "Secret", "registries", namespace)["data"] == {"auth": other}, "the Secret follows")
        first = site.order(item) or {}
        site.hub.kube.delete(first)
        until(lambda: (site.order(item) or first)["metadata"]["uid"] != first["metadata"]["uid"], "the order is created again")
        hosts.discover({"two": {CLASS: "fc430"}})
        until(lambda: (nodes := agent.report().nodes.get("fc430")) and nodes.total == 2, "the new host is reported")
        site.report(item, "Progressing", provider={"type": "hypershift"})
        until(lambda: answer_to(site, request(site, item)).error, "a cluster without an object gives none")
        working = adopt_as_cluster(site, agent, item)
        after.callback(site.hub.kube.delete, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": working}})
        after.callback(site.hub.kube.delete, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ACCESS_NAMESPACE}})
        after.callback(site.hub.kubectl, "delete", "--ignore-not-found", "clusterrolebinding", KubeconfigRequest("", "anna").account)
        assert answer_to(site, request(site, item)).error == ""
        site.change(item, templateParameters=None, nodeSets={"workers": {"class": "fc430", "size": 3}})
        until(lambda: site.hub.kube.find("v1", "Secret", "registries", namespace) is None, "the Secret is deleted")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kubeconfig_request, "MAX_AGE", kubeconfig_request.timedelta(0))
            until(lambda: not site.home.kube.list_all("v1", "Secret", site.namespace, kubeconfig_request.LABEL), "requests are deleted")
        by_time = {("agent-install.openshift.io", "agents", "watch"), ("coordination.k8s.io", "leases", "patch")}
        until(lambda: by_time <= at_hub.used, "hosts are watched, and the Lease of the leader is renewed")
        site.delete(item)
        agent.until_gone(item)

        def unused() -> set[tuple[str, str, str]]:
            return (permissions_of(of_home) - at_home.used) | (permissions_of(of_hub) - at_hub.used)

        with contextlib.suppress(UserError):  # the assertion says which
            until(lambda: not unused(), "each permission is used", 60)
        assert unused() == set()
        assert at_home.refused == at_hub.refused == set()


def test_two_agents_at_once_do_no_harm(site: AgentSite) -> None:
    """As for a moment, while a leader that was asleep does not know yet that another one leads."""
    with RunningAgent(site).running() as one, RunningAgent(site).running() as two:
        items = [site.assign(f"demo{number}") for number in range(6)]
        for each in items:
            one.until_ordered(each)
            site.report(each, "Ready", **NODES)
        uids = {(site.order(each) or {})["metadata"]["uid"] for each in items}
        for each in items:
            one.until_state(each, "Ready")
        assert {(site.order(each) or {})["metadata"]["uid"] for each in items} == uids
        for each in items:
            site.delete(each)
        for each in items:
            two.until_gone(each)
        created = [event["uid"] for agent in (one, two) for event in agent.events if event.get("result") == "created"]
        # An agent whose report conflicts with that of the other one starts again, and finds its own order then.
        assert len({*created}) == len(created)
        assert {*created} <= {each["metadata"]["name"] for each in items}
        namespaces = [site.hub.kube.find("v1", "Namespace", site.reference(each)[0]) for each in items]
        assert all(each is None or "deletionTimestamp" in each["metadata"] for each in namespaces)
