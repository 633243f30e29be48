# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The profiles that a site offers, as data for people and for forms: with the versions that its repositories have now."""

from __future__ import annotations

from typing import Any

from ...infrastructure.profile_offer import OfferedProfile, ProfileOffer
from ...templates.catalogue import Template
from ...templates.profile_rules import EDITABLE, ProfileRule
from .charts import Charts
from .errors import RepositoryFailed
from .fetch import Deadline
from .repository_charts import BadAnnotation
from .requests import offered_to
from .resolve import DEFAULT_LAYER, matching
from .values import merged

MAX_VERSIONS = 50


def list_profiles(offer: ProfileOffer, template: Template | None, charts: Charts) -> list[dict[str, Any]]:
    """The profiles for orders of a template, or all; a repository that does not answer is the `problem` of its profiles only."""
    rules = template.profile_rules if template else None
    offered = offered_to(offer, template.id, rules) if template else offer.profiles
    deadline = Deadline()
    return [_described(profile, (rules or {}).get(name, ProfileRule()), charts, deadline) for name, profile in sorted(offered.items())]


def _described(profile: OfferedProfile, rule: ProfileRule, charts: Charts, deadline: Deadline) -> dict[str, Any]:
    versions, newest, problem = [], None, None
    try:
        repository = charts.of(profile.repository)
        versions = matching(repository.versions(profile.chart, deadline), profile, (rule.version,))[:MAX_VERSIONS]
        newest = repository.metadata(profile.chart, versions[0], deadline) if versions else None
    except RepositoryFailed as error:
        problem = str(error)
    except BadAnnotation as error:
        problem = f"The chart {profile.chart} {versions[0]} {error}."
    layers = (rule.layer, profile.layer, newest.layer if newest else None)
    requires = {**profile.requires, **(newest.requires if newest else {})}
    return {
        "name": profile.name,
        "description": profile.description or (newest.description if newest else ""),
        "repository": profile.repository,
        "chart": profile.chart,
        "versions": [str(version) for version in versions],
        "layer": next((layer for layer in layers if layer is not None), DEFAULT_LAYER),
        "namespace": rule.namespace or profile.namespace or profile.name,
        "values": merged(profile.values, rule.values),
        "required": rule.required,
        "editable": [name for name in EDITABLE if name in rule.editable],
        "requires": {name: wanted.text for name, wanted in requires.items()},
        "conflicts": list(dict.fromkeys((*profile.conflicts, *(newest.conflicts if newest else ())))),
        "problem": problem,
    }
