# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The settings of a site: one ConfigMap in its namespace, where no tenant has a permission.

It says which templates the orders of a namespace may name, and which values the parameters have that belong to the site.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..common.argument_values import clip
from ..common.bounded_yaml import BadYaml, load
from ..common.text import did_you_mean
from ..kube.client import Kube
from ..kube.errors import KubeError
from ..templates.catalogue import Template
from ..templates.errors import COLLECTION
from ..templates.site_parameters import SiteParameter

CONFIG_MAP = "site-settings"
KEYS = ("templates", "parameters")


class InvalidSiteSettings(KubeError):
    """The site has to correct its settings; no order can be validated before."""

    retryable = True


@dataclass(frozen=True)
class SiteSettings:
    """`templates` has the ids of templates by patterns of namespaces, `parameters` the site's values of its own parameters."""

    templates: Mapping[str, tuple[str, ...]] | None = None
    parameters: Mapping[str, SiteParameter] = field(default_factory=dict)

    def offers(self, namespace: str, template: Template) -> bool:
        """Whether an order of the namespace may name the template: by the first pattern that matches the namespace."""
        if self.templates is None:
            return True
        ids = next((ids for pattern, ids in self.templates.items() if fnmatch.fnmatchcase(namespace, pattern)), ())
        return any(fnmatch.fnmatchcase(template.id, _full(each)) for each in ids)


def read_site_settings(kube: Kube, site_namespace: str) -> SiteSettings:
    """The settings; without the ConfigMap every template is on offer, and no parameter of the site has a value."""
    found = kube.find("v1", "ConfigMap", CONFIG_MAP, site_namespace)
    return parse(found.get("data") or {}, f"{site_namespace}/{CONFIG_MAP}") if found else SiteSettings()


def parse(data: Mapping[str, str], where: str) -> SiteSettings:
    """The settings in the data of the ConfigMap; InvalidSiteSettings names the key of every mistake."""
    problems = [f"{clip(key)} is not known{did_you_mean(key, KEYS)}" for key in data if key not in KEYS]
    documents = {key: _document(key, data.get(key, ""), problems) for key in KEYS}
    templates = {str(pattern): _names(f"templates.{pattern}", names, problems) for pattern, names in documents["templates"].items()}
    parameters = {str(name): _parameter(f"parameters.{name}", value, problems) for name, value in documents["parameters"].items()}
    if problems:
        raise InvalidSiteSettings(f"The site's settings, ConfigMap {where}, cannot be used: {'; '.join(problems)}.")
    return SiteSettings(templates if "templates" in data else None, parameters)


def _document(key: str, text: str, problems: list[str]) -> dict[str, Any]:
    try:
        document = load(text)
    except BadYaml as error:
        problems.append(f"{key} {error}")
        return {}
    if document is None:
        return {}
    if not isinstance(document, dict):
        problems.append(f"{key} must be a mapping in YAML")
        return {}
    return document


def _names(path: str, names: Any, problems: list[str]) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        problems.append(f"{path} must be a list of names")
        return ()
    return tuple(names)


def _parameter(path: str, value: Any, problems: list[str]) -> SiteParameter:
    if not isinstance(value, dict) or not value or set(value) - {"default", "allowed"}:
        problems.append(f"{path} must be a mapping with default, allowed, or both")
        return SiteParameter()
    allowed = value.get("allowed", [])
    if not isinstance(allowed, list):
        problems.append(f"{path}.allowed must be a list of values")
        allowed = []
    return SiteParameter(value.get("default"), tuple(allowed))


def _full(pattern: str) -> str:
    """A name without dots means a template of this collection, as in an order."""
    return pattern if "." in pattern or pattern == "*" else f"{COLLECTION}.{pattern}"
