# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which profiles a cluster is to have, before versions are chosen: what the order asks for, within what template and site allow."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...common.argument_values import clip
from ...common.semantic_version import BadRange, Range
from ...common.text import did_you_mean
from ...infrastructure.profile_offer import NAME, NAMESPACE, OfferedProfile, ProfileOffer, layer_problem
from ...templates.profile_rules import EDITABLE, ProfileRule
from .values import merged

MAX_PROFILES = 64
FIELDS = ("name", "chart", *EDITABLE)
Rules = Mapping[str, ProfileRule]


@dataclass(frozen=True)
class Request:
    """One release that template or order ask for. What they leave open is the site's, or the chart's.

    `profile` is the one that the site offers, `name` that of the release: one profile can be installed twice.
    """

    name: str
    profile: str
    ranges: tuple[str, ...] = ()
    layer: int | None = None
    namespace: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    dependency: bool = False

    @property
    def hash(self) -> str:
        """The same for the same request, whatever the site offers meanwhile."""
        content = [self.name, self.profile, self.ranges, self.layer, self.namespace, self.values, self.dependency]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def offered_to(offer: ProfileOffer, template_id: str, rules: Rules | None) -> dict[str, OfferedProfile]:
    """The profiles that an order of this template may have."""
    return {name: profile for name, profile in offer.profiles.items() if profile.is_for(template_id) and (rules is None or name in rules)}


def read_requests(given: Sequence[Mapping[str, Any]], offered: Collection[str], rules: Rules | None, problems: list[str]) -> list[Request]:
    """The releases of an order, those that its template requires included. Each mistake is added to `problems`.

    `offered` are the names of the profiles that the order may have, and of those that it has already.
    """
    known, requests = rules or {}, dict[str, Request]()
    if len(given) > MAX_PROFILES:
        problems.append(f"there are {len(given)} profiles, and {MAX_PROFILES} is the most")
        return []
    for index, item in enumerate(given):
        request = _request(f"profile {index + 1}", item, offered, known, problems)
        if request and request.name in requests:
            problems.append(f"the name {request.name} is used twice: give each profile a name of its own")
        elif request:
            requests[request.name] = request
    present = {request.profile for request in requests.values()}
    for name, rule in known.items():
        if rule.required and name not in offered:
            problems.append(f"the template requires the profile {name}, which the site does not offer")
        elif rule.required and name not in present and name in requests:
            problems.append(f"the name {name} is that of a profile that the template requires: use another name")
        elif rule.required and name not in present:
            requests[name] = _with_rule(name, name, {}, rule)
    return list(requests.values())


def dependency(profile: str, rules: Rules | None) -> Request:
    """The request for a profile that another one needs, and that the order does not name."""
    request = _with_rule(profile, profile, {}, (rules or {}).get(profile, ProfileRule()))
    return Request(request.name, request.profile, request.ranges, request.layer, request.namespace, request.values, dependency=True)


def _request(what: str, item: Mapping[str, Any], offered: Collection[str], rules: Rules, problems: list[str]) -> Request | None:
    if not isinstance(item, Mapping):
        problems.append(f"{what} must be a mapping with the name of a profile")
        return None
    given = {key: value for key, value in item.items() if value is not None}
    name = given.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        problems.append(f"{what} must have a name of up to 40 lower-case letters, digits and dashes")
        return None
    profile = given.get("chart", name)
    if not isinstance(profile, str) or profile not in offered:
        names = f"{did_you_mean(str(profile), offered)}; on offer: {', '.join(sorted(offered)) or 'none'}"
        problems.append(f"{what} is {clip(str(profile))}, which is not on offer{names}")
        return None
    mistakes = [*_mistakes(given), *_refused(given, rules.get(profile, ProfileRule()))]
    problems.extend(f"profile {name}: {mistake}" for mistake in mistakes)
    return None if mistakes else _with_rule(name, profile, given, rules.get(profile, ProfileRule()))


def _mistakes(given: Mapping[str, Any]) -> list[str]:
    found = [f"{clip(str(key))} is not known{did_you_mean(str(key), FIELDS)}" for key in given if key not in FIELDS]
    if "layer" in given and (problem := layer_problem(given["layer"])):
        found.append(f"layer {problem}")
    namespace, values, version = given.get("namespace", ""), given.get("values", {}), given.get("version", "")
    if not isinstance(namespace, str) or (namespace and not NAMESPACE.fullmatch(namespace)):
        found.append("namespace must be the name of a namespace")
    if not isinstance(values, Mapping):
        found.append("values must be a mapping")
    try:
        Range.parse(version if isinstance(version, str) else "no text")
    except BadRange as error:
        found.append(f"version {error}")
    return found


def _refused(given: Mapping[str, Any], rule: ProfileRule) -> list[str]:
    fixed = [key for key in EDITABLE if key in given and key not in rule.editable]
    return [f"{', '.join(fixed)} cannot be set: the template has the values"] if fixed else []


def _with_rule(name: str, profile: str, given: Mapping[str, Any], rule: ProfileRule) -> Request:
    return Request(
        name,
        profile,
        tuple(text for text in (rule.version, given.get("version", "")) if text),
        given.get("layer", rule.layer),
        given.get("namespace") or rule.namespace,
        merged(rule.values, given.get("values", {})),
    )
