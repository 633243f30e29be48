# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Templates described for people and for forms: as data, and as JSON Schema."""

from __future__ import annotations

from typing import Any

from .catalogue import Template
from .metadata import INSTALL
from .node_requests import node_requests_as_data
from .parameters import describe, schema_of

SCHEMA = "https://json-schema.org/draft/2020-12/schema"


def json_schema(template: Template, entry: str = INSTALL) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of what an order's `templateParameters` hold."""
    head = {"$schema": SCHEMA, "title": template.title, "description": template.description}
    return head | schema_of(template.parameters(entry), template.site_rules.site_defaults)


def summary(template: Template) -> dict[str, Any]:
    """A template as data, with the same keys for each; for a broken one nearly all are empty, and `problem` says why."""
    broken = template.problem is not None
    return {
        "id": template.id,
        "path": str(template.path),
        "problem": template.problem,
        "extends": None if broken or len(template.lineage) == 1 else template.lineage[-2],
        "title": None if broken else template.title,
        "description": None if broken else template.description,
        "provider": None if broken else template.provider,
        "default_node_requests": [] if broken else node_requests_as_data(template.default_node_requests),
        "allowed_resource_classes": [] if broken else list(template.allowed_resource_classes),
        "site_parameters": [] if broken else list(template.site_rules.site_parameters),
        "site_defaults": [] if broken else list(template.site_rules.site_defaults),
        "site_choices": {} if broken else dict(template.site_rules.site_choices),
        "network_parameters": [] if broken else list(template.network_parameters),
        "entry_points": [] if broken else list(template.entry_points),
        "parameters": [] if broken else describe(template.parameters(), template.site_rules.site_defaults),
        "schema": None if broken else json_schema(template),
    }
