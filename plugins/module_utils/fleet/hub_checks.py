# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a hub can take clusters: what is read of it, and the checks that this comes to. `observe_hub` reads, `checks_of` decides.

The agent of the hub reports the checks to the home cluster, and the playbook that prepares a hub shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..common.types import Object
from ..infrastructure.agent_hosts import API_VERSION as AGENTS
from ..infrastructure.agent_hosts import KIND as AGENT
from ..infrastructure.agent_hosts import AgentLabels, count_hosts
from ..infrastructure.cluster_storage import IS_DEFAULT
from ..infrastructure.site_settings import InvalidSiteSettings, SiteSettings, read_site_settings
from ..kube.client import Kube
from ..kube.errors import NotFound
from ..kube.kinds import register
from ..orders.model import Names
from ..providers.base import ProviderError
from ..providers.factory import ProviderFactory
from ..templates.catalogue import Template
from ..templates.description import json_schema
from .hub_report import Check, ClassNodes, HubReport, OfferedTemplate
from .kinds import ORDER_NAMESPACE_PREFIX

BASE_DOMAIN = "base_domain"
STORED = "hypershift"  # the provider whose control planes have volumes on the hub

register("storage.k8s.io", "StorageClass", "storageclasses", namespaced=False)


@dataclass(frozen=True)
class HubFacts:
    """What was read of a hub. `lacking` has the kinds that the hub lacks, by the provider that needs them."""

    serves_orders: bool = True
    settings: SiteSettings = field(default_factory=SiteSettings)
    settings_problem: str = ""
    templates: tuple[Template, ...] = ()  # those that the site offers to the fleet
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    default_storage_class: bool = True
    serves_agents: bool = True
    nodes: Mapping[str, ClassNodes] = field(default_factory=dict)
    version: str = ""

    @property
    def possible(self) -> tuple[Template, ...]:
        """The templates whose provider the hub has."""
        return tuple(each for each in self.templates if each.provider not in self.lacking)


# Decide


def checks_of(facts: HubFacts) -> tuple[Check, ...]:
    """All checks, always in this order; a failed one says what to do."""
    return (
        _check("crds", "" if facts.serves_orders else "The hub does not serve ClusterOrders: install the CRDs of the collection."),
        _check("settings", facts.settings_problem),
        _check("operators", _operators(facts)),
        _check("storage", _storage(facts)),
        _check("dns", _dns(facts)),
        _check("classes", _classes(facts)),
    )


def report_of(facts: HubFacts, agent_version: str) -> HubReport:
    """The report to the home cluster. A template that cannot be created is not on offer."""
    return HubReport(
        checks_of(facts),
        dict(facts.nodes),
        tuple(_offered(each) for each in facts.possible),
        {"kubernetes": facts.version} if facts.version else {},
        tuple(facts.settings.release_images),
        agent_version,
    )


def _check(name: str, problem: str) -> Check:
    return Check(name, not problem, problem)


def _operators(facts: HubFacts) -> str:
    if facts.possible:
        return ""
    if not facts.templates:
        return "The hub offers no template: install a collection with templates, or correct templates in the settings of the site."
    lacking = "; ".join(f"{provider} lacks {', '.join(kinds)}" for provider, kinds in sorted(facts.lacking.items()))
    return f"No template can be created: {lacking}. Install the operator of a provider."


def _storage(facts: HubFacts) -> str:
    if facts.default_storage_class or not any(each.provider == STORED for each in facts.possible):
        return ""
    return "The hub has no default StorageClass, which the control planes of clusters need: create one."


def _dns(facts: HubFacts) -> str:
    """Templates whose base domain belongs to the site need one, and it has to be in the zone where records are written."""
    needing = [each.id for each in facts.possible if _needs_domain(each, facts.settings)]
    if needing:
        return (
            f"The settings of the site have no default for {BASE_DOMAIN}, which {', '.join(needing)} needs: set parameters.{BASE_DOMAIN}."
        )
    parameter = facts.settings.parameters.get(BASE_DOMAIN)
    domain, zone = str(parameter.default or "") if parameter else "", str(facts.settings.infrastructure.get("dns", {}).get("zone") or "")
    if domain and zone and not f".{domain.rstrip('.')}".endswith(f".{zone.rstrip('.')}"):
        return f"The {BASE_DOMAIN} {domain} is not in the zone {zone} of infrastructure.dns, where its records are written: correct one."
    return ""


