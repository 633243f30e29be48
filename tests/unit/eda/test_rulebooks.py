"""The rulebooks, rendered as ansible-rulebook renders them: what the event source gets where a site sets nothing, and where it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.settings import Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination import settings as coordination
from ansible_rulebook.util import substitute_variables

RULEBOOKS = Path(__file__).resolve().parents[3] / "rulebooks"


def settings(rulebook: str, **variables: Any) -> Settings:
    (ruleset,) = yaml.safe_load((RULEBOOKS / f"{rulebook}.yml").read_text(encoding="utf-8"))
    (source,) = ruleset["sources"]
    arguments = substitute_variables(source["openfleet.clusters.cluster_orders"], variables)
    return Settings.from_arguments(arguments)


def test_a_job_may_be_pending_for_an_hour_and_a_playbook_run_is_never_pending() -> None:
    assert settings("cluster_fulfillment") == Settings()
    assert settings("cluster_fulfillment_aap") == Settings(pending_timeout=3600)


@pytest.mark.parametrize("rulebook", ["cluster_fulfillment", "cluster_fulfillment_aap"])
def test_a_site_sets_arguments_of_the_source_in_one_variable(rulebook: str) -> None:
    given = settings(rulebook, event_source={"pending_timeout": 900, "batch_size": 3})
    assert given == Settings(pending_timeout=900, batch_size=3)


def test_rulebook_of_disaster_recovery_follows_the_placement_controls_of_its_cluster() -> None:
    (ruleset,) = yaml.safe_load((RULEBOOKS / "dr_placement.yml").read_text(encoding="utf-8"))
    (source,) = ruleset["sources"]
    variables = {"dr_bucket": "coordination", "dr_this_cluster": "east", "dr_store": {"endpoint_url": "https://s3.example.com"}}
    arguments = substitute_variables(source["openfleet.clusters.dr_placements"], variables)
    assert arguments.pop("site_namespace") == "openfleet-system"
    given = coordination.Settings.from_arguments(arguments)
    assert (given.follow_drpcs, given.holder, given.cluster) == (True, "east", "east")
    assert given.registry_namespace == "openfleet-system", "the health of the peers is kept current"
    assert given.store["bucket"] == "coordination" and given.store["endpoint_url"] == "https://s3.example.com"
