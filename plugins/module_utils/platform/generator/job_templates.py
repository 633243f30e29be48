# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The job templates, one for each playbook, with the prompts and the survey that it needs and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...common.types import Object
from .facts import JOB, CollectionFacts, Launch, Playbook
from .site import Site
from .variables import QUESTIONS, SET_AT_LAUNCH, SURVEYS, WITH_CHECK_MODE

CONFIGURE = "configure_platform"
POST_INSTALL = "post_install"
DUE = "post_install_due"  # the template of post_install in workflows
RULEBOOK_PREFIX = "openfleet-"  # of the names that the rulebooks launch by default


def job_templates(facts: CollectionFacts, site: Site) -> list[Object]:
    """A template for each playbook, and one more for the workflows."""
    templates = [_template(playbook, facts, site) for playbook in facts.playbooks.values()]
    return [*templates, _due(facts.playbooks[POST_INSTALL], facts, site)]


def prompts(playbook: Playbook, launches: Iterable[Launch]) -> Object:
    """What a launch may set. The platform drops everything else without an error."""
    launches = tuple(launches)
    unasked = (playbook.variables & SET_AT_LAUNCH) - set(SURVEYS.get(playbook.name, ()))
    return {
        "ask_variables_on_launch": bool(unasked) or any(launch.extra_vars for launch in launches),
        "ask_limit_on_launch": any(launch.limit for launch in launches),
        "ask_labels_on_launch": any(launch.labels for launch in launches),
        "ask_job_type_on_launch": playbook.name in WITH_CHECK_MODE,
        # Disaster recovery works on a managed cluster, whose credential the launch names.
        "ask_credential_on_launch": "dr_namespace" in playbook.variables,
    }


def launches_of(playbook: str, kind: str, facts: CollectionFacts) -> list[Launch]:
    """How the rulebooks launch the template of a playbook, as a job or as a workflow."""
    default = f"{RULEBOOK_PREFIX}{playbook.replace('_', '-')}"
    return [launch for launch in facts.launches if launch.kind == kind and launch.default == default]


def renamed(facts: CollectionFacts, rulebook: str, site: Site) -> dict[str, str]:
    """The variables of a rulebook that name the templates, where the site has another prefix than the rulebook."""
    names = {launch.variable: launch.default for launch in facts.rulebooks[rulebook].launches}
    wanted = {variable: site.name(default.removeprefix(RULEBOOK_PREFIX)) for variable, default in names.items()}
    return {variable: name for variable, name in wanted.items() if name != names[variable]}


def _template(playbook: Playbook, facts: CollectionFacts, site: Site) -> Object:
    own = playbook.name == CONFIGURE
    variables = {name: value for name, value in site.variables.items() if name in playbook.variables}
    template = {
        "name": site.name(playbook.name),
        "description": playbook.description,
        "organization": site.organization,
        "job_type": "run",
        "project": site.name("collection"),
        "playbook": f"playbooks/{playbook.name}.yml",
        "inventory": site.name("localhost"),
        "execution_environment": site.name("jobs"),
        "instance_groups": [site.name("jobs")],
        "credentials": [site.name("hub"), *([site.name("platform")] if own else [])],
        "extra_vars": {"platform_site": dict(site.given)} if own else variables,
        # The lock keeps two jobs off the same order. Two configurations at once would only repeat each other's work.
        "allow_simultaneous": not own,
        **prompts(playbook, launches_of(playbook.name, JOB, facts)),
    }
    return template | _survey(playbook, facts)


def _due(playbook: Playbook, facts: CollectionFacts, site: Site) -> Object:
    """post_install in a workflow: its orders are those that are due, not those of the event, whose clusters are still in creation."""
    return _template(playbook, facts, site) | {
        "name": site.name(DUE),
        "description": "Configures all clusters whose control plane has become available. For workflows.",
        **prompts(Playbook(DUE, "", frozenset()), ()),
    }


def _survey(playbook: Playbook, facts: CollectionFacts) -> Object:
    variables = SURVEYS.get(playbook.name, ())
    if not variables:
        return {"survey_enabled": False}
    spec = [_question(variable, facts) for variable in variables]
    return {"survey_enabled": True, "survey_spec": {"name": "", "description": "", "spec": spec}}


def _question(variable: str, facts: CollectionFacts) -> Mapping[str, Any]:
    question = QUESTIONS[variable]
    kind = {"type": "multiselect", "choices": list(facts.templates)} if question.of_templates else {"type": "text", "choices": []}
    return {
        "variable": variable,
        "question_name": question.text,
        "question_description": "",
        "required": True,
        "default": "",
        # The limits of the length of a text; a list has none.
        "min": None if question.of_templates else 1,
        "max": None if question.of_templates else 1024,
        **kind,
    }
