"""The examples of docs/fleet_api.md, sent by curl to a live service, and the tables of that page against the code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.fleet_api.logic.views import CLUSTERS, HUBS, RECORDS
from ansible_collections.openfleet.clusters.extensions.fleet_api.problems import KINDS
from ansible_collections.openfleet.clusters.extensions.fleet_api.settings import Settings, load
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until

from ..support.fleet import Fleet
from ..support.fleet_api import API, Client, Facade, Tenant

PAGE = (Path(__file__).resolve().parents[3] / "docs/fleet_api.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


# The examples of the page are commands of curl, which a small machine may lack; the table at the end of a run names
# this test then.
@pytest.mark.skipif(not shutil.which("curl"), reason="curl: install curl")
def test_examples_of_the_page_work(tenant: Tenant, facade: Facade, fleet: Fleet) -> None:
    fleet.add_hub("east")
    fleet.set_quota(hard={"clusters": 3})
    until(lambda: tenant.client.get("/templates").json()["items"], "the service has the hub")
    blocks = [block for block in re.findall(r"```sh\n(.*?)```", section("Examples"), re.DOTALL) if "kubectl" not in block]
    assert len(blocks) == 2
    environment = os.environ | {"FLEET": facade.address, "TOKEN": tenant.client.token}
    result = subprocess.run(["bash", "-eu", "-c", "\n".join(blocks)], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    for text in ('"fits":true', '"status":{"state":"Pending"}', '"size":3', "event: synced", '"createdBy"'):
        assert text in result.stdout
    until(lambda: tenant.client.get("/clusters").json()["items"] == [], "the cluster is deleted")


def test_page_lists_every_operation(facade: Facade) -> None:
    document = Client(facade.address).get("//openapi.json").json()
    found = {f"{method.upper()} {path.removeprefix(API)}" for path, methods in document["paths"].items() for method in methods}
    assert {*re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) /[^`]*)`", section("Operations"))} == found


def test_page_lists_every_error_field_and_setting() -> None:
    rows = [(re.findall(r"`([a-z-]+)`", line), line.split("|")[2]) for line in section("Errors").splitlines() if line.startswith("| `")]
    listed = {code: int(status) for codes, status in rows for code in codes}
    assert listed == {kind.code: kind.status for kind in KINDS.values()}
    filters = [re.findall(r"`(\w+)`", line) for line in section("Filters").splitlines() if line.startswith("| ")][1:]
    assert [{*row} for row in filters] == [{*each.fields} for each in (CLUSTERS, RECORDS, HUBS)]
    names = {*re.findall(r"`(\w+)`", "".join(line for line in section("Settings").splitlines() if line.startswith("| `")))}
    nested = {name for field in ("limits", "watch", "cached") for name in type(getattr(Settings(), field)).model_fields}
    assert {*Settings.model_fields, *nested} <= names


def test_settings_of_the_page_are_valid(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", section("Settings"), re.DOTALL)
    file = tmp_path / "settings.yaml"
    file.write_text(block, encoding="utf-8")
    assert load(file, {}).issuers[0].url == yaml.safe_load(block)["issuers"][0]["url"]
