# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The document: all objects that Automation Platform needs for this collection, under the variable names of infra.aap_configuration.

A pure function of the collection, the site file and the secrets: the same input is the same document, to the byte.
"""

from __future__ import annotations

from ...common.types import Object
from . import events, execution
from .facts import CollectionFacts
from .job_templates import job_templates
from .secrets import Secrets, require
from .site import Site
from .workflows import schedules, workflows


def generate(facts: CollectionFacts, site: Site, secrets: Secrets) -> dict[str, list[Object]]:
    """The document for platform_configuration; InvalidSiteFile where a secret is missing."""
    require(secrets, site)
    return {
        "aap_organizations": [{"name": site.organization}],
        "controller_credential_types": execution.credential_types(site),
        "controller_credentials": execution.credentials(site, secrets),
        "controller_execution_environments": [execution.execution_environment(site)],
        "controller_instance_groups": [execution.container_group(site)],
        "controller_projects": [execution.project(site)],
        "controller_inventories": [execution.inventory(site)],
        "controller_templates": job_templates(facts, site),
        "controller_workflows": workflows(facts, site),
        "controller_schedules": schedules(site),
        "eda_credential_types": events.credential_types(site),
        "eda_credentials": events.credentials(site, secrets),
        "eda_projects": [events.project(site)],
        "eda_decision_environments": [events.decision_environment(site)],
        "eda_event_streams": events.event_streams(site),
        "eda_rulebook_activations": events.activations(facts, site),
    }
