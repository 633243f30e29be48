"""The stand-in for Automation Platform configured from a document: what is written, and when nothing is."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.faults import Fault
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import READER
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import rest_session
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError, Unauthorized
from ansible_collections.openfleet.clusters.plugins.module_utils.platform import activations, apply, project_imports
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.client import PlatformApi
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.errors import (
    InvalidDocument,
    NotApplied,
    NotLicensed,
    NotPermitted,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.export import EXPORTED, export
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.report import as_diff, as_objects, as_table, counts
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.values import ENCRYPTED

from .platform_site import SECRET, Site, document, serving, template

OTHER_SECRET = "another-s3cr3t"  # noqa: S105 - the same


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (apply, activations, project_imports):
        monkeypatch.setattr(module, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(rest_session, "FIRST_WAIT", 0.001)


@pytest.fixture(params=["awx", "gateway"])
def either(request: pytest.FixtureRequest) -> Iterator[Site]:
    with serving(gateway=request.param == "gateway") as site:
        yield site


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(gateway=True) as found:
        yield found


def generated() -> Object:
    """What the generator makes of a site: no notifications, sources or galaxy credentials, and thirty templates."""
    content = document(30)
    for key in ("controller_notifications", "controller_inventory_sources"):
        del content[key]
    content["controller_credentials"].pop()
    del content["aap_organizations"][0]["galaxy_credentials"]
    del content["controller_templates"][0]["notification_templates_error"]
    return content


def test_second_run_writes_nothing_and_needs_few_requests(either: Site) -> None:
    first = either.configure(generated())
    assert counts(as_objects(first), first.unchanged)["create"] == 45
    either.hub.writes = 0
    second = either.configure(generated())
    assert second.is_empty
    assert either.platform.writes() == []
    assert either.hub.writes == 0
    assert len(either.platform.requests) <= 20


def test_every_kind_is_created_and_deleted_in_order(either: Site) -> None:
    before = {name: len(rows) for name, rows in either.platform.controller_store.rows.items()}
    either.configure(document())
    assert either.configure(document()).is_empty
    created = either.named("organizations", "fleet")
    assert created["default_environment"] == either.named("execution_environments", "fleet-ee")["id"]
    assert either.named("activations", "orders")["status"] == "running"
    either.remove()
    for name, rows in either.platform.controller_store.rows.items():
        if name not in ("roles", "project_updates", "labels"):
            assert len(rows) == before[name], name
    assert either.platform.eda_objects("activations") == []
    assert not either.hub.secrets


def test_check_predicts_the_run_also_for_what_does_not_exist_yet(either: Site) -> None:
    checked = as_objects(either.configure(document(), check_mode=True))
    assert either.platform.writes() == []
    assert not either.hub.secrets
    assert checked == as_objects(either.configure(document()))


def test_plan_shows_each_field_and_writes_only_that(site: Site) -> None:
    site.configure(document())
    changed = document()
    changed["controller_templates"][1] |= {"extra_vars": {"number": 7}, "credentials": [], "limit": "localhost"}
    result = site.configure(changed)
    (only,) = as_objects(result)
    assert (only["action"], only["kind"], only["name"], only["scope"]) == ("update", "controller_templates", "template-1", "fleet")
    assert {field["field"]: (field["before"], field["after"]) for field in only["fields"]} == {
        "extra_vars": ({"number": 1}, {"number": 7}),
        "credentials": (["hub"], []),
        "limit": ("", "localhost"),
    }
    assert "        credentials: ['hub'] -> []" in as_table([only])
    number = site.named("job_templates", "template-1")["id"]
    assert site.platform.writes() == [
        f"PATCH /api/controller/v2/job_templates/{number}/",
        f"POST /api/controller/v2/job_templates/{number}/credentials/",
    ]
    assert site.configure(changed).is_empty


CHANGES: dict[str, Callable[[Object], Any]] = {
    "survey": lambda content: content["controller_templates"][0]["survey_spec"]["spec"][0].update(required=False),
    "survey removed": lambda content: content["controller_templates"][0].update(survey_spec={}, survey_enabled=False),
    "instance groups": lambda content: content["controller_templates"][0].update(instance_groups=["default"]),
    "notification": lambda content: content["controller_templates"][0].update(notification_templates_error=[]),
    "node": lambda content: content["controller_workflows"][0]["simplified_workflow_nodes"].pop(),
    "edge": lambda content: content["controller_workflows"][0]["simplified_workflow_nodes"][1].update(always_nodes=["report"]),
    "launched": lambda content: content["controller_workflows"][0]["simplified_workflow_nodes"][1].update(
        unified_job_template="template-2"
    ),
    "approval": lambda content: content["controller_workflows"][0]["simplified_workflow_nodes"].append(
        {"identifier": "ask", "approval_node": {"name": "really?", "timeout": 60}, "success_nodes": ["create"]}
    ),
    "schedule": lambda content: content["controller_schedules"][0].update(enabled=False),
    "organization": lambda content: content["aap_organizations"][0].update(description="Others", max_hosts=5),
    "pods": lambda content: content["controller_instance_groups"][0].update(pod_spec_override={"kind": "Pod", "spec": {}}),
    "project": lambda content: content["controller_projects"][0].update(scm_branch="devel"),
    "project of EDA": lambda content: content["eda_projects"][0].update(scm_branch="devel"),
    "activation": lambda content: content["eda_rulebook_activations"][0].update(extra_vars={"namespace": "others"}),
    "disabled": lambda content: content["eda_rulebook_activations"][0].update(state="disabled"),
    "event stream": lambda content: content["eda_event_streams"][0].update(forward_events=False),
    "variables": lambda content: content["controller_inventories"][0].update(variables="site: there"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_change_is_applied_once_and_then_nothing_differs(change: str, site: Site) -> None:
    content = document()
    if change in ("survey removed", "node"):
        content["controller_workflows"][0]["simplified_workflow_nodes"][0].pop("failure_nodes")
    site.configure(content)
    changed = copy.deepcopy(content)
    CHANGES[change](changed)
    checked = site.configure(changed, check_mode=True)
    assert len(checked.changes) == 1
    assert site.platform.writes() == []
    site.configure(changed)
    assert site.platform.writes()
    assert site.configure(changed).is_empty


BY_HAND: dict[str, tuple[str, str, str, Object]] = {
    "field": ("PATCH", "job_templates", "template-0", {"limit": "all", "description": "mine"}),
    "survey": ("POST survey_spec", "job_templates", "template-0", {"name": "", "description": "", "spec": []}),
    "list": ("POST credentials", "job_templates", "template-1", {"id": 1, "disassociate": True}),
    "variables": ("PATCH", "inventories", "fleet", {"variables": "site: elsewhere"}),
}


@pytest.mark.parametrize("change", BY_HAND)
def test_change_made_by_hand_is_observed_and_reverted(change: str, site: Site) -> None:
    content = document()
    content["controller_templates"][0] |= {"limit": "localhost", "description": "ours"}
    site.configure(content)
    action, collection, name, body = copy.deepcopy(BY_HAND[change])
    method, _space, related = action.partition(" ")
    if change == "survey":
        body["spec"] = [{"question_name": "Other", "variable": "other", "type": "text", "required": True, "default": ""}]
    if change == "list":
        body["id"] = site.named("credentials", "hub")["id"]
    path = f"{collection}/{site.named(collection, name)['id']}/{related}".rstrip("/")
    api = site.api()
    api.list_all("controller", "organizations", "find the controller")
    api.request("controller", method, f"{path}/", "change by hand", body=body)
    result = site.configure(content)
    assert [each["name"] for each in as_objects(result)] == [name]
    assert site.configure(content).is_empty


# Secrets


def test_secret_is_written_when_its_value_changes_and_is_shown_nowhere(site: Site) -> None:
    first = site.configure(document())
    changed = document()
    changed["controller_credentials"][0]["inputs"]["token"] = OTHER_SECRET
    second = site.configure(changed)
    assert [each["field"] for each in as_objects(second)[0]["fields"]] == ["inputs.token"]
    assert len(site.platform.writes()) == 1
    assert site.configure(changed).is_empty
    for result in (first, second):
        objects = as_objects(result)
        shown = str(objects) + str(as_diff(objects)) + str(as_table(objects)) + str(site.hub.secrets) + site.ledger().to_text()
        for secret in (SECRET, OTHER_SECRET, "t0ken-of-slack", "p4ssw0rd-of-a-sender", "p4ssw0rd-of-a-survey"):
            assert secret not in shown


def test_encrypted_keeps_the_secret_and_cannot_create_one(site: Site) -> None:
    content = document()
    content["controller_credentials"][0]["inputs"]["token"] = ENCRYPTED
    with pytest.raises(InvalidDocument, match="is not the value of a secret: set the value"):
        site.configure(content)
    site.configure(document())
    assert site.configure(content).is_empty


# The ledger


def test_what_left_the_document_is_deleted_and_nothing_else(site: Site) -> None:
    site.configure(document())
    organization = site.named("organizations", "fleet")["id"]
    kind = site.platform.controller_store.kinds["inventories"]
    site.platform.controller_store.create(kind, {"name": "by-hand", "organization": organization})
    smaller = document()
    smaller["controller_templates"].append(template(9))
    site.configure(smaller)
    smaller["controller_templates"].pop()
    del smaller["controller_schedules"]
    result = site.configure(smaller)
    assert [(each["action"], each["name"]) for each in as_objects(result)] == [("delete", "hourly"), ("delete", "template-9")]
    assert "by-hand" in site.names("inventories")


def test_object_made_by_hand_is_changed_when_the_document_names_it_and_never_deleted(site: Site) -> None:
    site.configure({"aap_organizations": [{"name": "fleet"}]})
    organization = site.named("organizations", "fleet")["id"]
    kind = site.platform.controller_store.kinds["inventories"]
    site.platform.controller_store.create(kind, {"name": "by-hand", "organization": organization})
    named = {
        "aap_organizations": [{"name": "fleet"}],
        "controller_inventories": [{"name": "by-hand", "organization": "fleet", "description": "x"}],
    }
    site.configure(named)
    assert site.named("inventories", "by-hand")["description"] == "x"
    assert site.configure({"aap_organizations": [{"name": "fleet"}]}).is_empty
    assert site.names("inventories") == ["by-hand"]


def test_lost_ledger_is_rebuilt_from_what_equals_the_document(site: Site) -> None:
    site.configure(document())
    site.hub.secrets.clear()
    rebuilt = site.configure(document())
    assert {each["action"] for each in as_objects(rebuilt)} == {"update"}
    assert all(field["before"] for each in as_objects(rebuilt) for field in each["fields"])  # secrets, which the platform never shows
    assert site.configure(document()).is_empty
    smaller = document()
    del smaller["controller_schedules"]
    assert [each["action"] for each in as_objects(site.configure(smaller))] == ["delete"]


def test_state_absent_deletes_what_others_created(site: Site) -> None:
    kind = site.platform.controller_store.kinds["organizations"]
    site.platform.controller_store.create(kind, {"name": "old"})
    site.configure({"aap_organizations": [{"name": "old", "state": "absent"}]})
    assert site.names("organizations") == ["Default"]


def test_empty_document_deletes_nothing(site: Site) -> None:
    site.configure({"aap_organizations": [{"name": "fleet"}]})
    with pytest.raises(InvalidDocument, match="set state to absent"):
        site.configure({})


# Faults


class Killed(BaseException):
    """Ends a run as SIGKILL does: nothing after it is done."""


def test_run_that_is_killed_at_any_write_leaves_no_duplicate_and_no_orphan(monkeypatch: pytest.MonkeyPatch) -> None:
    content = document(3)
    with serving(gateway=True) as whole:
        whole.configure(content)
        writes = len(whole.platform.writes())
        wanted = {name: len(rows) for name, rows in whole.platform.controller_store.rows.items() if name != "project_updates"}
    for last in range(0, writes, 5):
        with serving(gateway=True) as site:
            kill_after(last, monkeypatch)
            with pytest.raises(Killed):
                site.configure(content)
            monkeypatch.undo()
            for module in (apply, activations, project_imports):
                monkeypatch.setattr(module, "POLL_SECONDS", 0.001)
            site.configure(content)
            assert site.configure(content).is_empty
            found = {name: len(rows) for name, rows in site.platform.controller_store.rows.items() if name != "project_updates"}
            assert found == wanted, last
            site.remove()
            assert site.names("job_templates") == []
            assert site.names("organizations") == ["Default"]


def kill_after(last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End the run when this write was processed; its answer never arrives, and the ledger is not written any more."""
    original = PlatformApi._json  # noqa: SLF001 - the process ends there
    done = [0]

    def killed(self: PlatformApi, method: str, *arguments: Any, **named: Any) -> Any:
        if done[0] > last:
            raise Killed
        answer = original(self, method, *arguments, **named)
        if method not in ("GET", "OPTIONS"):
            done[0] += 1
            if done[0] > last:
                raise Killed
        return answer

    monkeypatch.setattr(PlatformApi, "_json", killed)


