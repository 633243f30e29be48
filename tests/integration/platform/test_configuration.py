"""A document on a platform: everything is written once, nothing twice, and only what is ours is changed or deleted."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.openfleet.clusters.extensions.sandbox.platform.sample import document
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import Platform

from ..support.automation_platform import create, generated, request
from ..support.platform_documents import changed, content_of, without
from ..support.platform_runs import LedgerInMemory, Runs

REQUESTS = 20


def test_a_second_run_writes_nothing_in_few_requests_however_many_templates_there_are(either: Runs) -> None:
    content = document(templates=30)
    either.run(content)
    before = content_of(either.platform)
    assert len([line for line in before if line.startswith("job_templates")]) == 30
    requests, writes = either.measured(content)
    assert (writes, content_of(either.platform)) == (0, before)
    assert requests <= REQUESTS


def test_a_second_run_of_the_generated_document_writes_nothing_in_few_requests(either: Runs, tmp_path: Path) -> None:
    content = generated(either.url, tmp_path / "kubeconfig")
    either.run(content)
    requests, writes = either.measured(content)
    assert writes == 0 and requests <= REQUESTS


def test_check_mode_plans_everything_on_an_empty_platform_and_writes_nothing(either: Runs) -> None:
    before = content_of(either.platform)
    planned = either.run(document(), check=True)
    assert (either.platform.writes(), content_of(either.platform)) == ([], before)
    done = either.run(document())
    assert [change.called for change in planned.changes] == [change.called for change in done.changes]


def test_a_change_by_hand_is_planned_and_reverted_field_by_field(runs: Runs) -> None:
    runs.run(document())
    wanted = content_of(runs.platform)
    number = runs.platform.controller_store.named("job_templates", name="create-0")["id"]
    request(runs.platform, "PATCH", f"job_templates/{number}/", limit="by hand", extra_vars="{}")
    request(runs.platform, "POST", f"job_templates/{number}/instance_groups/", id=1)
    planned = runs.run(document(), check=True).changes
    assert [(change.called, sorted(each.field for each in change.fields)) for change in planned] == [
        ("job template create-0", ["extra_vars", "instance_groups"])
    ]
    runs.run(changed(document(), "controller_templates", 0, limit=""))
    assert content_of(runs.platform) == wanted


def test_a_secret_is_written_again_exactly_when_its_value_changes(runs: Runs) -> None:
    runs.run(document())
    credential = runs.platform.objects("credentials")[0]
    other = changed(document(), "controller_credentials", 0, inputs={"kubeconfig": "of another hub"})
    assert runs.measured(other)[1] == 1
    assert credential["inputs"] == {"kubeconfig": "of another hub"}
    assert runs.measured(other)[1] == 0


def test_what_leaves_the_document_is_deleted_and_nothing_else(runs: Runs) -> None:
    by_hand = made_by_hand(runs.platform)
    runs.run(document())
    reduced = without(document(), "controller_schedules", "hourly")
    reduced = without(without(reduced, "controller_workflows", "both"), "eda_rulebook_activations", "orders")
    runs.run(reduced)
    left = content_of(runs.platform)
    assert not [line for line in set(left) - set(by_hand) if line.startswith(("schedules", "workflow", "activations"))]
    assert set(by_hand) <= set(left)
    runs.remove()
    assert content_of(runs.platform) == by_hand


def test_a_lost_ledger_is_rebuilt_by_asking_and_deletes_nothing(runs: Runs) -> None:
    runs.run(document())
    before = content_of(runs.platform)
    runs.ledger = LedgerInMemory()
    runs.run(document())
    assert content_of(runs.platform) == before
    runs.remove()
    assert not [line for line in content_of(runs.platform) if "acme" in line]


def made_by_hand(platform: Platform) -> list[str]:
    """Objects beside ours: of the same names in another organization, and with the objects that every platform has."""
    other = create(platform, "organizations/", name="by hand") if not platform.gateway else _organization(platform)
    project = create(platform, "projects/", name="site", organization=other, scm_type="git", scm_url="https://git.example.com/other.git")
    inventory = create(platform, "inventories/", name="local", organization=other)
    used = {"project": project, "inventory": inventory, "playbook": "playbooks/sync_status.yml"}
    template = create(platform, "job_templates/", name="create-0", **used)
    request(platform, "POST", f"job_templates/{template}/instance_groups/", id=1)
    request(platform, "POST", f"job_templates/{template}/labels/", name="openfleet", organization=other)
    create(platform, "workflow_job_templates/", name="both", organization=other)
    return content_of(platform)


def _organization(platform: Platform) -> int:
    store = platform.controller_store
    return int(store.create(store.kinds["organizations"], {"name": "by hand"})["id"])
