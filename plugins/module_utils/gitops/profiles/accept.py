# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The profiles of an order before it is accepted: from its parameters and its lock file to the lock file that it is to have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...infrastructure.profile_offer import ProfileOffer
from ...kube.errors import Invalid
from ...templates.catalogue import Template
from ...templates.profile_rules import asked_profiles, needs_profiles
from .charts import Charts
from .errors import InvalidProfiles
from .lock_file import ProfilesLock
from .requests import offered_to, read_requests
from .resolve import Resolution


def accept_profiles(template: Template, parameters: Mapping[str, Any], offer: ProfileOffer, charts: Charts, before: str) -> str:
    """The text of the lock file, empty without profiles; `before` is the one that the order has.

    InvalidProfiles names every mistake. RepositoryFailed is no mistake of the order: it may be resolved later.
    """
    rules = template.profile_rules
    if not needs_profiles(rules, parameters):
        return ""
    problems: list[str] = []
    offered = offered_to(offer, template.id, rules)
    locked = ProfilesLock.from_json(before)
    requests = read_requests(asked_profiles(parameters), {*offered, *(item.profile for item in locked.profiles)}, rules, problems)
    if problems:
        raise InvalidProfiles(problems)
    lock = Resolution(offer, offered, rules, charts).resolve(requests, locked)
    try:
        return lock.to_json()
    except Invalid as error:
        raise InvalidProfiles([str(error).rstrip(".")]) from None
