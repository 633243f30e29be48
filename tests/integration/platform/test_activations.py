"""A rulebook activation that runs is changed by disable, change and enable; if the changed one does not start, the old one runs again."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.sample import document
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError

from ..support.platform_documents import changed
from ..support.platform_runs import Runs

VARIABLES = {"organization": "other"}


def variables(runs: Runs) -> dict[str, object]:
    found: dict[str, object] = yaml.safe_load(runs.platform.eda_objects("activations")[0]["extra_var"])
    return found


def of_activation(writes: list[str]) -> list[str]:
    """What was done to the activation, by the last part of the address."""
    return [f"{write.partition(' ')[0]} {write.rstrip('/').rpartition('/')[2]}" for write in writes if "/activations/" in write]


def test_a_running_activation_is_stopped_changed_and_started(runs: Runs) -> None:
    runs.run(document())
    activation = runs.platform.eda_objects("activations")[0]
    assert (activation["status"], activation["is_enabled"]) == ("running", True)
    done = len(runs.platform.writes())
    runs.run(changed(document(), "eda_rulebook_activations", 0, extra_vars=VARIABLES))
    number = activation["id"]
    assert of_activation(runs.platform.writes()[done:]) == ["POST disable", f"PATCH {number}", "POST enable"]
    assert (activation["status"], variables(runs)) == ("running", VARIABLES)


def test_the_old_activation_runs_again_if_the_changed_one_does_not_start(runs: Runs) -> None:
    runs.run(document())
    activation, before = runs.platform.eda_objects("activations")[0], variables(runs)
    runs.platform.activations.defect = lambda row: "no such organization" if "other" in row["extra_var"] else ""
    with pytest.raises(KubeError, match="no such organization"):
        runs.run(changed(document(), "eda_rulebook_activations", 0, extra_vars=VARIABLES))
    assert (activation["status"], activation["is_enabled"], variables(runs)) == ("running", True, before)
    assert runs.measured(document())[1] == 0


def test_an_activation_is_disabled_and_enabled_by_its_state(runs: Runs) -> None:
    runs.run(changed(document(), "eda_rulebook_activations", 0, state="disabled"))
    activation = runs.platform.eda_objects("activations")[0]
    assert (activation["status"], activation["is_enabled"]) == ("stopped", False)
    done = len(runs.platform.writes())
    runs.run(changed(document(), "eda_rulebook_activations", 0, state="enabled"))
    assert of_activation(runs.platform.writes()[done:]) == ["POST enable"]
    assert activation["status"] == "running"


def test_a_new_activation_that_does_not_start_is_reported_with_its_reason(runs: Runs) -> None:
    runs.platform.activations.defect = lambda _row: "image cannot be pulled"
    with pytest.raises(KubeError, match="image cannot be pulled"):
        runs.run(document())
    runs.platform.activations.defect = lambda _row: ""
    assert len(runs.platform.eda_objects("activations")) == 1
