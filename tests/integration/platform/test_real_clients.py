"""The stand-in as AWX's own clients see it, in both directions: they read what we wrote unchanged, and we read what they wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.dev.bench import platform_rows
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.sample import Content, as_usual, document
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import ADMIN, PASSWORD, Platform
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.export import EXPORTED, export
from awxkit import api
from awxkit.api.client import Connection

from ..support.platform_documents import content_of
from ..support.platform_runs import Runs

# The modules cannot know whether a secret has changed, and write it again; they send null for the kind of an inventory.
REWRITTEN = ("/credentials/", "/inventories/", "/survey_spec/")


def controller_part() -> Content:
    return {key: objects for key, objects in document().items() if not key.startswith("eda_")}


def run_awx_modules(platform: Platform, url: str) -> str:
    variables = {"url": url, "token": platform.token(), "document": as_usual(controller_part())}
    command = [str(Path(sys.executable).parent / "ansible-playbook"), str(platform_rows.PLAYBOOK), "-e", json.dumps(variables)]
    environment = os.environ | {"ANSIBLE_COLLECTIONS_PATH": str(Path(sys.prefix) / "collections"), "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def connect(url: str) -> Any:
    """awxkit's view of a controller."""
    connection = Connection(url)
    connection.login(ADMIN, PASSWORD)
    return api.Api(connection=connection).get().available_versions.v2.get()


@pytest.fixture(scope="module")
def ours() -> list[str]:
    """What a platform has after our run."""
    platform = Platform()
    with platform.serving() as url:
        Runs(platform, url).run(controller_part())
    return content_of(platform)


def differences(runs: Runs) -> list[str]:
    """The objects that a run would change on a platform that another client configured."""
    return [change.called for change in runs.run(controller_part(), check=True).changes]


def test_what_the_modules_of_awx_wrote_is_what_we_would_have_written(ours: list[str]) -> None:
    platform = Platform()
    with platform.serving() as url:
        run_awx_modules(platform, url)
        assert content_of(platform) == ours
        runs = Runs(platform, url)
        assert differences(runs) == ["credential hub", "job template create-1"], "only secrets, whose values cannot be read"
        exported = export(runs.api(), EXPORTED, "acme")
    names = {key: [entry["name"] for entry in exported[key]] for key in exported}
    assert names["controller_templates"] == ["create-0", "create-1"] and names["controller_workflows"] == ["both"]


def test_the_modules_of_awx_and_awxkit_find_what_we_wrote_unchanged(ours: list[str]) -> None:
    platform = Platform()
    with platform.serving() as url:
        Runs(platform, url).run(controller_part())
        written = len(platform.writes())
        report = run_awx_modules(platform, url)
        assert content_of(platform) == ours
        again = [write for write in platform.writes()[written:] if not any(part in write for part in REWRITTEN)]
        assert again == []
        assert "failed=0" in report and report.count("changed: ") <= len(REWRITTEN)
        shown = connect(url).job_templates.get(name="create-0").results[0]
        assert (shown.summary_fields.credentials[0].name, shown.extra_vars) == ("hub", '{"number": 0}')
        job = shown.launch({"extra_vars": {"order": "demo"}})
        assert (job.status, json.loads(job.extra_vars)) == ("successful", {"number": 0, "order": "demo"})


def test_awxkit_carries_what_we_wrote_to_another_platform(ours: list[str]) -> None:
    first, second = Platform(), Platform()
    with first.serving() as source, second.serving() as target:
        Runs(first, source).run(controller_part())
        assets = connect(source).export_assets()
        connect(target).import_assets(assets)
        runs = Runs(second, target)
        # Besides secrets, awxkit leaves out instance groups, which templates refer to.
        assert differences(runs) == ["instance group hub", "credential hub", "job template create-0", "job template create-1"]
        runs.run(controller_part())
        assert content_of(second) == ours
