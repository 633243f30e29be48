"""The stand-in for Automation Platform answers as a real AWX 24.6.1 was observed to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.faults import Fault
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import READER, Platform

from .platform_client import Client

PLAYBOOK = "playbooks/create_cluster.yml"


@pytest.fixture
def platform() -> Platform:
    return Platform()


@pytest.fixture
def url(platform: Platform) -> Iterator[str]:
    with platform.serving() as address:
        yield address


@pytest.fixture
def api(platform: Platform, url: str) -> Client:
    return Client(url, platform.token())


@pytest.fixture
def site(api: Client) -> dict[str, int]:
    """One object of each kind that templates refer to."""
    organization = api.create("organizations/", name="acme")
    types = api("GET", "credential_types/?name=Machine")[1]["results"]
    return {
        "organization": organization,
        "project": api.create("projects/", name="site", organization=organization, scm_type="git", scm_url="https://git.example.com"),
        "inventory": api.create("inventories/", name="local", organization=organization),
        "machine": types[0]["id"],
    }


def template(api: Client, site: dict[str, int], name: str = "create", **fields: Any) -> int:
    return api.create("job_templates/", name=name, project=site["project"], inventory=site["inventory"], playbook=PLAYBOOK, **fields)


def test_lists_have_pages_with_relative_addresses_and_no_page_beyond_the_last(api: Client) -> None:
    organization = api.create("organizations/", name="acme")
    for number in range(5):
        api.create("labels/", name=f"label-{number}", organization=organization)
    first = api("GET", "labels/?page_size=2&order_by=-name")[1]
    assert (first["count"], first["previous"], len(first["results"])) == (5, None, 2)
    assert first["next"] == "/api/v2/labels/?order_by=-name&page=2&page_size=2"
    second = api("GET", first["next"])[1]
    assert [item["name"] for item in first["results"] + second["results"]] == [f"label-{number}" for number in (4, 3, 2, 1)]
    assert second["previous"].endswith("page=1&page_size=2")
    assert api("GET", "labels/?page_size=2&page=4") == (404, {"detail": "Invalid page."})


def test_a_page_has_at_most_two_hundred_objects(api: Client) -> None:
    organization = api.create("organizations/", name="acme")
    for number in range(201):
        api.create("labels/", name=f"label-{number}", organization=organization)
    assert len(api("GET", "labels/?page_size=500")[1]["results"]) == 200
    assert len(api("GET", "labels/")[1]["results"]) == 25


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("name=a", ["a"]),
        ("name__in=a,c", ["a", "c"]),
        ("organization__name=acme&name__startswith=b", ["b"]),
        ("not__name=a", ["b", "c"]),
        ("or__name=a&or__name=b", []),
        ("or__name=a&or__id=0", ["a"]),
        ("organization__name__icontains=ACM&order_by=-name", ["c", "b", "a"]),
        ("search=b", ["b"]),
    ],
)
def test_filters_select(api: Client, query: str, names: list[str]) -> None:
    organization = api.create("organizations/", name="acme")
    for name in "abc":
        api.create("labels/", name=name, organization=organization)
    assert [item["name"] for item in api("GET", f"labels/?{query}")[1]["results"]] == names


def test_a_filter_by_an_unknown_field_is_refused_also_where_nothing_exists(api: Client) -> None:
    assert api("GET", "labels/?colour=red") == (400, {"detail": "Label has no field named 'colour'"})
    assert api("GET", "job_templates/?organization__colour=red")[0] == 400


def test_names_that_are_taken_are_refused_in_three_forms(api: Client, site: dict[str, int]) -> None:
    template(api, site)
    own = {"organization": site["organization"]}
    again = {"name": "create", "project": site["project"], "inventory": site["inventory"], "playbook": PLAYBOOK}
    assert api("POST", "organizations/", {"name": "acme"}) == (400, {"name": ["Organization with this Name already exists."]})
    taken = {"__all__": ["Inventory with this Name and Organization already exists."]}
    assert api("POST", "inventories/", {"name": "local"} | own) == (400, taken)
    combination = {"__all__": ["JobTemplate with this (organization, name) combination already exists."]}
    assert api("POST", "job_templates/", again) == (400, combination)
    other = api.create("organizations/", name="other")
    assert api("POST", "inventories/", {"name": "local", "organization": other})[0] == 201


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (999, 'Invalid pk "999" - object does not exist.'),
        ("acme", "Incorrect type. Expected pk value, received str."),
        (None, "This field may not be null."),
    ],
)
def test_a_wrong_reference_is_refused(api: Client, value: Any, reason: str) -> None:
    assert api("POST", "inventories/", {"name": "local", "organization": value}) == (400, {"organization": [reason]})


def test_an_unknown_field_is_ignored_and_a_template_has_the_organization_of_its_project(api: Client, site: dict[str, int]) -> None:
    other = api.create("organizations/", name="other")
    number = template(api, site, organization=other)
    status, changed = api("PATCH", f"job_templates/{number}/", {"colour": "red", "organization": other, "limit": "all"})
    assert (status, changed["organization"], changed["limit"]) == (200, site["organization"], "all")
    assert "colour" not in changed


def test_objects_have_addresses_by_name(api: Client, site: dict[str, int]) -> None:
    assert api("GET", "job_templates/create++acme/")[0] == 404
    number = template(api, site)
    assert api("GET", "job_templates/create++acme/")[1]["id"] == number
    assert api("GET", "organizations/acme/")[1]["id"] == site["organization"]


def test_secrets_are_never_shown_and_survive_being_sent_back(api: Client, platform: Platform, site: dict[str, int]) -> None:
    own = {"credential_type": site["machine"], "organization": site["organization"]}
    number = api.create("credentials/", name="ssh", inputs={"username": "root", "password": "one"}, **own)
    shown = api("GET", f"credentials/{number}/")[1]["inputs"]
    assert shown == {"username": "root", "password": "$encrypted$"}
    api("PATCH", f"credentials/{number}/", {"inputs": shown | {"username": "admin"}})
    assert platform.objects("credentials")[0]["inputs"] == {"username": "admin", "password": "one"}
    api("PATCH", f"credentials/{number}/", {"inputs": {"username": "admin"}})
    assert platform.objects("credentials")[0]["inputs"] == {"username": "admin"}
    unknown = api("POST", "credentials/", {"name": "x", "inputs": {"colour": "red"}} | own)
    assert unknown == (400, {"inputs": ["Additional properties are not allowed ('colour' was unexpected)"]})
    assert api("POST", "credentials/", {"name": "x", "credential_type": site["machine"], "inputs": {}})[0] == 400


def test_associations_are_repeatable_except_for_credentials(api: Client, site: dict[str, int]) -> None:
    number = template(api, site)
    own = {"credential_type": site["machine"], "organization": site["organization"], "inputs": {}}
    credential = api.create("credentials/", name="ssh", **own)
    for group in (1, 1):
        assert api("POST", f"job_templates/{number}/instance_groups/", {"id": group}) == (204, None)
    assert api("POST", f"job_templates/{number}/credentials/", {"id": credential})[0] == 204
    again = api("POST", f"job_templates/{number}/credentials/", {"id": credential})
    assert again == (400, {"error": "Cannot assign multiple Machine credentials."})
    assert [item["id"] for item in api("GET", f"job_templates/{number}/credentials/")[1]["results"]] == [credential]
    assert api("GET", f"job_templates/?credentials={credential}")[1]["count"] == 1
    assert api("POST", f"job_templates/{number}/credentials/", {"id": credential, "disassociate": True}) == (204, None)
    assert api("GET", f"job_templates/{number}/")[1]["summary_fields"]["credentials"] == []


def test_a_label_lives_as_long_as_it_is_used(api: Client, site: dict[str, int]) -> None:
    number = template(api, site)
    status, label = api("POST", f"job_templates/{number}/labels/", {"name": "openfleet", "organization": site["organization"]})
    assert (status, api("DELETE", f"labels/{label['id']}/")[0]) == (201, 405)
    api("POST", f"job_templates/{number}/labels/", {"id": label["id"], "disassociate": True})
    assert api("GET", "labels/")[1]["count"] == 0


def test_surveys_are_kept_apart_from_their_template(api: Client, site: dict[str, int]) -> None:
    path = f"job_templates/{template(api, site)}/survey_spec/"
    question = {"type": "password", "question_name": "Secret?", "variable": "secret", "required": True, "default": "hidden"}
    assert api("GET", path) == (200, {})
    assert api("POST", path, {"name": "", "description": "", "spec": []})[0] == 400
    assert api("POST", path, {"name": "", "description": "", "spec": [question]}) == (200, None)
    assert api("GET", path)[1]["spec"][0]["default"] == "$encrypted$"
    assert api("GET", "job_templates/create++acme/")[1]["survey_enabled"] is False


def test_nodes_of_a_workflow_have_unique_identifiers_and_no_cycles(api: Client, site: dict[str, int]) -> None:
    workflow = api.create("workflow_job_templates/", name="both", organization=site["organization"])
    first, second = (api.create(f"workflow_job_templates/{workflow}/workflow_nodes/", identifier=name) for name in ("one", "two"))
    taken = api("POST", "workflow_job_template_nodes/", {"identifier": "one", "workflow_job_template": workflow})
    assert taken[0] == 400 and "already exists" in taken[1]["__all__"][0]
    for _repeated in range(2):
        assert api("POST", f"workflow_job_template_nodes/{first}/success_nodes/", {"id": second}) == (204, None)
    cycle = api("POST", f"workflow_job_template_nodes/{second}/failure_nodes/", {"id": first})
    assert cycle == (400, {"Error": "Cycle detected."})
    assert api("GET", f"workflow_job_template_nodes/{first}/")[1]["success_nodes"] == [second]
    assert api("DELETE", f"workflow_job_templates/{workflow}/")[0] == 204
    assert api("GET", "workflow_job_template_nodes/")[1]["count"] == 0


def test_a_launch_drops_what_is_not_asked_for(api: Client, site: dict[str, int]) -> None:
    closed, opened = template(api, site), template(api, site, "asks", ask_variables_on_launch=True, ask_limit_on_launch=True)
    sent = {"extra_vars": {"order": "demo"}, "limit": "localhost"}
    status, job = api("POST", f"job_templates/{closed}/launch/", sent)
    assert (status, job["ignored_fields"], job["extra_vars"], job["limit"]) == (201, sent, "{}", "")
    job = api("POST", f"job_templates/{opened}/launch/", sent)[1]
    assert (job["ignored_fields"], job["extra_vars"], job["limit"]) == ({}, '{"order": "demo"}', "localhost")
    assert api("POST", f"jobs/{job['id']}/cancel/")[0] == 405
    assert api("GET", f"jobs/?id__in={job['id']},0")[1]["results"][0]["status"] == "successful"


def test_a_launch_needs_the_answers_of_an_enabled_survey(api: Client, site: dict[str, int]) -> None:
    number = template(api, site, survey_enabled=True)
    question = {"type": "text", "question_name": "Name?", "variable": "name", "required": True}
    api("POST", f"job_templates/{number}/survey_spec/", {"name": "", "description": "", "spec": [question]})
    refused = api("POST", f"job_templates/{number}/launch/", {})
    assert refused == (400, {"variables_needed_to_start": ["'name' value missing"]})
    job = api("POST", f"job_templates/{number}/launch/", {"extra_vars": {"name": "demo", "other": 1}})[1]
    assert (job["extra_vars"], job["ignored_fields"]) == ('{"name": "demo"}', {"extra_vars": {"other": 1}})


def test_an_inventory_is_deleted_in_the_background(api: Client, site: dict[str, int]) -> None:
    assert api("DELETE", f"inventories/{site['inventory']}/") == (202, None)
    assert api("GET", f"inventories/{site['inventory']}/")[1]["pending_deletion"] is True
    assert api("GET", f"inventories/{site['inventory']}/")[0] == 404


def test_what_comes_with_the_platform_is_protected(api: Client, site: dict[str, int]) -> None:
    assert api("DELETE", f"credential_types/{site['machine']}/")[0] == 403
    assert api("PATCH", f"credential_types/{site['machine']}/", {"name": "other"})[0] == 403


def test_nothing_is_served_without_a_valid_token_and_written_without_permission(platform: Platform, url: str) -> None:
    assert Client(url, "made-up")("GET", "organizations/")[0] == 401
    reader = Client(url, platform.token(READER))
    assert reader("GET", "organizations/")[0] == 200
    assert reader("POST", "organizations/", {"name": "x"})[0] == 403
    assert "POST" not in reader("OPTIONS", "organizations/")[1]["actions"]


def test_no_job_starts_without_a_licence(api: Client, platform: Platform, site: dict[str, int]) -> None:
    number = template(api, site)
    platform.controller.licensed = False
    assert api("GET", "config/")[1]["license_info"] == {}
    assert api("POST", f"job_templates/{number}/launch/", {}) == (403, {"detail": "License is missing."})


def test_faults_happen_before_or_after_the_request_is_handled(api: Client, platform: Platform) -> None:
    platform.faults += [Fault("503", "POST"), Fault("done-502", "POST")]
    for status in (503, 502):
        with pytest.raises(ValueError, match="Expecting value"):
            api("POST", "organizations/", {"name": "acme"})
        assert [item["name"] for item in platform.objects("organizations")] == (["Default"] if status == 503 else ["Default", "acme"])
    assert api("POST", "organizations/", {"name": "acme"})[0] == 400


def test_a_workflow_follows_the_outcome_of_its_nodes(api: Client, site: dict[str, int]) -> None:
    number = template(api, site, ask_variables_on_launch=True)
    workflow = api.create("workflow_job_templates/", name="both", organization=site["organization"], ask_variables_on_launch=True)
    nodes = f"workflow_job_templates/{workflow}/workflow_nodes/"
    first, second, third = (api.create(nodes, identifier=name, unified_job_template=number) for name in ("one", "two", "three"))
    api("POST", f"workflow_job_template_nodes/{first}/success_nodes/", {"id": second})
    api("POST", f"workflow_job_template_nodes/{first}/failure_nodes/", {"id": third})
    job = api("POST", f"workflow_job_templates/{workflow}/launch/", {"extra_vars": {"order": "demo"}})[1]
    assert api("GET", f"workflow_jobs/{job['id']}/")[1]["status"] == "successful"
    ran = api("GET", f"workflow_jobs/{job['id']}/workflow_nodes/")[1]["results"]
    assert [node["identifier"] for node in ran] == ["one", "two"]
    assert api("GET", f"jobs/{ran[1]['job']}/")[1]["extra_vars"] == '{"order": "demo"}'
