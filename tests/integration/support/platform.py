"""Templates on the stand-in for Automation Platform, and what its jobs run with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.platform.exchange import Request
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.jobs import Launch
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import Platform

BASE = "/api/v2/"
PROMPTS = {f"ask_{what}_on_launch": True for what in ("limit", "labels", "variables")}


def request(platform: Platform, method: str, path: str, **fields: Any) -> Any:
    """The answer to a request of an administrator, without HTTP."""
    authorization = f"Bearer {platform.token()}"
    response = platform.controller.handle(Request(method, BASE + path, body=fields or None, authorization=authorization, base=BASE))
    assert response.status < 300, response.body
    return response.body


def create(platform: Platform, path: str, **fields: Any) -> int:
    return int(request(platform, "POST", path, **fields)["id"])


def templates(platform: Platform, *playbooks: str, workflows: tuple[str, ...] = ()) -> None:
    """The job templates that the rulebooks launch; those of `workflows` have a workflow of the same name around them."""
    organization = platform.controller_store.named("organizations", name="Default")["id"]
    project = create(platform, "projects/", name="openfleet", organization=organization, scm_type="git", scm_url="https://git.example.com")
    inventory = create(platform, "inventories/", name="openfleet", organization=organization)
    for playbook in playbooks:
        name = f"openfleet-{playbook.replace('_', '-')}"
        used = {"project": project, "inventory": inventory, "playbook": f"playbooks/{playbook}.yml"}
        number = create(platform, "job_templates/", name=name, **used, **PROMPTS)
        if playbook in workflows:
            workflow = create(platform, "workflow_job_templates/", name=name, organization=organization, **PROMPTS)
            create(platform, f"workflow_job_templates/{workflow}/workflow_nodes/", unified_job_template=number)


def labels_of(platform: Platform, launch: Launch) -> list[str]:
    kind = "workflow_jobs" if launch.workflow else "jobs"
    return [label["name"] for label in request(platform, "GET", f"{kind}/{launch.job}/labels/")["results"]]


def environment_of(engine_environment: Mapping[str, str]) -> dict[str, str]:
    """What a job runs with: as the engine, without what marks its processes."""
    return {key: value for key, value in {**os.environ, **engine_environment}.items() if not key.startswith("OPENFLEET_TEST")}
