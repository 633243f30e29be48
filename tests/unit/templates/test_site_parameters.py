"""Parameters that belong to the site: an order sets only what the site allows, or what the author of the template opens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.check import check
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.errors import InvalidOrder
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.site_parameters import SiteParameter

from .template_samples import METADATA, a_template, parameters, specs, write_role

SITE = {"domain": SiteParameter("a.example.com", ("a.example.com", "b.example.com"))}


def domain(root: Path, given: dict[str, Any], site: dict[str, SiteParameter] | None = None, **words: Any) -> Any:
    template = a_template(root, {"domain": {"type": "str", "aliases": ["zone"]} | words}, {"site_parameters": ["domain"]})
    return parameters(template, given, site=site).get("domain")


def test_an_order_has_the_values_of_the_site(tmp_path: Path) -> None:
    assert domain(tmp_path, {}) is None
    assert domain(tmp_path, {}, SITE) == domain(tmp_path, {"domain": None}, SITE) == "a.example.com"
    assert domain(tmp_path, {"domain": "b.example.com"}, SITE) == domain(tmp_path, {"zone": "b.example.com"}, SITE) == "b.example.com"


@pytest.mark.parametrize("name", ["domain", "zone"])
def test_an_order_cannot_set_what_the_site_does_not_allow(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidOrder, match=f"parameter {name} belongs to the site: leave it out"):
        domain(tmp_path, {name: "evil.example.com"})
    with pytest.raises(InvalidOrder, match=f'parameter {name} belongs to the site, which allows "a.example.com", "b.example.com"'):
        domain(tmp_path, {name: "evil.example.com"}, SITE)


def test_an_author_opens_a_parameter_by_its_choices(tmp_path: Path) -> None:
    assert domain(tmp_path, {"domain": "c.example.com"}, choices=["c.example.com"]) == "c.example.com"
    with pytest.raises(InvalidOrder, match=r'parameter domain must be "c.example.com", not "evil.example.com"'):
        domain(tmp_path, {"domain": "evil.example.com"}, choices=["c.example.com"])


def test_a_template_that_extends_another_inherits_them(tmp_path: Path) -> None:
    a_template(tmp_path, {"domain": {"type": "str"}}, {"site_parameters": ["domain"]})
    write_role(tmp_path, "site.base.two", {"extends": "site.base.one"}, None)
    with pytest.raises(InvalidOrder, match="belongs to the site"):
        check(find_templates([tmp_path])["site.base.two"], '{"domain": "evil.example.com"}')


def test_no_mistake_keeps_a_cluster_alive(tmp_path: Path) -> None:
    template = a_template(tmp_path, {"domain": {"type": "str"}}, {"site_parameters": ["domain"]})
    assert check(template, '{"domain": "evil.example.com"}', entry="delete").ignored


@pytest.mark.parametrize("names", ["domain", ["nope"], [1]])
def test_only_declared_parameters_can_belong_to_the_site(tmp_path: Path, names: Any) -> None:
    write_role(tmp_path, "site.base.one", METADATA | {"site_parameters": names}, specs({"domain": {"type": "str"}}))
    problem = find_templates([tmp_path])["site.base.one"].problem
    assert problem and "site_parameters must be a list of parameters of install" in problem
