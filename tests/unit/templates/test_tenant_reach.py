"""No parameter of a shipped template lets a tenant name a namespace, a host or a Secret that is not theirs.

The cases come from the argument specs. A parameter that takes any text needs an entry in FREE, which says where the text goes; the tests of
orders prove that it goes nowhere else.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_checker import Option
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import Template, find_templates
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.check import check
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.errors import InvalidOrder
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.secret_references import SecretRef
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.site_parameters import SiteParameter, SiteValues

from .template_samples import COLLECTIONS

SHIPPED = {name: each for name, each in sorted(find_templates([COLLECTIONS]).items()) if name.startswith("openfleet.clusters.")}
CASES = [(name, parameter) for name, each in SHIPPED.items() for parameter in each.parameters().members]
# What a tenant would give to reach a namespace of the hub, a Secret of the site, or a host.
HOSTILE: list[Any] = ["kube-system", "openfleet-system/site-secrets", "host-000", {"namespace": "kube-system", "name": "host-000"}]
REFERENCE = {"secretRef": {"name": "site-secrets", "key": "pull_secret"}}
# A site that offers something of everything, and none of the above.
SITE = SiteValues(
    {name: SiteParameter(allowed=("of-the-site",)) for name in ("release_image", "base_domain", "idp_issuer")},
    {"pull_secret": "{}"},
    {"4.20.0": "of-the-site"},
    settings={
        "storage_classes": {"fast": {}},
        "infrastructure": {
            "addons": {"operators": [{"name": "gpu"}], "of_provider": {"logging-operator": {}}},
            "quotas": {"team": {}},
            "backup": {"retentions": ["168h"]},
        },
    },
)
FREE = {
    "ocp.ssh_public_key": "the content of a Secret in the working namespace",
    "ocp_4_17_small_idp.idp_name": "the name of an identity provider of the cluster",
    "ocp_4_17_small_idp.idp_client_id": "the client ID of that identity provider",
    "capi_small.version": "the version of the Cluster, which Cluster API checks",
    "osd_small.version": "the version in the request to OpenShift Cluster Manager",
    "osd_small.region": "the region in that request",
    "osd_small.aws_account_id": "the account in that request, which needs its own keys",
}


def problems(template: Template, parameter: str, value: Any) -> list[str]:
    """Those about this parameter."""

    def read(reference: SecretRef) -> str:
        return f"{reference.name} of the namespace of the order"

    try:
        check(template, json.dumps({parameter: value}), site=SITE, read_secret=read)
    except InvalidOrder as refused:
        return [
            problem
            for problem in refused.problems
            if problem.startswith((f"parameter {parameter} ", f"parameter {parameter}.", f"parameter {parameter}["))
        ]
    return []


def is_free(template: Template, option: Option) -> bool:
    """Whether nothing but the type restricts the parameter."""
    rules = template.site_rules
    restricted = {*rules.site_parameters, *rules.site_choices, *template.network_parameters}
    if "release_image" in rules.site_defaults:
        restricted.add("version")
    return option.name not in restricted and not option.choices and not option.no_log and option.type not in ("bool", "int")


def entry(template: Template, parameter: str) -> str | None:
    role = template.id.rpartition(".")[2]
    family = "ocp" if role.startswith("ocp_") else role
    return next((key for key in (f"{role}.{parameter}", f"{family}.{parameter}") if key in FREE), None)


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_a_parameter_reaches_nothing_that_is_not_the_tenants(name: str, parameter: str) -> None:
    template = SHIPPED[name]
    option = template.parameters().members[parameter]
    if is_free(template, option):
        assert option.type == "str" and entry(template, parameter), f"say in FREE where the text of {parameter} goes, and test that"
    elif option.no_log:
        foreign = {"secretRef": REFERENCE["secretRef"] | {"namespace": "openfleet-system"}}
        assert problems(template, parameter, foreign) == [
            f"parameter {parameter}.secretRef cannot name a namespace: the Secret is in that of the order"
        ]
        assert problems(template, parameter, {"secretRef": {"name": "openfleet-system/site-secrets", "key": "pull_secret"}})
        assert problems(template, parameter, REFERENCE) == [], "it is a Secret of that name in the namespace of the order"
    else:
        given = [[value] for value in HOSTILE] if option.type == "list" else HOSTILE
        for value in [*given, REFERENCE]:
            assert problems(template, parameter, value), f"{parameter} accepts {value}"


def test_each_entry_is_of_a_parameter_that_takes_any_text() -> None:
    free = [(each, option) for each in SHIPPED.values() for option in each.parameters().members.values() if is_free(each, option)]
    assert {entry(template, option.name) for template, option in free} == set(FREE)


@pytest.mark.parametrize("name", [name for name, each in SHIPPED.items() if each.allowed_resource_classes])
def test_node_requests_name_a_class_and_no_host(name: str) -> None:
    with pytest.raises(InvalidOrder, match="host-000 is not allowed: the template has"):
        check(SHIPPED[name], "{}", [{"resourceClass": "host-000", "numberOfNodes": 1}], site=SITE)


@pytest.mark.parametrize("unknown", ["namespace", "agent_namespace", "hosts", "secret", "cluster_site", "worker_agents_namespace"])
@pytest.mark.parametrize("name", SHIPPED)
def test_no_template_has_a_parameter_for_them(name: str, unknown: str) -> None:
    with pytest.raises(InvalidOrder, match=f"parameter {unknown} is not known"):
        check(SHIPPED[name], json.dumps({unknown: "kube-system"}), site=SITE)