@pytest.mark.parametrize(
    ("how", "path"),
    [(how, "/job_templates/$") for how in ("502", "503", "504", "429", "lost", "done-502", "dead")]
    + [("lost", path) for path in ("/credentials/$", "workflow_job_template_nodes/$", "/success_nodes/$", "/activations/$")],
)
def test_lost_answer_creates_nothing_twice(how: str, path: str, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_session, "LONGEST_WAIT", 0.001)
    site.platform.faults.append(Fault(how, "POST", path, times=2))
    site.configure(document())
    assert site.configure(document()).is_empty
    assert site.names("job_templates") == ["template-0", "template-1", "template-2"]
    assert len(site.platform.objects("workflow_job_template_nodes")) == 3


def test_failed_request_ends_the_run_with_what_was_done_and_the_next_one_continues(site: Site) -> None:
    content = document()
    content["controller_templates"][1]["playbook"] = "playbooks/missing.yml"
    with pytest.raises(NotApplied, match=r"create job template template-1: playbook: .* objects were written before; run it again"):
        site.configure(content)
    assert not site.ledger().pending
    site.configure(document())
    assert site.configure(document()).is_empty


# Errors, before anything is written


def refused(site: Site, content: Object, error: type[KubeError]) -> str:
    with pytest.raises(error) as caught:
        site.configure(content)
    assert site.platform.writes() == []
    assert not site.hub.secrets
    return str(caught.value)


