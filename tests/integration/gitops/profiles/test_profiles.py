"""Profiles of an order, from the settings of the site to the lock file on the order, on a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.plugins.action import cluster_profile_info
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import CONFIG_MAP, PROFILES
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates

from ...support.chart_folder import ChartFolder, chart_folder
from ...support.in_process import INSTALLED, act
from ...support.orders import Orders

SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP, "namespace": SITE_NAMESPACE}}
TEMPLATE = """
extends: openfleet.clusters.ocp_4_17_small
title: With profiles
profiles:
  base: {required: true}
  web: {}
"""
ANNOTATION = "cloudkit.openshift.io/profiles-lock"


@pytest.fixture
def charts(tmp_path: Path) -> Iterator[ChartFolder]:
    with chart_folder(tmp_path / "charts") as published:
        published.publish("base", "1.0.0", layer=1)
        published.publish("web", "2.0.0", {"properties": {"replicas": {"type": "integer"}}}, layer=2, requires={"base": ">=1"})
        yield published


@pytest.fixture
def site(orders: Orders, charts: ChartFolder) -> Iterator[Orders]:
    profiles = {name: {"repository": "acme", "description": f"The {name}"} for name in ("base", "web", "other")}
    repositories = {"acme": {"url": charts.url, "insecure": True}}
    before = orders.kube.get("v1", "ConfigMap", CONFIG_MAP, SITE_NAMESPACE).get("data", {}).get("infrastructure")
    parts = (yaml.safe_load(before or "") or {}) | {"gitops": {}}
    data = dict(zip(PROFILES, map(yaml.safe_dump, (repositories, profiles)), strict=True))
    orders.kube.patch(SETTINGS, {"data": data | {"infrastructure": yaml.safe_dump(parts)}}, checked=False)
    orders.role("with_profiles", {"meta/template.yml": TEMPLATE})
    yield orders
    orders.kube.patch(SETTINGS, {"data": dict.fromkeys(PROFILES) | {"infrastructure": before}}, checked=False)


def apply(site: Orders, *profiles: dict[str, Any], nodes: int = 1) -> None:
    site.apply(template="acme.site.with_profiles", nodes={"fc430": nodes}, gitops={"profiles": list(profiles)})


def lock(site: Orders) -> Any:
    return json.loads(site.get()["metadata"].get("annotations", {}).get(ANNOTATION, "null"))


def versions(site: Orders) -> dict[str, str]:
    return {item["name"]: item["version"] for item in lock(site)["profiles"]}


def test_an_accepted_order_has_a_lock_file_that_stays_while_the_order_does(site: Orders, charts: ChartFolder) -> None:
    apply(site, {"name": "web", "values": {"replicas": 2}})
    site.run("provision", "demo", check=True)
    assert lock(site) is None, "in check mode nothing is written"
    site.provision(wait=0)
    assert versions(site) == {"base": "1.0.0", "web": "2.0.0"}
    assert [(item["layer"], item.get("dependsOn", [])) for item in lock(site)["profiles"]] == [(1, []), (2, ["base"])]
    before = lock(site)
    charts.publish("base", "9.0.0")
    charts.publish("web", "9.0.0")
    apply(site, {"name": "web", "values": {"replicas": 2}}, nodes=2)
    site.provision(wait=0)
    assert lock(site) == before, "another number of nodes is no upgrade"
    apply(site, {"name": "web", "values": {"replicas": 2}, "version": ">=9"})
    site.provision(wait=0)
    assert versions(site) == {"base": "1.0.0", "web": "9.0.0"}, "only what changed is resolved"
    apply(site)
    site.provision(wait=0)
    assert versions(site) == {"base": "1.0.0"}


@pytest.mark.parametrize(
    ("profile", "reason", "message"),
    [
        ({"name": "wep"}, "InvalidProfiles", "profile 1 is wep, which is not on offer (did you mean web?); on offer: base, web"),
        ({"name": "other"}, "InvalidProfiles", "profile 1 is other, which is not on offer; on offer: base, web"),
        ({"name": "web", "values": {"replicas": "s3cret"}}, "InvalidProfiles", "web 2.0.0: values.replicas does not fit the schema"),
        ({"name": "web", "version": ">=3"}, "InvalidProfiles", "no version of web in acme matches >=3; the newest are 2.0.0"),
    ],
)
def test_an_order_with_a_mistake_in_its_profiles_is_not_accepted(site: Orders, profile: Any, reason: str, message: str) -> None:
    apply(site, profile)
    site.run("provision", "demo").complete()
    failure = site.status()["failure"]
    assert failure["reason"] == reason and message in failure["message"] and "s3cret" not in failure["message"]
    assert (failure["retryable"], site.condition("Accepted")["status"]) == (False, "False")
    assert site.names() == [] and lock(site) is None, "nothing was created"


def test_a_repository_that_does_not_answer_is_tried_again(site: Orders, charts: ChartFolder) -> None:
    index = (charts.folder / "index.yaml").rename(charts.folder / "moved")
    apply(site)
    site.run("provision", "demo").complete()
    failure = site.status()["failure"]
    assert (failure["reason"], failure["retryable"]) == ("RepositoryFailed", True)
    index.rename(charts.folder / "index.yaml")
    site.provision(wait=0)
    assert versions(site) == {"base": "1.0.0"}


def test_a_tenant_cannot_change_the_lock_file(site: Orders) -> None:
    apply(site)
    site.provision(wait=0)
    item = site.get()
    for value in ("{}", None):
        with pytest.raises(Invalid, match="The annotations of the controller cannot be changed"):
            site.tenant.patch(item, {"metadata": {"annotations": {ANNOTATION: value}}}, checked=False)


def test_the_profiles_on_offer_are_listed(site: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"kubeconfig": str(site.hub.kubeconfig)}
    every = act("cluster_profile_info", options)["profiles"]
    assert [(item["name"], item["versions"], item["layer"]) for item in every] == [
        ("base", ["1.0.0"], 1),
        ("other", [], 0),
        ("web", ["2.0.0"], 2),
    ]
    found = find_templates([INSTALLED, site.folder / "collections"])
    monkeypatch.setattr(cluster_profile_info, "find_templates", lambda _paths: found)
    base, web = act("cluster_profile_info", options | {"template": "acme.site.with_profiles"})["profiles"]
    assert (base["required"], base["editable"], web["requires"]) == (True, [], {"base": ">=1"})
    assert (web["description"], web["chart"], web["problem"]) == ("The web", "web", None)
