"""What cannot work is refused with one message that says what to do, before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.sample import Content, document
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import READER, Platform
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError

from ..support.platform_documents import changed, content_of
from ..support.platform_runs import Runs


def wrong_token(runs: Runs) -> Content:
    runs.access = {"token": "made-up"}
    return document()


def missing_permission(runs: Runs) -> Content:
    runs.access = {"token": runs.platform.token(READER)}
    return document()


def missing_licence(runs: Runs) -> Content:
    runs.platform.controller.licensed = False
    return document()


def name_of_another_organization(runs: Runs) -> Content:
    store = runs.platform.controller_store
    other = store.create(store.kinds["organizations"], {"name": "others"})
    fields = {"name": "site", "image": "registry.example.com/other", "organization": other["id"]}
    store.create(store.kinds["execution_environments"], fields)
    return document()


def unknown_reference(_runs: Runs) -> Content:
    return changed(document(), "controller_templates", 0, inventory="locla")


def cyclic_workflow(_runs: Runs) -> Content:
    nodes: list[dict[str, Any]] = [
        {"identifier": "one", "unified_job_template": "create-0", "success_nodes": ["two"]},
        {"identifier": "two", "unified_job_template": "create-0", "failure_nodes": ["one"]},
    ]
    return changed(document(), "controller_workflows", 0, simplified_workflow_nodes=nodes)


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (wrong_token, ["aap_token", "create a new one"]),
        (missing_permission, ["may not create", "grant its permission"]),
        (missing_licence, ["no valid subscription", "Settings > Subscription"]),
        (name_of_another_organization, ["site", "others", "rename"]),
        (unknown_reference, ["locla", "local"]),
        (cyclic_workflow, ["one -> two -> one", "Remove one of these edges"]),
    ],
)
def test_it_is_refused_before_anything_is_written(either: Runs, prepare: Callable[[Runs], Content], words: list[str]) -> None:
    content = prepare(either)
    before = content_of(either.platform)
    with pytest.raises(KubeError) as refused:
        either.run(content)
    message = str(refused.value)
    assert [word for word in words if word not in message] == [], message
    assert either.platform.writes() == [] and content_of(either.platform) == before
    assert "of the hub" not in message and either.ledger.text == ""


def test_a_password_and_an_application_are_accepted_instead_of_a_token(platform_with_application: tuple[Runs, dict[str, str]]) -> None:
    runs, access = platform_with_application
    runs.access = access
    assert runs.run(document(), check=True).changes


@pytest.fixture(params=["password", "application"])
def platform_with_application(request: pytest.FixtureRequest, either: Runs) -> tuple[Runs, dict[str, str]]:
    platform: Platform = either.platform
    user = platform.controller_store.named("users", username="admin")
    access = {"username": "admin", "password": user["password"]}
    if request.param == "application":
        store = platform.controller_store
        fixed = {"client_id": "fleet", "client_secret": "of the application"}
        given = {"name": "fleet", "organization": 1, "client_type": "confidential", "authorization_grant_type": "password"}
        store.create(store.kinds["applications"], given, fixed)
        access |= fixed
    return either, access
