# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The workflow templates that the rulebooks launch instead of jobs, and the schedules."""

from __future__ import annotations

from collections.abc import Iterable

from ...common.types import Object
from .facts import WORKFLOW, CollectionFacts
from .job_templates import DUE, RULEBOOK_PREFIX, launches_of, prompts
from .site import Site

CREATE, SYNC = "create_cluster", "sync_status"


def workflows(facts: CollectionFacts, site: Site) -> list[Object]:
    """One for each name that a rulebook launches as a workflow, with the prompts that its job template has for rulebooks."""
    names = dict.fromkeys(launch.default for launch in facts.launches if launch.kind == WORKFLOW)
    playbooks = [name.removeprefix(RULEBOOK_PREFIX).replace("-", "_") for name in names]
    return [_workflow(playbook, facts, site) for playbook in playbooks]


def schedules(site: Site) -> list[Object]:
    """The status of all orders, and this configuration itself, each after so many minutes."""
    return [
        {
            "name": site.name(playbook),
            "description": f"Every {minutes} minutes",
            "unified_job_template": site.name(playbook),
            "organization": site.organization,
            "enabled": True,
            "rrule": f"DTSTART:20260101T000000Z RRULE:FREQ=MINUTELY;INTERVAL={minutes}",
        }
        for playbook, minutes in site.schedules.items()
    ]


def _workflow(playbook: str, facts: CollectionFacts, site: Site) -> Object:
    asked = prompts(facts.playbooks[playbook], launches_of(playbook, WORKFLOW, facts))
    steps = [playbook, DUE] if playbook == CREATE else [playbook]
    return {
        "name": site.name(playbook),
        "description": facts.playbooks[playbook].description,
        "organization": site.organization,
        "allow_simultaneous": True,
        **{prompt: asked[prompt] for prompt in ("ask_variables_on_launch", "ask_limit_on_launch", "ask_labels_on_launch")},
        "workflow_nodes": [*_steps(steps, site), _node(SYNC, site)],
    }


def _steps(steps: list[str], site: Site) -> Iterable[Object]:
    """The steps one after the other. After a failed one, sync_status writes to the orders what a killed job could not."""
    for position, step in enumerate(steps):
        yield _node(step, site, success=steps[position + 1 : position + 2], failure=[SYNC])


def _node(step: str, site: Site, success: Iterable[str] = (), failure: Iterable[str] = ()) -> Object:
    return {
        "identifier": step,
        # A workflow may have the name of a job template.
        "unified_job_template": {
            "name": site.name(step),
            "type": "job_template",
            "organization": {"name": site.organization},
        },
        "related": {
            "success_nodes": [{"identifier": identifier} for identifier in success],
            "failure_nodes": [{"identifier": identifier} for identifier in failure],
            "always_nodes": [],
        },
    }
