"""The settings of a site: which templates it offers to whom, and a message for every mistake."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_secrets import SiteSecrets
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import (
    KEYS,
    NEEDED_TO_DELETE,
    InvalidSiteSettings,
    SiteSettings,
    parse,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.site_parameters import SiteParameter

SECRET, KEY = "s3cret-value", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA== me@example.com"
OURS, THEIRS = "openfleet.clusters.capi_small", "acme.templates.small"
POLICY = """
tenant-secret: []
tenant-*: [capi_small]
partner: [acme.templates.*, capi_small]
staff: ["*"]
"""


def encoded(data: Mapping[str, str | bytes]) -> dict[str, str]:
    return {key: base64.b64encode(value.encode() if isinstance(value, str) else value).decode() for key, value in data.items()}


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
    settings = parse({"templates": POLICY}, {}, "site")
    assert (offers(settings, namespace, OURS), offers(settings, namespace, THEIRS)) == (ours, theirs)


def test_without_a_policy_every_template_is_offered() -> None:
    assert offers(SiteSettings(), "anyone", THEIRS) and offers(parse({"parameters": ""}, {}, "site"), "anyone", OURS)
    assert not offers(parse({"templates": ""}, {}, "site"), "anyone", OURS), "an empty policy is one: it offers nothing"


def test_parameters_have_a_default_and_allowed_values() -> None:
    settings = parse({"parameters": "base_domain: {default: a.example.com, allowed: [a.example.com, 7]}"}, {}, "site")
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
        ({"parameters": "7: {default: b}"}, "parameters.7 must be a string: put it in quotes"),
        ({"classes": "fc430: agent"}, "classes.fc430 must be a mapping"),
        ({"classes": "fc430: {}"}, "classes.fc430.kind must be one of agent, vm"),
        ({"classes": "fc430: {kind: pet}"}, "classes.fc430.kind must be one of agent, vm"),
        ({"classes": "fc430: {kind: agent, labels: {a: 1}}"}, "classes.fc430.labels must be a mapping of strings"),
        ({"release_images": "4.17: image"}, "release_images.4.17 must be a string: put it in quotes"),
        ({"release_images": "4.17.0:"}, "release_images.4.17.0 must be the name of an image"),
        ({"storage_classes": "[fast]"}, "storage_classes must be a mapping in YAML"),
        ({"storage_classes": "fast: ssd"}, "storage_classes.fast must be a mapping"),
        ({"infrastructure": "dns: none"}, "infrastructure.dns must be a mapping"),
        ({"infrastructure": "dns: {adapter: [a]}"}, "infrastructure.dns.adapter must be the name of a role"),
        ({"agent_namespace": "[hosts]"}, "agent_namespace must be the name of a namespace"),
        ({"agent_namespace": "Hosts"}, "agent_namespace must be the name of a namespace"),
        ({"allow_inline_secrets": "never"}, "allow_inline_secrets must be true or false"),
    ],
)
def test_a_mistake_is_named_by_its_key(data: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidSiteSettings) as caught:
        parse(data, {}, "openfleet-system")
    assert str(caught.value) == f"The site's settings, ConfigMap openfleet-system/site-settings, cannot be used: {problem}."


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"pull-secret": SECRET}, "pull-secret is not known (did you mean pull_secret?)"),
        ({"pull_secret": SECRET}, "pull_secret must be a JSON object with auths, as the registry's owner provides it"),
        ({"pull_secret": f'{{"{SECRET}": 1}}'}, "pull_secret must be a JSON object with auths, as the registry's owner provides it"),
        ({"pull_secret": b"\xff"}, "pull_secret is not text in UTF-8"),
        ({"ssh_public_key": SECRET}, "ssh_public_key must be one line of an OpenSSH public key file"),
        ({"ssh_public_key": f"{KEY}\n{KEY}"}, "ssh_public_key must be one line of an OpenSSH public key file"),
    ],
)
def test_a_mistake_in_the_secret_is_named_by_its_key_and_never_by_its_value(data: dict[str, str | bytes], problem: str) -> None:
    with pytest.raises(InvalidSiteSettings) as caught:
        parse({}, encoded(data), "openfleet-system")
    assert str(caught.value) == f"The site's settings, Secret openfleet-system/site-secrets, cannot be used: {problem}."
    assert SECRET not in repr(caught.value.usable)


def test_mistakes_in_both_objects_are_one_message() -> None:
    with pytest.raises(
        InvalidSiteSettings, match=r"ConfigMap .* templates must be .*\. The site's settings, Secret .* pull_secret must be"
    ):
        parse({"templates": "[a]"}, encoded({"pull_secret": "x"}), "openfleet-system")


def test_secrets_are_text_without_the_line_break_of_their_file_and_are_not_shown() -> None:
    settings = parse({}, encoded({"pull_secret": '{"auths": {}}\n', "ssh_public_key": f"{KEY}\n"}), "openfleet-system")
    assert settings.secrets == SiteSecrets('{"auths": {}}', KEY)
    assert "auths" not in repr(settings) and KEY not in repr(settings)


def test_templates_get_what_the_site_has_without_its_secrets() -> None:
    data = {
        "classes": "fc430: {kind: agent, labels: {size: small}}",
        "release_images": "4.17.0: registry/ocp:4.17.0",
        "storage_classes": "fast: {default: true}",
        "infrastructure": "dns: {adapter: acme.site.dns, zone: example.com}",
        "agent_namespace": "hosts",
    }
    settings = parse(data, encoded({"pull_secret": '{"auths": {}}'}), "openfleet-system")
    assert settings.as_variable() == {
        "classes": {"fc430": {"kind": "agent", "labels": {"size": "small"}}},
        "release_images": {"4.17.0": "registry/ocp:4.17.0"},
        "storage_classes": {"fast": {"default": True}},
        "infrastructure": {"dns": {"adapter": "acme.site.dns", "zone": "example.com"}},
        "agent_namespace": "hosts",
    }
    assert set(SiteSettings().as_variable()) == set(settings.as_variable()), "a template finds every key"


def test_a_deletion_does_without_the_keys_that_it_does_not_need() -> None:
    for key in KEYS:
        with pytest.raises(InvalidSiteSettings) as caught:
            parse({key: "[]", "storage_classes": "fast: 1"}, {}, "site")
        assert (caught.value.usable is None) == (key in NEEDED_TO_DELETE), key
