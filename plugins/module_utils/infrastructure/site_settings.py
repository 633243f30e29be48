# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The settings of a site: one ConfigMap and one Secret in its namespace, where no tenant has a permission.

They say which templates the orders of a namespace may name, which values the parameters have that belong to the site, and what the site
has for the clusters: classes of machines, releases, storage, and the systems behind its adapters. Nothing here uses any of that.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..common.argument_values import clip
from ..common.bounded_yaml import BadYaml, load
from ..common.text import did_you_mean
from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import KubeError
from ..templates.catalogue import Template
from ..templates.errors import COLLECTION
from ..templates.site_parameters import SiteParameter, SiteValues
from .profile_offer import ProfileOffer, parse_offer
from .site_secrets import SECRET, SiteSecrets, parse_secrets

CONFIG_MAP = "site-settings"
NEEDED_TO_DELETE = ("infrastructure", "agent_namespace")  # they name what a template used outside the working namespace
PROFILES = ("chart_repositories", "profiles")
KEYS = ("templates", "parameters", "classes", "release_images", "storage_classes", "allow_inline_secrets", *PROFILES, *NEEDED_TO_DELETE)
CLASS_KINDS = ("agent", "vm")
NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class InvalidSiteSettings(KubeError):
    """The site has to correct its settings; no order can be validated before.

    `usable` are the settings without the mistakes, to delete an order. None where a deletion would leave behind what it cannot reach.
    """

    retryable = True

    def __init__(self, mistakes: Mapping[str, list[str]], usable: SiteSettings | None) -> None:
        sentences = [f"The site's settings, {where}, cannot be used: {'; '.join(problems)}." for where, problems in mistakes.items()]
        super().__init__(" ".join(sentences))
        self.usable = usable


@dataclass(frozen=True)
class SiteSettings:
    """`templates` has the ids of templates by patterns of namespaces, `parameters` the site's values of its own parameters.

    `classes` has the machines by resource class, `release_images` the images by version, `storage_classes` what new clusters get by name,
    `infrastructure` an adapter and its settings by part. `agent_namespace` has the hosts of the site. `offer` has the profiles that orders
    may have.
    """

    templates: Mapping[str, tuple[str, ...]] | None = None
    parameters: Mapping[str, SiteParameter] = field(default_factory=dict)
    classes: Mapping[str, Object] = field(default_factory=dict)
    release_images: Mapping[str, str] = field(default_factory=dict)
    storage_classes: Mapping[str, Object] = field(default_factory=dict)
    infrastructure: Mapping[str, Object] = field(default_factory=dict)
    agent_namespace: str = ""
    allow_inline_secrets: bool = True
    secrets: SiteSecrets = field(default_factory=SiteSecrets)
    offer: ProfileOffer = field(default_factory=ProfileOffer)

    def offers(self, namespace: str, template: Template) -> bool:
        """Whether an order of the namespace may name the template: by the first pattern that matches the namespace."""
        if self.templates is None:
            return True
        ids = next((ids for pattern, ids in self.templates.items() if fnmatch.fnmatchcase(namespace, pattern)), ())
        return any(fnmatch.fnmatchcase(template.id, _full(each)) for each in ids)

    @property
    def values(self) -> SiteValues:
        """What the site has for the parameters of templates."""
        secrets = {name: value for name, value in vars(self.secrets).items() if value}
        return SiteValues(self.parameters, secrets, self.release_images, self.allow_inline_secrets, self.as_variable())

    def as_variable(self) -> Object:
        """What the tasks of a template get as `cluster_site`. It has no secrets."""
        return {
            "agent_namespace": self.agent_namespace,
            "classes": dict(self.classes),
            "release_images": dict(self.release_images),
            "storage_classes": dict(self.storage_classes),
            "infrastructure": dict(self.infrastructure),
        }


def read_site_settings(kube: Kube, site_namespace: str, *, secrets: bool = True) -> SiteSettings:
    """The settings; without the objects every template is on offer, and the site has no value for anything.

    Without `secrets` the Secret is not read: a deletion does without it.
    """
    settings = kube.find("v1", "ConfigMap", CONFIG_MAP, site_namespace) or {}
    secret = (kube.find("v1", "Secret", SECRET, site_namespace) if secrets else None) or {}
    return parse(settings.get("data") or {}, secret.get("data") or {}, site_namespace)


