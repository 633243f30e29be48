"""What a module documents is what its action takes: each option with its type, choices, default, aliases, and whether it is a secret."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.plugins import modules

PACKAGE = "ansible_collections.openfleet.clusters.plugins"
FOLDER = Path(next(iter(modules.__path__)))
ROOT = FOLDER.parents[1]
ALL = sorted(file.stem for file in FOLDER.glob("*.py") if not file.stem.startswith("_"))
ON_S3 = [name for name in ALL if name.startswith("s3_")]
ON_BOTH = ["dr_placement", "dr_placement_info", "dr_request"]
ON_PLATFORM = ["platform_configuration", "platform_configuration_info", "platform_job"]
WITHOUT_CLUSTER = ["cluster_order_proposal", "cluster_template_info", *ON_PLATFORM[1:], "platform_document_info", "vm_class_info"]
ON_KUBERNETES = [name for name in ALL if name not in (*WITHOUT_CLUSTER, *ON_S3)]
CONNECTED = [*ON_KUBERNETES, *ON_S3, *ON_PLATFORM[1:], "platform_document_info", "cluster_order_proposal"]
# What Ansible must never show. A public key is not one, and its option says so.
SECRET_OPTIONS = {"kubeconfig", "api_key", "password", "client_key", "secret_key", "session_token", "secrets", "template_parameters"}
SECRET_OPTIONS |= {"aap_token", "aap_password", "aap_oauth_client_secret", "document", "forge_token"}
SECRET_IN = {
    "cluster_addon": {"parameters"},
    "cluster_order_finish": {"orders"},
    "hub_preparation": {"home_kubeconfig"},
    "platform_document_info": {"token", "engine_token", "engine_kubeconfig", "webhook_token"},
}


def documentation(name: str) -> dict[str, Any]:
    text: dict[str, Any] = yaml.safe_load(importlib.import_module(f"{PACKAGE}.modules.{name}").DOCUMENTATION)
    return text


def fragments(name: str) -> Iterator[dict[str, Any]]:
    for fragment in documentation(name)["extends_documentation_fragment"]:
        file, _dot, part = fragment.removeprefix("openfleet.clusters.").partition(".")
        texts = importlib.import_module(f"{PACKAGE}.doc_fragments.{file}").ModuleDocFragment
        yield yaml.safe_load(getattr(texts, part.upper() or "DOCUMENTATION"))


def options(name: str) -> dict[str, Any]:
    """All documented options, with those of the fragments."""
    found = dict(documentation(name)["options"])
    for fragment in fragments(name):
        shared = fragment.get("options", {})
        assert not found.keys() & shared.keys()
        found |= shared
    return found


def attributes(name: str) -> dict[str, dict[str, Any]]:
    """All documented attributes; a module and its fragments add to each other."""
    found: dict[str, dict[str, Any]] = {}
    for part in (*fragments(name), documentation(name)):
        for attribute, words in part.get("attributes", {}).items():
            found[attribute] = found.get(attribute, {}) | words
    return found


def comparable(spec: dict[str, Any], inner: str) -> dict[str, Any]:
    """An option as its documentation and its spec both tell it."""
    documented = {
        key: spec[key] for key in ("type", "elements", "choices", "default", "aliases") if spec.get(key) is not None and spec[key] != []
    }
    documented["required"] = bool(spec.get("required"))
    if spec.get("default") == []:
        documented["default"] = []
    if inner in spec:
        documented["options"] = {name: comparable(option, inner) for name, option in spec[inner].items()}
    return documented


@pytest.mark.parametrize("name", CONNECTED)
def test_arguments_of_the_action_are_the_documented_options(name: str) -> None:
    action = importlib.import_module(f"{PACKAGE}.action.{name}").ActionModule
    taken = {option: comparable(spec, "options") for option, spec in (action.SHARED | action.SPEC).items()}
    assert taken == {option: comparable(spec, "suboptions") for option, spec in options(name).items()}


@pytest.mark.parametrize("name", CONNECTED)
def test_module_that_is_run_as_one_knows_the_arguments_of_its_action(name: str) -> None:
    module = importlib.import_module(f"{PACKAGE}.modules.{name}")
    action = importlib.import_module(f"{PACKAGE}.action.{name}").ActionModule
    assert module.SPEC == action.SPEC
    assert getattr(module, "RULES", {}) == action.RULES


@pytest.mark.parametrize("name", CONNECTED)
def test_secrets_are_marked_and_nothing_else(name: str) -> None:
    action = importlib.import_module(f"{PACKAGE}.action.{name}").ActionModule
    spec = action.SHARED | action.SPEC
    marked = {option for option, details in spec.items() if details.get("no_log")}
    assert marked == (SECRET_OPTIONS & spec.keys()) | SECRET_IN.get(name, set())


@pytest.mark.parametrize("name", ALL)
def test_module_says_what_its_reader_needs(name: str) -> None:
    module = importlib.import_module(f"{PACKAGE}.modules.{name}")
    documented = documentation(name)
    assert documented["module"] == name
    assert documented["short_description"]
    assert not documented["short_description"].endswith(".")
    assert attributes(name).keys() == {"check_mode", "diff_mode", "action"}
    assert all({"support", "description"} <= words.keys() for words in attributes(name).values())
    assert yaml.safe_load(module.RETURN)
    examples = yaml.safe_load(module.EXAMPLES)
    assert f"openfleet.clusters.{name}" in module.EXAMPLES
    assert all(example["name"][0].isupper() for example in examples)


def test_action_groups_have_all_modules_with_the_options_that_are_set_for_them() -> None:
    groups = yaml.safe_load((ROOT / "meta/runtime.yml").read_text(encoding="utf-8"))["action_groups"]
    assert groups == {
        "kubernetes": [*ON_KUBERNETES, {"metadata": {"extend_group": ["kubernetes.core.k8s"]}}],
        "cluster": [name for name in ON_KUBERNETES if {"cluster_order", "provider", "api_group"} <= options(name).keys()],
        "cluster_write": [name for name in ON_KUBERNETES if "lock" in options(name)],
        "s3": [*ON_BOTH, *ON_S3],
        "platform": ON_PLATFORM,
    }


@pytest.mark.parametrize("name", ALL)
def test_every_module_has_an_action_of_its_name(name: str) -> None:
    assert (ROOT / "plugins/action" / f"{name}.py").is_file()