def test_wrong_token_is_reported(either: Site) -> None:
    either.token = "wrong"  # noqa: S105 - it is none
    assert "does not accept aap_token: create a new one and set it" in refused(either, document(), Unauthorized)


def test_missing_permission_is_reported(site: Site) -> None:
    site.token = site.platform.token(READER)
    assert "The account may not" in refused(site, document(), NotPermitted)


def test_missing_licence_is_reported(either: Site) -> None:
    either.platform.controller.licensed = False
    assert "add a manifest or log in under Settings > Subscription" in refused(either, document(), NotLicensed)


def test_name_of_another_organization_is_reported(site: Site) -> None:
    other = document()
    other["aap_organizations"].append({"name": "others"})
    site.configure(other)
    other["controller_execution_environments"][0]["organization"] = "others"
    with pytest.raises(InvalidDocument, match=r"the name is taken by organization fleet, .* rename it, or set organization to fleet"):
        site.configure(other)
    assert site.platform.writes() == []


REFERENCES: dict[str, tuple[Callable[[Object], Any], str]] = {
    "inventory": (
        lambda content: content["controller_templates"][0].update(inventory="flet"),
        "inventory names inventory flet, which neither the document nor the platform has (did you mean fleet?): "
        "add it to controller_inventories, or correct the name.",
    ),
    "credential": (
        lambda content: content["controller_templates"][0].update(credentials=["x"]),
        "credentials names credential x, which neither",
    ),
    "node": (
        lambda content: content["controller_workflows"][0]["simplified_workflow_nodes"][0].update(unified_job_template="gone"),
        "node create: unified_job_template names",
    ),
    "required": (lambda content: content["controller_templates"][0].pop("project"), "a new job template needs project"),
    "inputs": (
        lambda content: content["controller_credentials"][0]["inputs"].update(tokn="x"),
        "inputs has tokn, which its credential type does not have (did you mean token?): remove it.",
    ),
    "organization of the project": (
        lambda content: content["controller_templates"][0].update(organization="Default"),
        "organization is Default, and its project belongs to fleet",
    ),
    "event stream": (
        lambda content: content["eda_rulebook_activations"][0].update(event_streams=[{"event_stream": "x", "source_index": 0}]),
        "event_streams names event stream x, which neither",
    ),
    "team": (
        lambda content: content.update(controller_roles=[{"team": "x", "role": "admin", "organization": "fleet"}]),
        "controller_roles[0] names team x, which neither the document nor the platform has: create it on the platform",
    ),
}


