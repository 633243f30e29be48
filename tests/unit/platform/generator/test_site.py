"""The site file: what it needs, what is a default, and a message with the key for each mistake."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.secrets import Secrets, require
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.generator.site import SITE, InvalidSiteFile, parse

ROOT = Path(__file__).resolve().parents[4]
MINIMAL: dict[str, Any] = {
    "address": "https://platform.example.com/",
    "organization": "openfleet",
    "project": {"url": "https://git.example.com/clusters.git"},
    "images": {"execution_environment": "registry/ee:1", "decision_environment": "registry/de:1"},
    "hub": {"secret": "openfleet-hub"},
}
VARIABLES = {"cluster_order_api_group", "hub_kubeconfig"}


def changed(**keys: Any) -> dict[str, Any]:
    """The minimal file with other values; a value of None removes its key."""
    given = copy.deepcopy(MINIMAL)
    for path, value in keys.items():
        *parents, name = path.split("__")
        where = given
        for parent in parents:
            where = where.setdefault(parent, {})
        where[name] = value
    return given


def test_site_gives_only_what_it_alone_knows() -> None:
    site = parse(MINIMAL, VARIABLES)
    assert (site.address, site.prefix, site.webhooks, site.validate_certs) == ("https://platform.example.com", "openfleet", True, True)
    assert site.hub.kubeconfig == "/etc/openfleet/hub/kubeconfig"
    assert site.jobs.service_account == "openfleet-jobs"
    assert site.schedules == {"sync_status": 10, "configure_platform": 60}
    assert site.name("create_cluster") == "openfleet-create-cluster"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "it must be a mapping of keys"),
        (changed(address=None), "key address is required"),
        (changed(organization=None), "key organization is required"),
        (changed(project=None), "key project is required"),
        (changed(project__url=None), "key project.url is required"),
        (changed(images__execution_environment=None), "key images.execution_environment is required"),
        (changed(images__decision_environment=None), "key images.decision_environment is required"),
        (changed(hub__secret=None), "key hub.secret is required"),
        (changed(adress="x"), "key adress is not known to this site file (did you mean address?)"),
        (changed(project__uri="x"), "key project.uri is not known to this site file"),
        (changed(images__pull="sometimes"), "key images.pull must be one of"),
        (changed(address="platform.example.com"), "key address must be a URL, not platform.example.com"),
        (changed(prefix="Our Fleet"), "key prefix must have at most 32 lower-case letters"),
        (changed(hub__kubeconfig="kubeconfig"), "key hub.kubeconfig must be an absolute path"),
        (changed(jobs__secrets={"s3": "s3"}), "key jobs.secrets.s3 must be an absolute path"),
        (changed(schedules__sync_status=0), "key schedules.sync_status must be at least 1 minute"),
        (changed(schedules__sync_status="often"), "key schedules.sync_status must be"),
        (changed(variables={"cluster_order_apigroup": "x"}), "key variables.cluster_order_apigroup is a variable of no playbook (did you"),
        (changed(variables={"hub_kubeconfig": "x"}), "key variables.hub_kubeconfig is set by the platform or a credential: remove it"),
    ],
)
def test_mistake_is_reported_with_its_key(given: Any, message: str) -> None:
    with pytest.raises(InvalidSiteFile) as raised:
        parse(given, VARIABLES)
    assert str(raised.value).startswith("The site file cannot be used: ")
    assert message in str(raised.value)


def test_all_mistakes_are_one_message() -> None:
    with pytest.raises(InvalidSiteFile, match=r"address is required; .*organization is required"):
        parse(changed(address=None, organization=None), VARIABLES)


@pytest.mark.parametrize("missing", ["token", "engine_token", "engine_kubeconfig", "webhook_token"])
def test_missing_secret_is_named_by_its_variable(missing: str) -> None:
    given = {name: "x" for name in ("token", "engine_token", "engine_kubeconfig", "webhook_token") if name != missing}
    with pytest.raises(InvalidSiteFile, match=f"the variable platform_{missing} is not set"):
        require(Secrets(**given), parse(MINIMAL, VARIABLES))


def test_site_without_webhooks_needs_no_token_for_them() -> None:
    require(Secrets("x", "x", "x"), parse(changed(webhooks=False), VARIABLES))


def test_page_lists_every_key_and_no_other() -> None:
    page = (ROOT / "docs/automation_platform.md").read_text(encoding="utf-8").partition("## The site file")[2].partition("\n## ")[0]
    listed = [line.split("|")[1].strip().strip("`") for line in page.splitlines() if line.startswith("| `")]
    keys = [f"{key}.{inner}" if inner else key for key, spec in SITE.items() for inner in spec.get("options", {"": None})]
    assert listed == keys


def test_example_is_a_valid_site_file() -> None:
    example = yaml.safe_load((ROOT / "docs/examples/platform_site.yml").read_text(encoding="utf-8"))
    site = parse(example, {"cluster_site_namespace"})
    assert site.jobs.secrets == {"openfleet-s3": "/etc/openfleet/s3"}
    assert yaml.safe_load(yaml.safe_dump(dict(site.given))) == example
