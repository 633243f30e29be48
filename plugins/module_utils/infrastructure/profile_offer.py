# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The profiles that a site offers, and the repositories of their charts, as its settings have them. Parsed here, resolved elsewhere.

The hub fetches charts, so the repositories are the site's and never a tenant's. Clusters fetch them too, with what the settings have: no
credential is among it, because tenants could read it in their clusters.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ..common.argument_values import clip, is_json
from ..common.semantic_version import BadRange, Range
from ..common.text import did_you_mean
from ..templates.errors import COLLECTION

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")  # of a repository, a profile and a release: the objects of Flux have it
NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
CHART = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,99}(/[a-zA-Z0-9][a-zA-Z0-9._-]{0,99}){0,4}")
HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?")
MAX_LAYER = 1000
REPOSITORY_KEYS = ("url", "ca", "insecure", "hosts")
PROFILE_KEYS = ("repository", "chart", "versions", "layer", "namespace", "description", "values", "requires", "conflicts", "templates")

Settings = Mapping[str, Mapping[str, Any]]  # by name


@dataclass(frozen=True)
class ChartRepository:
    """A Helm repository (https://) or a registry (oci://). `hosts` are further ones that it may redirect to; `insecure` means HTTP."""

    name: str
    url: str
    ca: str = ""
    insecure: bool = False
    hosts: tuple[str, ...] = ()

    @property
    def is_oci(self) -> bool:
        return self.url.startswith("oci://")


@dataclass(frozen=True)
class OfferedProfile:
    """One profile. `requires` has ranges of versions by profile, `conflicts` profiles that a cluster cannot have beside it.

    `templates` are patterns of template ids; None where orders of any template may have it. Without a `layer` the chart says which.
    """

    name: str
    repository: str
    chart: str
    versions: Range
    layer: int | None = None
    namespace: str = ""
    description: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    requires: Mapping[str, Range] = field(default_factory=dict)
    conflicts: tuple[str, ...] = ()
    templates: tuple[str, ...] | None = None

    def is_for(self, template_id: str) -> bool:
        return self.templates is None or any(fnmatch.fnmatchcase(template_id, _full(pattern)) for pattern in self.templates)


@dataclass(frozen=True)
class ProfileOffer:
    """All profiles and repositories of a site, by name."""

    repositories: Mapping[str, ChartRepository] = field(default_factory=dict)
    profiles: Mapping[str, OfferedProfile] = field(default_factory=dict)


def parse_offer(
    repositories: Mapping[str, Mapping[str, Any]], profiles: Mapping[str, Mapping[str, Any]], problems: list[str]
) -> ProfileOffer:
    """The offer without what has mistakes; each mistake is added to `problems`, with its key."""
    known = {name: _repository(name, value, problems) for name, value in repositories.items()}
    offered = {name: _profile(name, value, known, profiles, problems) for name, value in profiles.items()}
    return ProfileOffer(known, offered)


def parse_range(path: str, value: Any, problems: list[str]) -> Range:
    if isinstance(value, str):
        try:
            return Range.parse(value)
        except BadRange as error:
            problems.append(f"{path} {error}")
    else:
        problems.append(f"{path} must be a range of versions in quotes")
    return Range.parse("")


