"""What the generator reads in the collection, against the files and the tables that depend on them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.facts import JOB, WORKFLOW, read_facts
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.variables import (
    QUESTIONS,
    SET_AT_LAUNCH,
    SET_BY_PLATFORM,
    SET_BY_SITE,
    SURVEYS,
)

ROOT = Path(__file__).resolve().parents[4]
FACTS = read_facts(ROOT, ["openfleet.clusters.ocp_4_17_small"])


def test_variables_of_a_playbook_include_those_of_the_playbooks_that_it_imports() -> None:
    create = FACTS.playbooks["create_cluster"]
    assert {"cluster_order_name", "cluster_orders", "awx_job_id", "hub_kubeconfig"} <= create.variables
    assert "cluster_infrastructure" not in create.variables
    assert "dr_end_test" in FACTS.playbooks["test_failover"].variables
    assert create.description == "Creates or updates the clusters of ClusterOrders."


def test_description_of_every_playbook_is_whole_sentences() -> None:
    """It is the first line of its comment, and the description of its job template."""
    assert [name for name, playbook in FACTS.playbooks.items() if not playbook.description.endswith(".")] == []


def test_launches_of_a_rulebook_have_what_its_rules_pass() -> None:
    launches = FACTS.rulebooks["cluster_fulfillment_aap"].launches
    assert {(launch.kind, launch.default) for launch in launches} == {
        (kind, f"openfleet-{name}") for kind in (JOB, WORKFLOW) for name in ("create-cluster", "post-install", "delete-cluster")
    }
    assert {(launch.limit, launch.labels) for launch in launches} == {("localhost,cluster_orders", True)}
    assert all("cluster_order_api_group" in launch.extra_vars for launch in launches)


def test_name_of_a_launched_template_that_is_no_variable_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rulebooks").mkdir()
    (tmp_path / "rulebooks" / "fixed.yml").write_text(
        "[{hosts: all, sources: [{name: a}], rules: [{name: R, action: {run_job_template: {name: fixed}}}]}]"
    )
    with pytest.raises(ValueError, match="R: the name of a template is a variable with a default, not fixed"):
        read_facts(tmp_path, [])


def test_every_variable_is_set_by_the_platform_by_the_site_or_at_launch() -> None:
    taken = [name for playbook in FACTS.playbooks.values() for name in playbook.variables]
    assert sorted(set(taken)) == sorted([*SET_BY_PLATFORM, *SET_BY_SITE, *SET_AT_LAUNCH])


def test_surveys_ask_for_variables_of_their_playbooks() -> None:
    for playbook, variables in SURVEYS.items():
        assert set(variables) <= FACTS.playbooks[playbook].variables
    assert set(QUESTIONS) == {variable for variables in SURVEYS.values() for variable in variables}


def test_playbook_that_a_rulebook_launches_has_no_survey() -> None:
    launched = {launch.default.removeprefix("openfleet-").replace("-", "_") for launch in FACTS.launches}
    assert launched <= FACTS.playbooks.keys()
    assert not launched & SURVEYS.keys()
