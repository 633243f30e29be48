"""Parameters that are address ranges: an order whose ranges cannot work is refused before anything is created."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import ProviderFactory, checked
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ClusterRequest
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.check import check
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.errors import InvalidOrder

from .template_samples import METADATA, a_template, parameters, specs, write_role

OPTIONS = {"pods": {"type": "str", "default": "10.132.0.0/14"}, "services": {"type": "list", "elements": "str"}, "other": {"type": "str"}}
NAMED = {"network_parameters": ["pods", "services"]}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"pods": "10.132.0.0/33"}, "parameter pods must be an address range in CIDR notation"),
        ({"services": ["10.133.0.0/16"]}, "parameter pods 10.132.0.0/14 and parameter services 10.133.0.0/16 overlap"),
        ({"services": ["fd02::/112"]}, "parameter pods has IPv4, parameter services has IPv6"),
    ],
)
def test_an_order_with_ranges_that_cannot_work_is_refused(tmp_path: Path, given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidOrder, match=problem):
        parameters(a_template(tmp_path, OPTIONS, NAMED), given)


def test_other_parameters_are_no_ranges_and_a_wrong_type_is_reported_once(tmp_path: Path) -> None:
    template = a_template(tmp_path, OPTIONS, NAMED)
    assert parameters(template, {"other": "10.132.0.0/14"})["other"] == "10.132.0.0/14"
    with pytest.raises(InvalidOrder) as refused:
        parameters(template, {"pods": 7})
    assert len(refused.value.problems) == 1


def test_no_range_keeps_a_cluster_alive(tmp_path: Path) -> None:
    assert check(a_template(tmp_path, OPTIONS, NAMED), '{"pods": "nope"}', entry="delete").ignored


@pytest.mark.parametrize("names", ["pods", ["nope"]])
def test_only_declared_parameters_can_be_ranges(tmp_path: Path, names: Any) -> None:
    write_role(tmp_path, "site.base.one", METADATA | {"network_parameters": names}, specs(OPTIONS))
    problem = find_templates([tmp_path])["site.base.one"].problem
    assert problem and "network_parameters must be a list of parameters of install" in problem


@pytest.mark.parametrize(
    ("provider", "settings", "secrets"),
    [
        ("hypershift", {"machine_network_cidr": "172.31.7.0/24"}, {"pull_secret": "{}"}),
        ("capi", {"service_network_cidr": "192.168.0.0/24"}, {}),
    ],
)
def test_a_provider_refuses_ranges_that_overlap_whatever_template_has_them(provider: str, settings: Any, secrets: Any) -> None:
    with pytest.raises(Invalid, match=r"settings\.\w+_network_cidr \S+ and settings\.\w+_network_cidr \S+ overlap"):
        checked(ProviderFactory.get(provider), ClusterRequest(settings=settings, secrets=secrets))
