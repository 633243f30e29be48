"""The generated document: every template that the rulebooks launch, with the prompts they use; all objects that it refers to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator import events, job_templates
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.document import generate
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.facts import (
    JOB,
    CollectionFacts,
    Launch,
    Rulebook,
    read_facts,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.secrets import Secrets
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.site import Site, parse
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.kinds import DOCUMENT_KEYS, KINDS

ROOT = Path(__file__).resolve().parents[4]
FACTS = read_facts(ROOT, ["openfleet.clusters.capi_small", "openfleet.clusters.ocp_4_17_small"])
VARIABLES = {name for playbook in FACTS.playbooks.values() for name in playbook.variables}
EXAMPLE = yaml.safe_load((ROOT / "docs/examples/platform_site.yml").read_text(encoding="utf-8"))
SECRETS = Secrets("configure-token", "engine-token", "apiVersion: v1\nkind: Config\n", "webhook-token")
OF_KIND = {"run_job_template": "controller_templates", "run_workflow_template": "controller_workflows"}
# What belongs to the platform itself, and is in no document.
BUILT_IN = {"Red Hat Ansible Automation Platform", "Token Event Stream", "cluster_fulfillment_aap.yml", "cluster_webhooks_aap.yml"}

Document = dict[str, list[dict[str, Any]]]


def site(**keys: Any) -> Site:
    return parse(EXAMPLE | keys, VARIABLES)


def document(facts: CollectionFacts = FACTS, **keys: Any) -> Document:
    return generate(facts, site(**keys), SECRETS)


def named(generated: Document, kind: str, name: str) -> dict[str, Any]:
    return next(item for item in generated[kind] if item["name"] == name)


def refused(generated: Document, facts: CollectionFacts = FACTS) -> Iterator[str]:
    """What the platform would refuse or drop of the launches of the rulebooks with the variables of their activations."""
    for activation in generated["eda_rulebook_activations"]:
        rulebook = facts.rulebooks[activation["rulebook"].removesuffix(".yml")]
        for launch in rulebook.launches:
            name = activation["extra_vars"].get(launch.variable, launch.default)
            found = [item for item in generated[OF_KIND[launch.kind]] if item["name"] == name]
            if not found:
                yield f"{launch.kind} {name}: not in the document"
                continue
            used = {"variables": launch.extra_vars, "limit": launch.limit, "labels": launch.labels}
            yield from (f"{name}: {what}" for what, value in used.items() if value and not found[0][f"ask_{what}_on_launch"])
            if activation["extra_vars"]["organization"] != found[0]["organization"]:
                yield f"{name}: organization"
            questions = found[0].get("survey_spec", {}).get("spec", [])
            yield from (f"{name}: {question['variable']} is required" for question in questions if question["required"])


@pytest.mark.parametrize("prefix", ["openfleet", "second-hub"])
def test_every_template_that_the_rulebooks_launch_is_there_with_the_prompts_they_use(prefix: str) -> None:
    assert list(refused(document(prefix=prefix))) == []


@pytest.mark.parametrize("prompt", ["variables", "limit", "labels"])
@pytest.mark.parametrize("kind", OF_KIND.values())
def test_missing_prompt_is_found(kind: str, prompt: str) -> None:
    """The test above can fail."""
    generated = document()
    named(generated, kind, "openfleet-create-cluster")[f"ask_{prompt}_on_launch"] = False
    assert f"openfleet-create-cluster: {prompt}" in list(refused(generated))


def test_launch_of_an_unknown_template_is_found() -> None:
    launch = Launch(JOB, "new_template", "openfleet-new", frozenset(), "", labels=False)
    engine = FACTS.rulebooks[events.ENGINE]
    changed = Rulebook(engine.name, engine.variables, engine.sources, (*engine.launches, launch))
    facts = CollectionFacts(FACTS.playbooks, {**FACTS.rulebooks, events.ENGINE: changed}, FACTS.templates)
    assert f"{JOB} openfleet-new: not in the document" in list(refused(document(facts), facts))


def test_prompts_follow_the_rulebooks() -> None:
    """A rulebook without labels and limit needs no prompt for them."""
    launch = Launch(JOB, "create_template", "openfleet-create-cluster", frozenset({"a"}), "", labels=False)
    asked = job_templates.prompts(FACTS.playbooks["create_cluster"], [launch])
    assert (asked["ask_variables_on_launch"], asked["ask_limit_on_launch"], asked["ask_labels_on_launch"]) == (True, False, False)


def test_every_playbook_has_a_job_template_that_runs_it() -> None:
    generated = document()
    playbooks = [template["playbook"] for template in generated["controller_templates"]]
    assert set(playbooks) == {f"playbooks/{name}.yml" for name in FACTS.playbooks}
    assert all((ROOT / playbook).is_file() for playbook in playbooks)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("create-cluster", {"variables", "limit", "labels"}),
        ("post-install", {"variables", "limit", "labels"}),
        ("delete-cluster", {"variables", "limit", "labels"}),
        ("post-install-due", set()),
        ("sync-status", {"variables", "job_type"}),
        ("upgrade-clusters", {"variables", "job_type"}),
        ("failover", {"variables", "job_type", "credential"}),
        ("dr-migration-compare", {"credential"}),
        ("configure-platform", {"job_type"}),
    ],
)
def test_template_asks_for_what_it_needs_and_nothing_else(name: str, asked: set[str]) -> None:
    template = named(document(), "controller_templates", f"openfleet-{name}")
    prompts = {re.sub(r"ask_(\w+)_on_launch", r"\1", key): value for key, value in template.items() if key.startswith("ask_")}
    assert {prompt for prompt, value in prompts.items() if value} == asked
    assert prompts.keys() == {"variables", "limit", "labels", "job_type", "credential"}


def test_survey_of_an_upgrade_offers_the_installed_templates() -> None:
    spec = named(document(), "controller_templates", "openfleet-upgrade-clusters")["survey_spec"]["spec"]
    assert [(question["variable"], question["type"]) for question in spec] == [
        ("cluster_upgrade_release", "text"),
        ("cluster_upgrade_templates", "multiselect"),
    ]
    assert spec[1]["choices"] == list(FACTS.templates)


def test_workflow_creates_then_configures_and_reports_a_failure() -> None:
    workflow = named(document(), "controller_workflows", "openfleet-create-cluster")
    edges = {
        node["identifier"]: {kind: [next_node["identifier"] for next_node in found] for kind, found in node["related"].items() if found}
        for node in workflow["workflow_nodes"]
    }
    assert edges == {
        "create_cluster": {"success_nodes": ["post_install_due"], "failure_nodes": ["sync_status"]},
        "post_install_due": {"failure_nodes": ["sync_status"]},
        "sync_status": {},
    }


def test_variables_of_the_site_reach_the_jobs_and_the_activations_that_take_them() -> None:
    generated = document(variables={"cluster_order_api_group": "osac.openshift.io", "dr_bucket": "coordination"})
    extra_vars = {template["name"]: template["extra_vars"] for template in generated["controller_templates"]}
    assert extra_vars["openfleet-create-cluster"] == {"cluster_order_api_group": "osac.openshift.io"}
    assert extra_vars["openfleet-failover"] == {"dr_bucket": "coordination"}
    engine = named(generated, "eda_rulebook_activations", "openfleet-cluster-fulfillment")
    assert engine["extra_vars"] == {
        "cluster_order_api_group": "osac.openshift.io",
        "organization": "openfleet",
        "event_source": {"max_in_flight": 8},
    }


def test_job_of_the_configuration_has_the_site_file_it_was_made_with() -> None:
    template = named(document(), "controller_templates", "openfleet-configure-platform")
    assert template["extra_vars"] == {"platform_site": EXAMPLE}
    assert template["credentials"] == ["openfleet-hub", "openfleet-platform"]
    again = parse(json.loads(json.dumps(template["extra_vars"]))["platform_site"], VARIABLES)
    assert generate(FACTS, again, SECRETS) == document()


def test_secrets_are_in_credentials_only() -> None:
    without = {kind: items for kind, items in document().items() if kind not in ("controller_credentials", "eda_credentials")}
    shown = json.dumps(without)
    assert not [secret for secret in ("configure-token", "engine-token", "kind: Config", "webhook-token") if secret in shown]
    assert "configure-token" not in repr(SECRETS)


def test_pod_of_a_job_has_the_secrets_and_nothing_else_of_the_cluster() -> None:
    (group,) = document()["controller_instance_groups"]
    pod = yaml.safe_load(group["pod_spec_override"])
    (container,) = pod["spec"]["containers"]
    assert pod["metadata"] == {}
    assert (pod["spec"]["serviceAccountName"], pod["spec"]["automountServiceAccountToken"]) == ("openfleet-jobs", False)
    mounts = {mount["name"]: (mount["mountPath"], mount["readOnly"]) for mount in container["volumeMounts"]}
    assert mounts == {"openfleet-hub": ("/etc/openfleet/hub", True), "openfleet-s3": ("/etc/openfleet/s3", True)}
    assert {volume["secret"]["secretName"] for volume in pod["spec"]["volumes"]} == mounts.keys()
    (path,) = (item["inputs"]["path"] for item in document()["controller_credentials"] if item["name"] == "openfleet-hub")
    assert Path(path).parent == Path("/etc/openfleet/hub")


def test_event_stream_replaces_the_source_of_the_rulebook_for_webhooks_only() -> None:
    generated = document()
    streams = {item["name"]: item.get("event_streams", []) for item in generated["eda_rulebook_activations"]}
    assert streams == {
        "openfleet-cluster-fulfillment": [],
        "openfleet-webhooks": [{"event_stream": "openfleet-webhooks", "source_name": "webhooks"}],
    }
    without = document(webhooks=False)
    assert without["eda_event_streams"] == []
    assert [item["name"] for item in without["eda_rulebook_activations"]] == ["openfleet-cluster-fulfillment"]


def test_document_has_known_kinds_and_fields_only() -> None:
    extra = {"survey": {"survey_spec"}, "nodes": {"workflow_nodes"}}
    for key, items in document().items():
        assert key in DOCUMENT_KEYS
        kind = KINDS[key]
        known = {"name", *(name for member in kind.members() for name in (member.name, *member.aliases))}
        known |= {name for flag, names in extra.items() if getattr(kind, flag) for name in names}
        known |= {"event_streams"} if key == "eda_rulebook_activations" else set()
        assert {field for item in items for field in item} <= known, key
        assert all(field in item for item in items for field in kind.required), key


def test_every_reference_is_in_the_document() -> None:
    generated = document()
    names = {key: {item["name"] for item in items} for key, items in generated.items()}
    names |= {"organizations of EDA": names["aap_organizations"], "rulebooks of EDA": set()}
    for key, items in generated.items():
        for reference in KINDS[key].references:
            found = {item[name] for item in items for name in (reference.name, *reference.aliases) if name in item}
            assert found <= set().union(*(names.get(kind, set()) for kind in reference.kinds)) | BUILT_IN, (key, reference.name)
        for association in KINDS[key].associations:
            assert {name for item in items for name in item.get(association.name, [])} <= names.get(association.kind, set())
    nodes = [node for workflow in generated["controller_workflows"] for node in workflow["workflow_nodes"]]
    assert {node["unified_job_template"]["name"] for node in nodes} <= names["controller_templates"]


def test_names_of_a_kind_are_unique() -> None:
    for key, items in document().items():
        assert len({item["name"] for item in items}) == len(items), key