def _needs_domain(template: Template, settings: SiteSettings) -> bool:
    option = template.parameters().members.get(BASE_DOMAIN)
    if option is None or not option.required or BASE_DOMAIN not in template.site_rules.site_parameters:
        return False
    parameter = settings.parameters.get(BASE_DOMAIN)
    return parameter is None or (parameter.default is None and not parameter.allowed)


def _classes(facts: HubFacts) -> str:
    """Hosts of a site without an agent_namespace are those of another inventory, which nothing here can count."""
    if not facts.settings.agent_namespace:
        return ""
    if not facts.serves_agents:
        return "The hub does not serve Agents: install the infrastructure operator, or remove agent_namespace from the settings."
    wanted = [name for name, each in facts.settings.classes.items() if each.get("kind") == "agent"]
    empty = [name for name in wanted if not facts.nodes.get(name, ClassNodes()).total]
    return f"There is no host of the class {', '.join(empty)}: add hosts, or remove it from the settings of the site." if empty else ""


def offered_templates(templates: Mapping[str, Template]) -> tuple[OfferedTemplate, ...]:
    """The templates that can be used, as a report has them."""
    return tuple(_offered(each) for each in templates.values() if not each.problem)


def _offered(template: Template) -> OfferedTemplate:
    nodes = {each.resource_class: each.number_of_nodes for each in template.default_node_requests}
    return OfferedTemplate(
        template.id, template.title, template.description, json_schema(template), nodes, tuple(template.allowed_resource_classes)
    )


# Observe


def observe_hub(kube: Kube, names: Names, templates: Mapping[str, Template], agents: Iterable[Object] | None = None) -> HubFacts:
    """Read the hub. A KubeError where it does not answer. `agents` are those of the site's inventory, where the caller follows them."""
    version = kube.version()
    settings, problem = _settings(kube, names)
    offered = tuple(each for each in templates.values() if not each.problem and settings.offers(f"{ORDER_NAMESPACE_PREFIX}*", each))
    found = _agents(kube, settings) if agents is None else list(agents)
    counts = count_hosts(found or (), AgentLabels(names.group), _class_labels(settings, names)) if settings.agent_namespace else {}
    return HubFacts(
        kube.serves(names.api_version, "ClusterOrder"),
        settings,
        problem,
        offered,
        _lacking(kube, {each.provider for each in offered}),
        any(_is_default(each) for each in kube.list_all("storage.k8s.io/v1", "StorageClass")),
        found is not None,
        {name: ClassNodes(*each) for name, each in counts.items()},
        version,
    )


def _settings(kube: Kube, names: Names) -> tuple[SiteSettings, str]:
    """The settings, without the Secret, and what is wrong with them."""
    try:
        return read_site_settings(kube, names.site_namespace, secrets=False), ""
    except InvalidSiteSettings as error:
        return error.usable or SiteSettings(templates={}), str(error)


def _agents(kube: Kube, settings: SiteSettings) -> list[Object] | None:
    if not settings.agent_namespace:
        return []
    try:
        return list(kube.list_all(AGENTS, AGENT, settings.agent_namespace))
    except NotFound:
        return None


def _class_labels(settings: SiteSettings, names: Names) -> dict[str, dict[str, str]]:
    label = AgentLabels(names.group).resource_class
    of_hosts = {name: each for name, each in settings.classes.items() if each.get("kind") == "agent"}
    return {name: each.get("labels") or {label: name} for name, each in of_hosts.items()}


def _lacking(kube: Kube, providers: Iterable[str]) -> dict[str, tuple[str, ...]]:
    missing = {provider: _missing_kinds(kube, provider) for provider in sorted(providers)}
    return {provider: kinds for provider, kinds in missing.items() if kinds}


def _missing_kinds(kube: Kube, provider: str) -> tuple[str, ...]:
    try:
        watches = ProviderFactory.get(provider).WATCHES
    except ProviderError as error:
        return (str(error).rstrip("."),)
    return tuple(kind for api_version, kind in watches if not kube.serves(api_version, kind))


def _is_default(storage_class: Mapping[str, Any]) -> bool:
    return (storage_class["metadata"].get("annotations") or {}).get(IS_DEFAULT) == "true"