def parse(data: Mapping[str, str], secret: Mapping[str, str], site_namespace: str) -> SiteSettings:
    """The settings in the data of ConfigMap and Secret; InvalidSiteSettings names the key of every mistake, and no value of the Secret."""
    problems = [f"{clip(key)} is not known{did_you_mean(key, KEYS)}" for key in data if key not in KEYS]
    documents = {key: _document(key, data.get(key, ""), problems) for key in KEYS if key not in NEEDED_TO_DELETE}
    reach: list[str] = []
    documents |= {key: _document(key, data.get(key, ""), reach) for key in NEEDED_TO_DELETE}
    unreadable: list[str] = []
    settings = SiteSettings(
        templates=_templates(documents["templates"], problems) if "templates" in data else None,
        parameters=_parameters(documents["parameters"], problems),
        classes=_classes(documents["classes"], problems),
        release_images=_images(documents["release_images"], problems),
        storage_classes=_mappings("storage_classes", documents["storage_classes"], problems),
        infrastructure=_adapters(documents["infrastructure"], reach),
        agent_namespace=_agent_namespace(documents["agent_namespace"], reach),
        allow_inline_secrets=_allow_inline_secrets(documents["allow_inline_secrets"], problems),
        secrets=parse_secrets(secret, unreadable),
        offer=_offer(documents, problems),
    )
    mistakes = {f"ConfigMap {site_namespace}/{CONFIG_MAP}": problems + reach, f"Secret {site_namespace}/{SECRET}": unreadable}
    if any(mistakes.values()):
        raise InvalidSiteSettings({where: texts for where, texts in mistakes.items() if texts}, None if reach else settings)
    return settings


def _document(key: str, text: str, problems: list[str]) -> Any:
    try:
        return load(text)
    except BadYaml as error:
        problems.append(f"{key} {error}")
        return None


def _mapping(key: str, document: Any, problems: list[str]) -> dict[str, Any]:
    if document is None:
        return {}
    if not isinstance(document, dict):
        problems.append(f"{key} must be a mapping in YAML")
        return {}
    wrong = [name for name in document if not isinstance(name, str)]
    problems.extend(f"{key}.{clip(str(name))} must be a string: put it in quotes" for name in wrong)
    return {name: value for name, value in document.items() if name not in wrong}


def _mappings(key: str, document: Any, problems: list[str]) -> dict[str, Object]:
    """A mapping whose members are mappings too."""
    members = _mapping(key, document, problems)
    problems.extend(f"{key}.{clip(name)} must be a mapping" for name, value in members.items() if not isinstance(value, dict))
    return {name: value for name, value in members.items() if isinstance(value, dict)}


def _templates(document: Any, problems: list[str]) -> dict[str, tuple[str, ...]]:
    members = _mapping("templates", document, problems)
    return {pattern: _names(f"templates.{clip(pattern)}", names, problems) for pattern, names in members.items()}


def _names(path: str, names: Any, problems: list[str]) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        problems.append(f"{path} must be a list of names")
        return ()
    return tuple(names)


def _parameters(document: Any, problems: list[str]) -> dict[str, SiteParameter]:
    members = _mapping("parameters", document, problems)
    return {name: _parameter(f"parameters.{clip(name)}", value, problems) for name, value in members.items()}


def _parameter(path: str, value: Any, problems: list[str]) -> SiteParameter:
    if not isinstance(value, dict) or not value or set(value) - {"default", "allowed"}:
        problems.append(f"{path} must be a mapping with default, allowed, or both")
        return SiteParameter()
    allowed = value.get("allowed", [])
    if not isinstance(allowed, list):
        problems.append(f"{path}.allowed must be a list of values")
        allowed = []
    return SiteParameter(value.get("default"), tuple(allowed))


def _classes(document: Any, problems: list[str]) -> dict[str, Object]:
    classes = _mappings("classes", document, problems)
    for name, value in classes.items():
        if value.get("kind") not in CLASS_KINDS:
            problems.append(f"classes.{clip(name)}.kind must be one of {', '.join(CLASS_KINDS)}")
        labels = value.get("labels", {})
        if not isinstance(labels, dict) or not all(isinstance(text, str) for pair in labels.items() for text in pair):
            problems.append(f"classes.{clip(name)}.labels must be a mapping of strings")
    return classes


def _images(document: Any, problems: list[str]) -> dict[str, str]:
    members = _mapping("release_images", document, problems)
    wrong = [version for version, image in members.items() if not isinstance(image, str) or not image]
    problems.extend(f"release_images.{clip(version)} must be the name of an image" for version in wrong)
    return {version: image for version, image in members.items() if version not in wrong}


def _adapters(document: Any, problems: list[str]) -> dict[str, Object]:
    parts = _mappings("infrastructure", document, problems)
    for name, value in parts.items():
        if "adapter" in value and (not isinstance(value["adapter"], str) or not value["adapter"]):
            problems.append(f"infrastructure.{clip(name)}.adapter must be the name of a role")
    return parts


def _offer(documents: Mapping[str, Any], problems: list[str]) -> ProfileOffer:
    repositories, profiles = (_mappings(key, documents[key], problems) for key in PROFILES)
    return parse_offer(repositories, profiles, problems)


def _agent_namespace(document: Any, problems: list[str]) -> str:
    if document is None:
        return ""
    if not isinstance(document, str) or not NAMESPACE.fullmatch(document):
        problems.append("agent_namespace must be the name of a namespace")
        return ""
    return document


def _allow_inline_secrets(document: Any, problems: list[str]) -> bool:
    if not isinstance(document, bool | None):
        problems.append("allow_inline_secrets must be true or false")
    return document is not False


def _full(pattern: str) -> str:
    """A name without dots means a template of this collection, as in an order."""
    return pattern if "." in pattern or pattern == "*" else f"{COLLECTION}.{pattern}"
