"""Checks of a hub: a table of what is read and what it comes to, with real templates."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_checks import HubFacts, checks_of, report_of
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_report import ClassNodes
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_reporter import without_api
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.agent_hosts import AgentLabels, count_hosts
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import SiteSettings
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Forbidden, Unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.site_parameters import SiteParameter

TEMPLATES = find_templates([Path(sys.prefix) / "collections"])
SMALL, CAPI = TEMPLATES["openfleet.clusters.ocp_4_17_small"], TEMPLATES["openfleet.clusters.capi_small"]
HOSTS = SiteSettings(agent_namespace="hosts", classes={"fc430": {"kind": "agent"}, "vm": {"kind": "vm"}})


def settings(domain: str | None, zone: str) -> SiteSettings:
    parameters = {"base_domain": SiteParameter(domain)} if domain is not None else {}
    return SiteSettings(parameters=parameters, infrastructure={"dns": {"zone": zone}} if zone else {})


@pytest.mark.parametrize(
    ("facts", "failed", "message"),
    [
        (HubFacts(templates=(SMALL,)), None, ""),
        (HubFacts(serves_orders=False, templates=(SMALL,)), "crds", "install the CRDs"),
        (HubFacts(settings_problem="classes must be a mapping.", templates=(SMALL,)), "settings", "classes must be"),
        (HubFacts(), "operators", "offers no template"),
        (HubFacts(templates=(SMALL,), lacking={"hypershift": ("HostedCluster",)}), "operators", "hypershift lacks HostedCluster"),
        (HubFacts(templates=(SMALL, CAPI), lacking={"hypershift": ("HostedCluster",)}), None, ""),
        (HubFacts(templates=(SMALL,), default_storage_class=False), "storage", "no default StorageClass"),
        (HubFacts(templates=(CAPI,), default_storage_class=False), None, ""),
        (HubFacts(templates=(SMALL,), settings=settings("clusters.example.com", "example.com")), None, ""),
        (HubFacts(templates=(SMALL,), settings=settings("example.com", "example.com.")), None, ""),
        (HubFacts(templates=(SMALL,), settings=settings("notexample.com", "example.com")), "dns", "not in the zone example.com"),
        (HubFacts(templates=(SMALL,), settings=HOSTS, nodes={"fc430": ClassNodes(1, 0)}), None, ""),
        (HubFacts(templates=(SMALL,), settings=HOSTS), "classes", "no host of the class fc430"),
        (HubFacts(templates=(SMALL,), settings=HOSTS, serves_agents=False), "classes", "does not serve Agents"),
        (HubFacts(templates=(SMALL,), settings=SiteSettings(classes=HOSTS.classes)), None, ""),
    ],
)
def test_check_fails_with_what_to_do(facts: HubFacts, failed: str | None, message: str) -> None:
    found = {each.name: each.message for each in checks_of(facts) if not each.passed}
    assert list(found) == ([failed] if failed else [])
    assert message in found.get(failed or "", "")


def test_report_offers_what_can_be_created_with_its_parameters() -> None:
    facts = HubFacts(
        templates=(SMALL, CAPI), lacking={"capi": ("Cluster",)}, nodes={"fc430": ClassNodes(3, 1)}, version="v1.36.3", settings=HOSTS
    )
    report = report_of(facts, "0.1.0")
    (offered,) = report.templates
    assert (offered.name, offered.title) == ("openfleet.clusters.ocp_4_17_small", "OpenShift 4.17, small")
    assert offered.nodes == {"fc430": 2}
    assert "fc640" in offered.classes
    assert "pull_secret" in offered.parameters["properties"]
    assert report.is_ready
    assert report.versions == {"kubernetes": "v1.36.3"}


def test_hub_whose_api_server_is_away_says_so_and_keeps_the_rest() -> None:
    report = report_of(HubFacts(templates=(SMALL,)), "0.1.0")
    away = without_api(report, Unreachable("list: no answer (try 3)"))
    assert not away.is_ready
    assert away.missing == "api: The API server of the hub does not answer: start it, or check the network of the agent."
    assert away.templates == report.templates
    assert without_api(away, Unreachable("get: other text")) == away
    assert "fails: no" in without_api(away, Forbidden("no")).missing


def agent(labels: dict[str, str], *, connected: str = "True", bound: str = "False", **spec: str) -> dict[str, object]:
    conditions = [{"type": kind, "status": status} for kind, status in (("Connected", connected), ("Validated", "True"), ("Bound", bound))]
    return {"metadata": {"name": "a", "labels": labels}, "spec": spec, "status": {"conditions": conditions}}


def test_hosts_are_counted_by_class_as_total_and_free() -> None:
    labels = AgentLabels("group")
    mine = {labels.resource_class: "fc430"}
    agents = [
        agent(mine),
        agent(mine | {labels.claim: "order"}),
        agent(mine, bound="True", clusterDeploymentName="x"),
        agent(mine, connected="False"),
        agent({labels.resource_class: "gpu"}),
        agent({}),
    ]
    assert count_hosts(agents, labels, {}) == {"fc430": (3, 1), "gpu": (1, 1)}
    assert count_hosts(agents, labels, {"any": {}, "none": {"size": "small"}}) == {"any": (5, 3), "none": (0, 0)}
