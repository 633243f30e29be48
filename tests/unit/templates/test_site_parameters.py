"""The site's share in parameters: an order sets only what the site allows or the author opens, and leaves out what the site has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.check import check
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.description import summary
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.errors import InvalidOrder
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.site_parameters import SiteParameter, SiteValues

from .template_samples import METADATA, SECRET, a_template, parameters, specs, write_role

SITE = SiteValues({"domain": SiteParameter("a.example.com", ("a.example.com", "b.example.com"))})


def domain(root: Path, given: dict[str, Any], site: SiteValues | None = None, **words: Any) -> Any:
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


@pytest.mark.parametrize("key", ["site_parameters", "site_defaults"])
@pytest.mark.parametrize("names", ["domain", ["nope"], [1]])
def test_only_declared_parameters_can_belong_to_the_site_or_have_its_default(tmp_path: Path, key: str, names: Any) -> None:
    write_role(tmp_path, "site.base.one", METADATA | {key: names}, specs({"domain": {"type": "str"}}))
    problem = find_templates([tmp_path])["site.base.one"].problem
    assert problem and f"{key} must be a list of parameters of install" in problem


# Defaults of the site

DEFAULTS: dict[str, Any] = {
    "pull_secret": {"no_log": True, "required": True},
    "ssh_public_key": {},
    "version": {},
    "release_image": {"default": "built-in"},
}
HAS = SiteValues(secrets={"pull_secret": SECRET, "ssh_public_key": "key"}, release_images={"4.17.0": "image-0", "4.17.1": "image-1"})
BASE = {"pull_secret": SECRET, "ssh_public_key": "key", "release_image": "built-in"}
BOTH = {"site_parameters": ["release_image"]}


@pytest.mark.parametrize(
    ("given", "options", "wanted"),
    [
        ({}, {}, BASE),
        ({"pull_secret": "mine", "ssh_public_key": None}, {}, BASE | {"pull_secret": "mine"}),
        ({"version": "4.17.1"}, {}, BASE | {"version": "4.17.1", "release_image": "image-1"}),
        ({}, {"version": {"default": "4.17.0"}}, BASE | {"version": "4.17.0", "release_image": "image-0"}),
        ({"version": "4.17.1"}, {"version": {"default": "4.17.0"}}, BASE | {"version": "4.17.1", "release_image": "image-1"}),
        ({}, {"version": {"default": "4.20.0"}}, BASE | {"version": "4.20.0"}),
    ],
)
def test_an_order_leaves_out_what_the_site_has(given: Any, options: Any, wanted: Any, tmp_path: Path) -> None:
    for rules in ({}, BOTH):
        template = a_template(tmp_path, DEFAULTS | options, {"site_defaults": ["pull_secret", "ssh_public_key", "release_image"]} | rules)
        assert parameters(template, given, site=HAS) == wanted


@pytest.mark.parametrize(
    ("given", "site", "problem"),
    [
        ({}, SiteValues(), "parameter pull_secret is required, because this site has no default for it"),
        (
            {"version": "4.17.9"},
            HAS,
            'parameter version is "4.17.9", for which this site has no release image; it has 4.17.0, 4.17.1',
        ),
        (
            {"version": "4.17.0", "pull_secret": "x"},
            SiteValues(),
            'parameter version is "4.17.0", for which this site has no release image; it has no versions',
        ),
        (
            {"version": "4.17.0", "release_image": "built-in"},
            HAS,
            "parameters release_image, version exclude each other: give only one",
        ),
        ({"release_image": "evil"}, HAS, "parameter release_image belongs to the site: leave it out"),
    ],
)
def test_what_the_site_lacks_is_one_mistake(given: Any, site: SiteValues, problem: str, tmp_path: Path) -> None:
    template = a_template(tmp_path, DEFAULTS, {"site_defaults": ["pull_secret", "release_image"]} | BOTH)
    with pytest.raises(InvalidOrder) as caught:
        parameters(template, given, site=site)
    assert caught.value.problems == [problem]


def test_the_image_of_a_version_goes_before_the_default_image_of_the_site(tmp_path: Path) -> None:
    template = a_template(tmp_path, DEFAULTS, {"site_defaults": ["pull_secret", "release_image"]} | BOTH)
    site = replace(HAS, parameters={"release_image": SiteParameter("of-the-site")})
    assert parameters(template, {}, site=site)["release_image"] == "of-the-site"
    assert parameters(template, {"version": "4.17.1"}, site=site)["release_image"] == "image-1"


def test_forms_do_not_ask_for_what_the_site_may_have(tmp_path: Path) -> None:
    shown = summary(a_template(tmp_path, DEFAULTS, {"site_defaults": ["pull_secret"]}))
    assert "required" not in shown["schema"]
    assert not any(parameter["required"] for parameter in shown["parameters"])
    assert shown["site_defaults"] == ["pull_secret"]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (
            ["ssh_public_key", "version"],
            "a site has no default for version: site_defaults can be pull_secret, ssh_public_key",
        ),
        (["release_image"], "release_image in site_defaults needs a parameter version, by which the site has images"),
    ],
)
def test_a_site_has_defaults_for_some_parameters_only(names: list[str], problem: str, tmp_path: Path) -> None:
    options = {name: words for name, words in DEFAULTS.items() if name in names or name != "version"}
    assert problem in str(a_template(tmp_path, options, {"site_defaults": names}).problem)