@pytest.mark.parametrize("reference", REFERENCES)
def test_unknown_reference_is_reported(reference: str, site: Site) -> None:
    change, message = REFERENCES[reference]
    content = document()
    change(content)
    assert message in refused(site, content, InvalidDocument)


# Roles


def test_roles_are_granted_and_revoked(site: Site) -> None:
    content = document()
    content["controller_roles"] = [{"user": READER, "role": "execute", "job_templates": ["template-0"], "organization": "fleet"}]
    del content["controller_roles"][0]["organization"]
    result = site.configure(content)
    assert [each["name"] for each in as_objects(result) if each["action"] == "grant"] == [
        f"user {READER}: execute on job template template-0"
    ]
    assert site.configure(content).is_empty
    del content["controller_roles"]
    assert [each["action"] for each in as_objects(site.configure(content))] == ["revoke"]
    assert site.configure(content).is_empty


# Activations


def test_activation_that_does_not_start_is_enabled_as_it_was_before(site: Site) -> None:
    site.configure(document())
    site.platform.activations.defect = lambda activation: "broken" if "others" in activation["extra_var"] else ""
    content = document()
    content["eda_rulebook_activations"][0]["extra_vars"] = {"namespace": "others"}
    with pytest.raises(NotApplied, match=r"The rulebook activation orders is failed and should be running \(broken\)"):
        site.configure(content)
    found = site.named("activations", "orders")
    assert (found["status"], found["is_enabled"]) == ("running", True)
    assert "orders" in found["extra_var"]


# Export


def test_export_is_a_document_of_what_exists(either: Site) -> None:
    either.configure(document())
    exported = export(either.api(), EXPORTED, "fleet")
    names = {key: [each["name"] for each in objects] for key, objects in exported.items()}
    assert names["controller_templates"] == ["template-0", "template-1", "template-2"]
    inputs = {each["name"]: each["inputs"] for each in exported["controller_credentials"]}
    assert inputs["hub"] == {"host": "https://hub.example.com", "token": ENCRYPTED}
    assert SECRET not in str(exported)
    assert either.configure(exported, check_mode=True).changes == []
