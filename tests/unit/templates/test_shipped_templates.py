"""The templates of this collection, as users get them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import NodeRequest
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import Template, find_templates, resolve
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.check import Checked, check
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.errors import InvalidOrder
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.site_parameters import SiteParameter, SiteValues

from .template_samples import COLLECTIONS, SECRET, parameters, problems, write_role

ROLES = COLLECTIONS / "openfleet" / "clusters" / "roles"
SHIPPED = sorted(role.parents[1].name for role in ROLES.glob("*/meta/template.yml"))
PULL = {"pull_secret": "{}"}


@pytest.fixture(scope="module")
def shipped() -> dict[str, Template]:
    return find_templates([COLLECTIONS])


# The templates of this collection


def test_shipped_templates_are_sound(shipped: dict[str, Template]) -> None:
    problems_of = {name: template.problem for name, template in shipped.items() if name.startswith("openfleet.")}
    assert problems_of == {f"openfleet.clusters.{role}": None for role in SHIPPED}


@pytest.mark.parametrize("file", sorted(ROLES.glob("*/tasks/delete.yml")), ids=lambda file: file.parents[1].name)
def test_delete_begins_with_flux_of_the_hub_or_is_that_of_another_template(file: Path) -> None:
    """Its finalizers would wait for a cluster that is deleted."""
    first, *_others = yaml.safe_load(file.read_text(encoding="utf-8"))
    role = first["ansible.builtin.include_role"]
    if "tasks_from" in role:
        assert (ROLES / role["name"].rpartition(".")[2] / "tasks" / f"{role['tasks_from']}.yml").is_file()
    else:
        assert (role["name"], first["vars"]) == ("openfleet.clusters.gitops_flux", {"gitops_flux_state": "absent"})


def test_templates_with_gitops_declare_the_same_parameter() -> None:
    """Argument specs cannot share it, so each template has it in its own."""
    files = [file for role in SHIPPED if (file := ROLES / role / "meta" / "argument_specs.yml").is_file()]
    specs = [yaml.safe_load(file.read_text(encoding="utf-8"))["argument_specs"] for file in files]
    options = [spec.get("install", {}).get("options", {}).get("template_parameters", {}).get("options", {}) for spec in specs]
    declared = [each["gitops"] for each in options if "gitops" in each]
    assert len(declared) == 4
    assert all(each == declared[0] for each in declared)


def test_small_needs_only_a_pull_secret_of_the_order_or_the_site(shipped: dict[str, Template]) -> None:
    template = resolve("ocp_4_17_small", shipped)
    assert problems(template, {}) == ["parameter pull_secret is required, because this site has no default for it"]
    assert check(template, json.dumps(PULL)).parameters["pull_secret"] == PULL["pull_secret"]
    checked = check(template, "", site=SiteValues(secrets=PULL))
    assert checked == Checked(
        {
            **PULL,
            "release_image": "quay.io/openshift-release-dev/ocp-release:4.17.0-multi",
            "pod_network_cidr": "10.132.0.0/14",
            "service_network_cidr": "172.31.0.0/16",
            "control_plane_availability": "SingleReplica",
        },
        (NodeRequest("fc430", 2),),
        template.id,
    )
    assert template.entry_points == ("install", "post_install", "delete")
    assert problems(template, {"pull_secret": {"auths": {}}}) == ["parameter pull_secret must be a string, not an object"]


def test_idp_adds_its_parameters(shipped: dict[str, Template]) -> None:
    template = resolve("ocp_4_17_small_idp", shipped)
    idp = {"idp_issuer": "https://login.example", "idp_client_id": "id", "idp_client_secret": SECRET}
    assert problems(template, PULL) == [f"parameter {name} is required" for name in idp]
    site = SiteValues({"idp_issuer": SiteParameter(allowed=("https://login.example",))})
    with pytest.raises(InvalidOrder, match="parameter idp_issuer belongs to the site"):
        check(template, json.dumps(PULL | idp))
    checked = check(template, json.dumps(PULL | idp), site=site)
    assert checked.role == template.id
    assert checked.parameters.items() >= (PULL | idp | {"idp_name": "openid"}).items()
    assert check(template, json.dumps(PULL | idp), entry="delete").role == "openfleet.clusters.ocp_4_17_small", "which releases its hosts"


@pytest.mark.parametrize("name", [name for name in SHIPPED if name.startswith("ocp_4_20")])
def test_templates_of_a_release_share_everything_but_what_they_add(shipped: dict[str, Template], name: str) -> None:
    template, small = resolve(name, shipped), resolve("ocp_4_17_small", shipped)
    images = {version: f"registry.example.com/ocp:{version}" for version in ("4.20.0", "4.20.1")}
    site = SiteValues(secrets=PULL, release_images=images)
    assert check(template, "", site=site).parameters["release_image"] == images["4.20.0"]
    assert check(template, '{"version": "4.20.1"}', site=site).parameters["release_image"] == images["4.20.1"]
    assert template.lineage[0] == small.id
    assert template.site_rules == small.site_rules and template.network_parameters == small.network_parameters
    assert template.parameters().members.keys() >= small.parameters().members.keys()


STEP_AFTER = {
    **dict.fromkeys(
        ("ocp_4_17_small", "ocp_4_17_small_idp", "ocp_4_20_small", "ocp_4_20_virt"), ("dns", "ingress", "storage_classes", "gitops")
    ),
    **dict.fromkeys(("ocp_4_20_ai", "ocp_4_20_hardened"), ("nothing", "dns", "ingress", "storage_classes", "gitops")),
    "capi_small": ("storage_classes", "gitops"),
    "osd_small": ("storage_classes", "gitops"),
    "existing_cluster": ("gitops",),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_only_what_a_site_has_needs_a_second_step(shipped: dict[str, Template], name: str) -> None:
    settings = {
        "nothing": {"infrastructure": {"hosts": {}, "network": {"pool": "x"}}, "storage_classes": {}},
        "dns": {"infrastructure": {"dns": {"zone": "x"}}},
        "ingress": {"infrastructure": {"ingress": {"pool": "x"}}},
        "storage_classes": {"storage_classes": {"fast": {}}},
        "gitops": {"infrastructure": {"gitops": {"mode": "hub"}}},
    }
    needing = tuple(each for each, given in settings.items() if resolve(name, shipped).needs_post_install(given))
    assert needing == STEP_AFTER[name]


def test_example_of_the_guide_is_a_sound_template(tmp_path: Path) -> None:
    guide = (ROLES.parent / "docs" / "writing_a_template.md").read_text()
    example = guide.split("```yaml\n")[1].split("```")[0]
    assert len(example.splitlines()) == 10
    write_role(tmp_path, "acme.templates.small", example)
    template = resolve("acme.templates.small", find_templates([tmp_path, COLLECTIONS]))
    assert parameters(template, PULL | {"cost_center": "x"})["base_domain"] == "clusters.acme.example"
    assert problems(template, PULL) == ["parameter cost_center is required"]