def layer_problem(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_LAYER:
        return ""
    return f"must be an integer from -{MAX_LAYER} to {MAX_LAYER}"


def _repository(name: str, value: Mapping[str, Any], problems: list[str]) -> ChartRepository:
    path = f"chart_repositories.{clip(name)}"
    _check_name(path, name, problems)
    _check_keys(path, value, REPOSITORY_KEYS, problems)
    url, insecure, hosts = value.get("url"), value.get("insecure", False), value.get("hosts", [])
    if not isinstance(insecure, bool):
        problems.append(f"{path}.insecure must be true or false")
    if not isinstance(hosts, list) or not all(isinstance(host, str) and HOST.fullmatch(host) for host in hosts):
        problems.append(f"{path}.hosts must be a list of hosts, each with a port if it is not the usual one")
        hosts = []
    if problem := _url_problem(url, insecure is True):
        problems.append(f"{path}.url {problem}")
        url = ""
    return ChartRepository(name, str(url).rstrip("/"), _text(path, value, "ca", problems), insecure is True, tuple(hosts))


def _url_problem(url: Any, insecure: bool) -> str:
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        found = bool(parts and parts.hostname and parts.scheme in ("https", "http", "oci") and parts.port != 0)
    except ValueError:
        found = False
    if not found or parts is None:
        return "must start with https:// or oci:// and name a host"
    if parts.username or parts.password:
        return "must have no credential: tenants could read it in their clusters"
    if parts.query or parts.fragment:
        return "must have no query and no fragment"
    return "is not encrypted: use https://, or set insecure: true" if parts.scheme == "http" and not insecure else ""


def _profile(
    name: str, value: Mapping[str, Any], repositories: Collection[str], profiles: Collection[str], problems: list[str]
) -> OfferedProfile:
    path = f"profiles.{clip(name)}"
    _check_name(path, name, problems)
    _check_keys(path, value, PROFILE_KEYS, problems)
    repository, chart = _text(path, value, "repository", problems), _text(path, value, "chart", problems) or name
    if repository not in repositories:
        problems.append(f"{path}.repository must be one of chart_repositories: {', '.join(repositories) or 'there is none'}")
    if not CHART.fullmatch(chart):
        problems.append(f"{path}.chart is not the name of a chart")
    layer, namespace, values = value.get("layer"), _text(path, value, "namespace", problems), value.get("values") or {}
    if layer is not None and (problem := layer_problem(layer)):
        problems.append(f"{path}.layer {problem}")
        layer = None
    if namespace and not NAMESPACE.fullmatch(namespace):
        problems.append(f"{path}.namespace must be the name of a namespace")
    if not isinstance(values, dict) or not is_json(values):
        problems.append(f"{path}.values must be a mapping, with dates in quotes")
        values = {}
    requires = value.get("requires") or {}
    if not isinstance(requires, dict) or not all(each in profiles for each in requires):
        problems.append(f"{path}.requires must be a mapping of names in profiles to ranges of versions")
        requires = {}
    templates = _names(f"{path}.templates", value.get("templates"), problems) if "templates" in value else None
    return OfferedProfile(
        name,
        repository,
        chart,
        parse_range(f"{path}.versions", value.get("versions", ""), problems),
        layer,
        namespace,
        _text(path, value, "description", problems),
        values,
        {each: parse_range(f"{path}.requires.{each}", wanted, problems) for each, wanted in requires.items()},
        _profile_names(f"{path}.conflicts", value.get("conflicts"), profiles, problems),
        templates,
    )


def _check_name(path: str, name: str, problems: list[str]) -> None:
    if not NAME.fullmatch(name):
        problems.append(f"{path} has a name that Flux's objects cannot have: use up to 40 lower-case letters, digits and dashes")


def _check_keys(path: str, value: Mapping[str, Any], known: Collection[str], problems: list[str]) -> None:
    problems.extend(f"{path}.{clip(str(key))} is not known{did_you_mean(str(key), known)}" for key in value if key not in known)


def _text(path: str, value: Mapping[str, Any], key: str, problems: list[str]) -> str:
    text = value.get(key, "")
    if not isinstance(text, str):
        problems.append(f"{path}.{key} must be a string")
        return ""
    return text


def _names(path: str, names: Any, problems: list[str]) -> tuple[str, ...]:
    if not isinstance(names or [], list) or not all(isinstance(name, str) and name for name in names or []):
        problems.append(f"{path} must be a list of names")
        return ()
    return tuple(names or ())


def _profile_names(path: str, names: Any, profiles: Collection[str], problems: list[str]) -> tuple[str, ...]:
    found = _names(path, names, problems)
    problems.extend(
        f"{path} has {clip(name)}, which is not in profiles{did_you_mean(name, profiles)}" for name in found if name not in profiles
    )
    return found


def _full(pattern: str) -> str:
    return pattern if "." in pattern or pattern == "*" else f"{COLLECTION}.{pattern}"
