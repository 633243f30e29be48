"""The credential of an agent on a real API server: it reaches its own namespace, and there only what the agent does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_reporter import HubReporter
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import (
    API_VERSION,
    ASSIGNMENT,
    CLUSTER,
    HUB,
    QUOTA,
    RECORD,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kubeconfig_request import KubeconfigAnswer, KubeconfigRequest
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Forbidden, Invalid

from ..support.fleet_agents import AgentSite, agent_installed, agent_site
from ..support.manifests import manifest
from ..support.tenants import RBAC, connect_as

REFUSED = (Forbidden, Invalid)
LEASES = "coordination.k8s.io/v1"


@pytest.fixture(scope="module")
def guarded(hub: Access) -> Iterator[Access]:
    """Home and hub in one, with the shipped policies for agents in force."""
    policies = [manifest(f"fleet/policy_agents{part}") for part in ("", "_binding")]
    for item in policies:
        hub.kube.apply(item, force=True)
    probe = connect_as(hub, "system:serviceaccount:hub-probe:agent", "system:masters")
    secret = hub.kube.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "probe", "namespace": "default"}})
    try:
        until(lambda: refusal(lambda: probe.patch(secret, {"data": {"a": "YQ=="}}, dry_run=True)), "the policy is in force")
        with agent_installed(hub):
            yield hub
    finally:
        hub.kube.delete(secret)
        for item in policies:
            hub.kube.delete(item)


@pytest.fixture
def sites(guarded: Access, namespace: str) -> Iterator[tuple[AgentSite, AgentSite]]:
    """Two hubs of one fleet, and the namespace of a tenant with something of each kind."""
    with agent_site(guarded, guarded, f"{namespace}-a") as mine, agent_site(guarded, guarded, f"{namespace}-b") as other:
        yield mine, other


def refusal(request: Callable[[], Any]) -> str:
    try:
        request()
    except REFUSED as error:
        return str(error)
    return ""


def rules(kube: Kube, namespace: str) -> set[tuple[str, str, str, str]]:
    """What the server says that the account may do in a namespace: group, resource, verb, name."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "metadata": {"name": ""},
        "spec": {"namespace": namespace},
    }
    return {
        (group, resource, verb, name)
        for rule in kube.create(review)["status"]["resourceRules"]
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", ("*",))
    }


def test_server_grants_the_shipped_role_in_the_own_namespace_and_nothing_elsewhere(
    sites: tuple[AgentSite, AgentSite], namespace: str
) -> None:
    mine, other = sites
    credential, stranger = mine.credential(), connect_as(mine.home, "system:serviceaccount:default:stranger", "system:serviceaccounts")
    role = manifest("fleet/hub/role")
    shipped = {
        (group, resource, verb, name)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", ("*",))
    }
    assert rules(credential, mine.namespace) - rules(stranger, mine.namespace) == shipped
    for elsewhere in (other.namespace, namespace, "default", "kube-system", "openfleet-system"):
        assert rules(credential, elsewhere) - rules(stranger, elsewhere) == set(), elsewhere


def test_credential_reaches_nothing_of_other_hubs_tenants_and_the_cluster(sites: tuple[AgentSite, AgentSite], namespace: str) -> None:
    mine, other = sites
    credential = mine.credential()
    theirs = other.assign()
    HubReporter(mine.home.kube, other.name, "other").beat()
    for kind, version in (
        (ASSIGNMENT, API_VERSION),
        (CLUSTER, API_VERSION),
        (QUOTA, API_VERSION),
        (RECORD, API_VERSION),
        ("Secret", "v1"),
        ("ConfigMap", "v1"),
        ("Lease", LEASES),
        ("ServiceAccount", "v1"),
    ):
        for elsewhere in (other.namespace, namespace, "openfleet-system", None):
            with pytest.raises(Forbidden):
                credential.list_all(version, kind, elsewhere)
    for kind, version in ((HUB, API_VERSION), ("Namespace", "v1"), ("Node", "v1"), ("ClusterRole", f"{RBAC}/v1")):
        with pytest.raises(Forbidden):
            credential.list_all(version, kind)
    for request in (
        lambda: credential.get(API_VERSION, ASSIGNMENT, theirs["metadata"]["name"], other.namespace),
        lambda: credential.replace({**theirs, "status": {"state": "Ready"}}, "status"),
        lambda: credential.delete(theirs),
        lambda: HubReporter(credential, other.name, "thief").beat(),
        lambda: credential.create(KubeconfigRequest("x", "thief").to_secret(other.name)),
        lambda: credential.request_token(account(other.namespace), 600),
        lambda: credential.get("v1", "Namespace", mine.namespace),
    ):
        with pytest.raises(Forbidden):
            request()


