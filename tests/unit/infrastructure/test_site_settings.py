"""The settings of a site: which templates it offers to whom, and a message for every mistake."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import (
    InvalidSiteSettings,
    SiteSettings,
    parse,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.site_parameters import SiteParameter

OURS, THEIRS = "openfleet.clusters.capi_small", "acme.templates.small"
POLICY = """
tenant-secret: []
tenant-*: [capi_small]
partner: [acme.templates.*, capi_small]
staff: ["*"]
"""


def offers(settings: SiteSettings, namespace: str, template: str) -> bool:
    wanted: Any = SimpleNamespace(id=template)
    return settings.offers(namespace, wanted)


@pytest.mark.parametrize(
    ("namespace", "ours", "theirs"),
    [
        ("tenant-a", True, False),
        ("tenant-secret", False, False),  # the first pattern that matches counts
        ("partner", True, True),
        ("staff", True, True),
        ("elsewhere", False, False),  # no pattern matches
        ("xtenant-a", False, False),
    ],
)
def test_templates_are_offered_by_namespace(namespace: str, ours: bool, theirs: bool) -> None:
    settings = parse({"templates": POLICY}, "site")
    assert (offers(settings, namespace, OURS), offers(settings, namespace, THEIRS)) == (ours, theirs)


def test_without_a_policy_every_template_is_offered() -> None:
    assert offers(SiteSettings(), "anyone", THEIRS) and offers(parse({"parameters": ""}, "site"), "anyone", OURS)
    assert not offers(parse({"templates": ""}, "site"), "anyone", OURS), "an empty policy is one: it offers nothing"


def test_parameters_have_a_default_and_allowed_values() -> None:
    settings = parse({"parameters": "base_domain: {default: a.example.com, allowed: [a.example.com, 7]}"}, "site")
    assert settings.parameters == {"base_domain": SiteParameter("a.example.com", ("a.example.com", 7))}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"template": ""}, "template is not known (did you mean templates?)"),
        ({"templates": "[a]"}, "templates must be a mapping in YAML"),
        ({"templates": "{a: b"}, "templates is not valid YAML"),
        ({"parameters": "a: {default: 2026-99-99}"}, "parameters is not valid YAML"),
        ({"templates": "a: b"}, "templates.a must be a list of names"),
        ({"templates": "a: [1]"}, "templates.a must be a list of names"),
        ({"parameters": "base_domain: a.example.com"}, "parameters.base_domain must be a mapping with default, allowed, or both"),
        ({"parameters": "a: {alowed: [b]}"}, "parameters.a must be a mapping with default, allowed, or both"),
        ({"parameters": "a: {allowed: b}"}, "parameters.a.allowed must be a list of values"),
    ],
)
def test_a_mistake_is_named_by_its_key(data: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidSiteSettings) as caught:
        parse(data, "openfleet-system/site-settings")
    assert str(caught.value) == f"The site's settings, ConfigMap openfleet-system/site-settings, cannot be used: {problem}."
