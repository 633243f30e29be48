"""What the settings of a site decide for templates: the names that an order can choose from, and whether post_install has work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.check import check
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.description import summary
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.errors import InvalidOrder
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.site_parameters import SiteParameter, SiteValues

from .template_samples import METADATA, a_template, parameters, specs, write_role

OPTIONS = {
    "storage_class": {"type": "str", "aliases": ["class"]},
    "operators": {"type": "list", "elements": "str"},
    "retention": {"type": "str"},
}
CHOICES = {"storage_class": "storage_classes", "operators": "infrastructure.addons.operators", "retention": "infrastructure.backup.times"}
SETTINGS: dict[str, Any] = {
    "storage_classes": {"fast": {}, "cheap": {}},
    "infrastructure": {"addons": {"operators": [{"name": "gpu"}, {"name": "nfd"}]}, "backup": {"times": ["168h", "720h"]}},
}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"storage_class": "fast"},
        {"class": "cheap"},
        {"operators": []},
        {"operators": ["nfd", "gpu"]},
        {"retention": "720h"},
        {"retention": None},
    ],
)
def test_an_order_can_have_what_the_site_has(tmp_path: Path, given: dict[str, Any]) -> None:
    template = a_template(tmp_path, OPTIONS, {"site_choices": CHOICES})
    wanted = {"storage_class" if name == "class" else name: value for name, value in given.items() if value is not None}
    assert parameters(template, given, site=SiteValues(settings=SETTINGS)) == wanted


@pytest.mark.parametrize(
    ("given", "settings", "message"),
    [
        ({"storage_class": "other"}, SETTINGS, 'parameter storage_class has "other", and this site has fast, cheap'),
        ({"class": "other"}, SETTINGS, 'parameter class has "other", and this site has fast, cheap'),
        ({"operators": ["gpu", "kube-system/x"]}, SETTINGS, 'parameter operators has "kube-system/x", and this site has gpu, nfd'),
        ({"retention": "1h"}, SETTINGS, 'parameter retention has "1h", and this site has 168h, 720h'),
        ({"storage_class": "fast"}, {}, 'parameter storage_class has "fast", and this site has none'),
        ({"retention": "168h"}, {"infrastructure": {"backup": "all"}}, 'parameter retention has "168h", and this site has none'),
        ({"operators": [{"name": "gpu"}]}, SETTINGS, "parameter operators[0] must be a string, not an object"),
        ({"storage_class": {"name": "fast"}}, SETTINGS, "parameter storage_class must be a string, not an object"),
    ],
)
def test_an_order_cannot_name_anything_else(tmp_path: Path, given: dict[str, Any], settings: dict[str, Any], message: str) -> None:
    template = a_template(tmp_path, OPTIONS, {"site_choices": CHOICES})
    with pytest.raises(InvalidOrder) as refused:
        parameters(template, given, site=SiteValues(settings=settings))
    assert refused.value.problems == [message]


def test_a_mapping_needs_the_setting_and_names_nothing_in_it(tmp_path: Path) -> None:
    template = a_template(tmp_path, {"gitops": {"type": "dict"}}, {"site_choices": {"gitops": "infrastructure.gitops"}})
    given = {"gitops": {"source": {"url": "https://git.example.com/a.git"}}}
    assert parameters(template, given, site=SiteValues(settings={"infrastructure": {"gitops": {}}})) == given
    with pytest.raises(InvalidOrder) as refused:
        parameters(template, given, site=SiteValues(settings=SETTINGS))
    assert refused.value.problems == ["parameter gitops is for sites that have infrastructure.gitops, and this one has not: leave it out"]
    assert parameters(template, {}, site=SiteValues(settings=SETTINGS)) == {}


def test_the_site_chooses_for_orders_without_a_value(tmp_path: Path) -> None:
    template = a_template(tmp_path, OPTIONS, {"site_choices": CHOICES})
    site = SiteValues({"storage_class": SiteParameter("cheap")}, settings=SETTINGS)
    assert parameters(template, {}, site=site) == {"storage_class": "cheap"}
    assert parameters(template, {"storage_class": "fast"}, site=site) == {"storage_class": "fast"}


def test_a_deletion_ignores_what_the_site_no_longer_has(tmp_path: Path) -> None:
    template = a_template(tmp_path, OPTIONS, {"site_choices": CHOICES})
    checked = check(template, '{"storage_class": "old"}', entry="delete", site=SiteValues(settings=SETTINGS))
    assert len(checked.ignored) == 1 and checked.parameters == {}


@pytest.mark.parametrize("wrong", [["storage_class"], {"other": "storage_classes"}, {"storage_class": "secrets"}, {"storage_class": 1}])
def test_choices_of_no_parameter_or_no_setting_are_a_mistake_of_the_author(tmp_path: Path, wrong: Any) -> None:
    assert "site_choices must be a mapping of parameters" in str(a_template(tmp_path, OPTIONS, {"site_choices": wrong}).problem)


def test_choices_are_inherited_and_described(tmp_path: Path) -> None:
    a_template(tmp_path, OPTIONS, {"site_choices": CHOICES})
    write_role(tmp_path, "site.base.two", {"extends": "site.base.one"}, None)
    assert summary(find_templates([tmp_path])["site.base.two"])["site_choices"] == CHOICES


# The step after the installation

CONDITION = {"post_install_if_site_has": ["storage_classes", "infrastructure.dns"]}


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({}, False),
        ({"storage_classes": {}, "infrastructure": {}}, False),
        ({"infrastructure": {"hosts": {"adapter": "x"}}}, False),
        ({"infrastructure": {"dns": {}}}, False),
        ({"infrastructure": {"dns": {"zone": "x"}}}, True),
        ({"storage_classes": {"fast": {}}}, True),
    ],
)
def test_a_site_without_anything_for_the_step_does_without_it(tmp_path: Path, settings: dict[str, Any], needed: bool) -> None:
    write_role(tmp_path, "site.base.one", METADATA | CONDITION, specs(), tasks=("post_install",))
    write_role(tmp_path, "site.base.inherits", {"extends": "site.base.one"}, None)
    write_role(tmp_path, "site.base.own", {"extends": "site.base.one"}, None, tasks=("post_install",))
    write_role(tmp_path, "site.base.without", METADATA, specs())
    templates = find_templates([tmp_path])
    assert [templates[f"site.base.{name}"].needs_post_install(settings) for name in ("one", "inherits", "own", "without")] == [
        needed,
        needed,
        True,
        False,
    ], "a template with tasks of its own has its own condition, or none"


@pytest.mark.parametrize("wrong", ["storage_classes", ["secrets"], [1], {"storage_classes": 1}])
def test_a_condition_of_no_setting_is_a_mistake_of_the_author(tmp_path: Path, wrong: Any) -> None:
    write_role(tmp_path, "site.base.one", METADATA | {"post_install_if_site_has": wrong}, specs(), tasks=("post_install",))
    assert "post_install_if_site_has must be a list of settings" in str(find_templates([tmp_path])["site.base.one"].problem)