def account(namespace: str) -> Object:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent", "namespace": namespace}}


def test_stolen_credential_changes_only_status_and_finalizer_of_its_own_assignments(sites: tuple[AgentSite, AgentSite]) -> None:
    mine, _other = sites
    credential = mine.credential()
    item = mine.assign()
    mine.reconcile(item)
    current = mine.current(item)
    metadata, spec = current["metadata"], current["spec"]
    changes: list[Object] = [
        {"spec": {**spec, "nodeSets": {"workers": {"class": "fc430", "size": 999}}}},
        {"spec": {**spec, "templateParameters": {"version": "9"}}},
        {"metadata": {**metadata, "finalizers": [*metadata["finalizers"], "example.com/mine"]}},
        {"metadata": {**metadata, "labels": {"a": "b"}}},
        {"metadata": {**metadata, "annotations": {"fleet.openfleet.io/adopt-order": "kube-system/x"}}},
    ]
    for change in changes:
        assert "changes only the status and its own finalizer" in refusal(lambda body=change: credential.replace({**current, **body}))
    assert refusal(lambda: credential.delete(current))
    assert refusal(lambda: credential.create({**item, "metadata": {"name": "forged", "namespace": mine.namespace}}))
    copied = mine.home.kube.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": item["metadata"]["name"], "namespace": mine.namespace}}
    )
    assert "only requests for kubeconfigs" in refusal(lambda: credential.replace({**copied, "data": {"a": "YQ=="}}))
    assert "only requests for kubeconfigs" in refusal(lambda: credential.delete(copied))
    assert refusal(lambda: credential.create(KubeconfigRequest("x", "thief").to_secret(mine.name)))
    # What the agent does is allowed.
    request = mine.home.kube.create(KubeconfigRequest(item["metadata"]["name"], "anna").to_secret(mine.name))
    credential.delete(credential.replace(KubeconfigAnswer(error="No.").apply_to(request)))
    mine.delete(item)
    mine.reconcile(item)
    assert mine.assignment(item) is None


def test_hub_refuses_what_the_agent_has_no_business_with(sites: tuple[AgentSite, AgentSite], namespace: str) -> None:
    mine, _other = sites
    agent = mine.agent_on_hub()
    order = {"apiVersion": "cloudkit.openshift.io/v1alpha1", "kind": "ClusterOrder", "spec": {"templateID": "ocp_4_17_small"}}
    existing = mine.hub.kube.create({**order, "metadata": {"name": "theirs", "namespace": namespace}})
    secret = mine.hub.kube.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs", "namespace": namespace}})
    labelled = {"labels": {"fleet.openfleet.io/cluster-uid": "x"}}
    for request in (
        lambda: agent.create({**order, "metadata": {"name": "mine", "namespace": namespace, **labelled}}),
        lambda: agent.patch(existing, {"metadata": labelled}),
        lambda: agent.delete(existing),
        lambda: agent.delete(secret),
        lambda: agent.replace({**secret, "data": {"a": "YQ=="}}),
        lambda: agent.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere", **labelled}}),
        lambda: agent.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fleet-unlabelled"}}),
        lambda: agent.delete(mine.hub.kube.get("v1", "Namespace", namespace)),
        lambda: agent.patch(existing, {"status": {"phase": "Ready"}}, subresource="status"),
    ):
        assert refusal(request)


@pytest.mark.parametrize("folder", ["fleet", "fleet/api", "fleet_agent", "page"])
def test_pod_of_the_deployment_is_admitted_to_a_namespace_for_restricted_pods(guarded: Access, folder: str) -> None:
    template = manifest(f"{folder}/deployment")["spec"]["template"]
    spec = template["spec"] | {"serviceAccountName": "openfleet-fleet-agent"}  # the one that is there
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": spec, "metadata": template["metadata"] | {"generateName": "agent-"}}
    guarded.kubectl("create", "--dry-run=server", "-f", "-", "-n", "openfleet-system", stdin=json.dumps(pod))
    pod["spec"]["containers"][0]["securityContext"].pop("capabilities")
    refused = guarded.kubectl("create", "--dry-run=server", "-f", "-", "-n", "openfleet-system", stdin=json.dumps(pod), check=False)
    assert "unrestricted capabilities" in refused.stderr
