"""The rulebook for webhooks in a real rules engine, with another source in place of its own, as an event stream of the platform is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.jobs import Launch
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import Platform

from ..support.automation_platform import generated
from ..support.engines import COLLECTIONS
from ..support.platform_runs import Runs, poll_quickly

ROOT = Path(__file__).resolve().parents[3]


def webhook(name: str, **metadata: str) -> dict[str, Any]:
    """An event as an event stream makes it of a webhook."""
    return {"payload": {"kind": "ClusterOrder", "metadata": {"namespace": "orders", "name": name, "uid": f"uid-{name}", **metadata}}}


def test_webhooks_launch_one_job_for_each_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (ruleset,) = yaml.safe_load((ROOT / "rulebooks/cluster_webhooks_aap.yml").read_text(encoding="utf-8"))
    nonsense = [{"payload": {}}, {"payload": {"metadata": "x"}}, {"payload": ["x"]}, {"other": 1}]
    deleted = webhook("old", deletionTimestamp="2026-01-01T00:00:00Z")
    events = [*nonsense, webhook("demo"), webhook("demo"), deleted, webhook("last")]
    ruleset["sources"] = [{"name": "webhooks", "eda.builtin.generic": {"payload": events, "shutdown_after": 600}}]
    rulebook, inventory = tmp_path / "rulebook.yml", tmp_path / "inventory.yml"
    rulebook.write_text(yaml.safe_dump([ruleset]), encoding="utf-8")
    inventory.write_text("all: {hosts: {localhost: {}}}", encoding="utf-8")
    environment = os.environ | {
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "EDA_JOB_TEMPLATE_REFRESH_DELAY": "0.5",
    }
    variables = tmp_path / "variables.yml"
    variables.write_text("organization: fleet", encoding="utf-8")
    poll_quickly(monkeypatch)
    platform = Platform()  # whose jobs do nothing and succeed
    with platform.serving() as url, open(tmp_path / "engine.log", "wb") as log:
        Runs(platform, url).run(generated(url, tmp_path / "kubeconfig"))
        command = [
            str(Path(sys.executable).parent / "ansible-rulebook"),
            "-r",
            str(rulebook),
            "-i",
            str(inventory),
            "--vars",
            str(variables),
        ]
        command += ["--controller-url", url, "--controller-token", platform.token()]
        with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=log, stderr=log) as engine:
            try:
                until(
                    lambda: "last" in [name(launch) for launch in platform.launches] and len(platform.launches) == 3,
                    f"three jobs are launched; the log is {log.name}",
                    600,
                )
            finally:
                engine.kill()
    assert {(name(launch), launch.template) for launch in platform.launches} == {
        ("demo", "openfleet-create-cluster"),
        ("old", "openfleet-delete-cluster"),
        ("last", "openfleet-create-cluster"),
    }
    assert {launch.sent["limit"] for launch in platform.launches} == {"localhost,cluster_orders"}
    assert {launch.sent["extra_vars"]["cluster_order_api_group"] for launch in platform.launches} == {"cloudkit.openshift.io"}


def name(launch: Launch) -> str:
    """The order that the playbook of a launch would read in its event."""
    return str(launch.sent["extra_vars"]["ansible_eda"]["event"]["payload"]["metadata"]["name"])
