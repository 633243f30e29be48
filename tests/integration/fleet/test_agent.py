"""Assignments and orders on a real API server, with the shipped permissions of the agent: copied both ways, and resumed after a kill."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.assigned_order import UID_LABEL
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import ADOPT_ORDER, AGENT_FINALIZER, RETRY
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import Target
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Conflict
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates

from ..support.engines import COLLECTIONS
from ..support.fleet_agents import ORDERS, AgentSite, agent_installed, agent_site, parameters_of

TIME = "2026-01-02T03:04:05Z"


@pytest.fixture(scope="module")
def installed(hub: Access) -> Iterator[Access]:
    with agent_installed(hub) as access:
        yield access


@pytest.fixture
def site(installed: Access, namespace: str) -> Iterator[AgentSite]:
    with agent_site(installed, installed, namespace) as made:
        yield made


def condition(kind: str, status: str = "True") -> Object:
    return {"type": kind, "status": status, "reason": "Tested", "message": "", "lastTransitionTime": TIME}


def test_assignment_becomes_an_order_and_its_status_comes_back(site: AgentSite) -> None:
    item = site.assign(templateParameters={"version": "4.17.0", "deep": {"a": [1]}})
    assert site.reconcile(item).result == "created"
    order = site.order(item)
    assert order is not None
    assert order["spec"]["templateID"] == item["spec"]["template"]
    assert parameters_of(order) == item["spec"]["templateParameters"]
    assert order["spec"]["nodeRequests"] == [{"resourceClass": "fc430", "numberOfNodes": 2}]
    assert order["metadata"]["labels"][UID_LABEL] == item["metadata"]["name"]
    assert order["metadata"]["namespace"].startswith("fleet-team-")
    assert AGENT_FINALIZER in site.current(item)["metadata"]["finalizers"]
    assert site.status(item)["state"] == "Progressing"
    assert site.reconcile(item).result == "unchanged"

    nodes = {"nodeSets": [{"resourceClass": "fc430", "requested": 2, "ready": 2}]}
    existing = {"nodeRequests": [{"resourceClass": "fc430", "numberOfNodes": 2}]}
    site.report(
        item, "Ready", apiURL="https://api.demo", version={"running": "4.17.0"}, conditions=[condition("NodesReady")], **nodes, **existing
    )
    site.reconcile(item)
    status = site.status(item)
    assert (status["state"], status["apiURL"], status["version"]) == ("Ready", "https://api.demo", "4.17.0")
    assert status["nodeSets"] == {"workers": {"class": "fc430", "size": 2, "ready": 2}}
    assert status["observedGeneration"] == site.current(item)["metadata"]["generation"]
    assert [each["type"] for each in status["conditions"]] == ["NodesReady", "Provisioned"]

    site.change(item, nodeSets={"workers": {"class": "fc430", "size": 1}})
    assert site.reconcile(item).result == "changed"
    status = site.status(item)
    assert (status["state"], status["nodeSets"]["workers"]["size"]) == ("Progressing", 2)
    assert status["observedGeneration"] < site.current(item)["metadata"]["generation"]

    site.delete(item)
    assert site.reconcile(item).result == "deleted"
    assert site.order(item) is None
    assert site.assignment(item) is None
    namespace = site.hub.kube.find("v1", "Namespace", site.reference(item)[0])
    assert namespace is None or "deletionTimestamp" in namespace["metadata"]


def test_deletion_waits_for_the_finalizers_of_the_order(site: AgentSite) -> None:
    item = site.assign()
    site.reconcile(item)
    order = site.order(item)
    assert order is not None
    site.hub.kube.patch(order, {"metadata": {"finalizers": ["cloudkit.openshift.io/finalizer"]}})
    site.delete(item)
    assert site.reconcile(item).result == "deleting"
    assert site.status(item)["state"] == "Deleting"
    current = site.order(item)
    assert current is not None
    site.hub.kube.patch(current, {"metadata": {"finalizers": None}})
    assert site.reconcile(item).result == "deleted"
    assert site.assignment(item) is None


def test_order_that_was_deleted_on_the_hub_is_created_again_only_before_the_cluster_was_ready(site: AgentSite) -> None:
    item = site.assign()
    site.reconcile(item)
    first = site.order(item)
    assert first is not None
    site.hub.kube.delete(first)
    assert site.reconcile(item).result == "created"
    site.report(item, "Ready")
    site.reconcile(item)
    second = site.order(item)
    assert second is not None
    site.hub.kube.delete(second)
    assert site.reconcile(item).result == "refused"
    assert site.order(item) is None
    status = site.status(item)
    assert (status["state"], status["failure"]["reason"]) == ("Failed", "OrderDeleted")
    # Home remembers it too: an operator may delete the namespace with the order.
    namespace, _name = site.reference(item)
    site.hub.kube.delete(site.hub.kube.get("v1", "Namespace", namespace))
    until(lambda: site.hub.kube.find("v1", "Namespace", namespace) is None, "the namespace is deleted")
    assert site.reconcile(item).result == "refused"
    assert site.hub.kube.find("v1", "Namespace", namespace) is None


def test_hub_remembers_that_the_cluster_was_ready_while_home_was_away(site: AgentSite) -> None:
    item = site.assign()
    site.reconcile(item)
    site.report(item, "Ready")
    before = site.current(item)
    site.home.kube.patch(before, {"metadata": {"annotations": {"changed": "meanwhile"}}})
    with pytest.raises(Conflict):  # the write to home fails, after that to the hub
        site.reconciler().reconcile(before)
    order = site.order(item)
    assert order is not None
    site.hub.kube.delete(order)
    assert site.reconcile(item).result == "refused"
    assert site.status(item)["failure"]["reason"] == "OrderDeleted"


def test_secrets_of_the_tenant_arrive_under_their_names_follow_and_leave(site: AgentSite) -> None:
    def reference(key: str) -> Object:
        return {"secretRef": {"name": "registries", "key": key}}

    item = site.assign(templateParameters={"pull_secret": reference("auth")})
    assert site.reconcile(item).result == "refused"
    assert site.status(item)["failure"]["reason"] == "SecretsMissing"
    assert site.order(item) is None
    value, other = (base64.b64encode(each).decode() for each in (b"one", b"two"))
    site.copy_secrets(item, {"registries": {"data": {"auth": value, "hidden": value}}})
    assert site.reconcile(item).result == "created"
    namespace, _name = site.reference(item)
    assert site.hub.kube.get("v1", "Secret", "registries", namespace)["data"] == {"auth": value}
    site.copy_secrets(item, {"registries": {"data": {"auth": other}}})
    site.reconcile(item)
    assert site.hub.kube.get("v1", "Secret", "registries", namespace)["data"] == {"auth": other}
    site.change(item, templateParameters={"pull_secret": None, "version": "4.17.0"})
    site.reconcile(item)
    assert site.hub.kube.find("v1", "Secret", "registries", namespace) is None


def test_retry_starts_a_failed_order_again_once(site: AgentSite) -> None:
    item = site.assign()
    site.reconcile(item)
    site.report(item, "Failed", failure={"reason": "Broken", "message": "It broke.", "retryable": False})
    site.reconcile(item)
    assert site.status(item)["failure"] == {"reason": "Broken", "message": "It broke."}
    before = site.order(item)
    assert before is not None
    for moment in ("2026-01-02T12:00:00Z", "2026-01-02T13:00:00Z"):
        site.home.kube.patch(site.current(item), {"metadata": {"annotations": {RETRY: moment}}})
        site.reconcile(item)
        after = site.order(item)
        assert after is not None
        assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
        assert site.status(item)["state"] == "Progressing"
        site.reconcile(item)
        assert site.order(item) == after
        before = after


def test_order_is_adopted_with_the_consent_of_the_hub_and_deleted_without_its_namespace(site: AgentSite, namespace: str) -> None:
    metadata = {"name": "old", "namespace": namespace}
    spec = {"templateID": "ocp_4_17_small", "templateParameters": '{"version": "4.17.0"}'}
    order = site.hub.kube.create({"apiVersion": ORDERS, "kind": "ClusterOrder", "metadata": metadata, "spec": spec})
    item = site.assign(nodes=3)
    site.home.kube.patch(item, {"metadata": {"annotations": {ADOPT_ORDER: f"{namespace}/old"}}})
    assert site.reconcile(item).result == "refused"
    failure = site.status(item)["failure"]
    assert failure["reason"] == "OrderTaken"
    assert f"{UID_LABEL}={item['metadata']['name']}" in failure["message"]
    site.hub.kube.patch(order, {"metadata": {"labels": {UID_LABEL: item["metadata"]["name"]}}})
    assert site.reconcile(item).result == "changed"
    adopted = site.hub.kube.get(ORDERS, "ClusterOrder", "old", namespace)
    assert adopted["spec"]["templateParameters"] == spec["templateParameters"]
    assert adopted["spec"]["nodeRequests"] == [{"resourceClass": "fc430", "numberOfNodes": 3}]
    site.delete(item)
    assert site.reconcile(site.assigned[0]).result in ("deleted", "deleting")
    assert site.hub.kube.find(ORDERS, "ClusterOrder", "old", namespace) is None
    assert "deletionTimestamp" not in site.hub.kube.get("v1", "Namespace", namespace)["metadata"]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"nodes": 0}, "NoNodesRequested"),
        ({"templateParameters": {"text": "s3cr3t" * 50000}}, "OrderRefused"),
        ({"templateParameters": {"a": [{"secretRef": {"name": f"x{number}", "key": "y"}} for number in range(21)]}}, "SecretsMissing"),
    ],
)
def test_what_cannot_be_ordered_is_reported_without_a_value(site: AgentSite, spec: dict[str, Any], reason: str) -> None:
    item = site.assign(**spec)
    reconciler = site.reconciler(templates=find_templates([COLLECTIONS]))
    assert site.reconcile(item, reconciler).result == "refused"
    status = site.status(item)
    assert (status["state"], status["failure"]["reason"]) == ("Failed", reason)
    assert "s3cr3t" not in status["failure"]["message"]
    assert site.order(item) is None
    site.delete(item)
    if site.assignment(item):
        site.reconcile(item, reconciler)
    assert site.assignment(item) is None


def test_namespace_and_order_of_another_are_skipped(site: AgentSite) -> None:
    item = site.assign()
    namespace, name = site.reference(item)
    site.hub.kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    try:
        assert site.reconcile(item).result == "refused"
        assert site.status(item)["failure"]["reason"] == "NamespaceTaken"
        metadata = {"name": name, "namespace": namespace}
        spec = {"templateID": "ocp_4_17_small"}
        site.hub.kube.create({"apiVersion": ORDERS, "kind": "ClusterOrder", "metadata": metadata, "spec": spec})
        assert site.reconcile(item).result == "refused"
        assert site.status(item)["failure"]["reason"] == "OrderTaken"
        site.delete(item)
        site.reconcile(item)
        assert site.assignment(item) is None
        assert site.order(item) is not None
        assert "deletionTimestamp" not in site.hub.kube.get("v1", "Namespace", namespace)["metadata"]
    finally:
        site.hub.kube.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})


class Killed(BaseException):
    """The end of the process."""


class Mortal(Kube):
    """A connection whose process is killed after so many writes, of all its connections together."""

    def __init__(self, cluster: Target, left: list[int]) -> None:
        super().__init__(cluster)
        self._left = left

    def _send(self, item: Object, method: str, what: str, **options: Any) -> Object:
        if self._left[0] == 0:
            raise Killed
        self._left[0] -= 1
        return super()._send(item, method, what, **options)


def test_kill_between_any_two_writes_is_continued_by_the_next_agent(site: AgentSite) -> None:
    value = base64.b64encode(b"one").decode()
    credential, on_hub = site.credential().target, site.agent_on_hub().target
    writes = 0
    while True:
        item = site.assign(f"demo{writes}", templateParameters={"pull_secret": {"secretRef": {"name": "registries", "key": "auth"}}})
        site.copy_secrets(item, {"registries": {"data": {"auth": value}}})
        left = [writes]
        finished = False
        try:
            mortal = [Mortal(each, left) for each in (credential, on_hub)]
            site.reconcile(item, site.reconciler(*mortal))
            site.report(item, "Ready")
            site.reconcile(item, site.reconciler(*mortal))
            site.delete(item)
            site.reconcile(item, site.reconciler(*mortal))
            finished = True
        except Killed:
            pass
        if finished:
            break
        # The next agent: whatever was half done is done, and nothing twice.
        if site.assignment(item) and "deletionTimestamp" not in site.current(item)["metadata"]:
            outcome = site.reconcile(item)
            order = site.order(item)
            assert order is not None
            assert outcome.result in ("created", "unchanged")
            assert site.status(item)["state"] == ("Ready" if order.get("status") else "Progressing")
            assert site.hub.kube.get("v1", "Secret", "registries", site.reference(item)[0])["data"] == {"auth": value}
            assert AGENT_FINALIZER in site.current(item)["metadata"]["finalizers"]
            site.delete(item)
        if site.assignment(item):
            site.reconcile(item)
        assert site.assignment(item) is None
        assert site.order(item) is None
        namespace = site.hub.kube.find("v1", "Namespace", site.reference(item)[0])
        assert namespace is None or "deletionTimestamp" in namespace["metadata"]
        writes += 1
    # finalizer, namespace, Secret, order, status; mark of the hub, status; order, namespace, finalizer
    assert writes == 10


def test_second_agent_that_is_late_leaves_nothing(site: AgentSite) -> None:
    item = site.assign()
    site.reconcile(item)
    seen = site.current(item)
    site.delete(item)
    site.reconcile(item)
    assert site.assignment(item) is None
    with pytest.raises(Conflict):
        site.reconciler().reconcile(seen)
    assert site.order(item) is None
