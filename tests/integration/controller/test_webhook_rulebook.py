"""The rulebook for webhooks in a real rules engine, with another source in place of its own, as an event stream of the platform is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until

from ..support.engines import COLLECTIONS
from ..support.platform_standin import Platform

ROOT = Path(__file__).resolve().parents[3]


class LaunchRecorder(Platform):
    """A platform whose jobs do nothing and succeed."""

    def answer(self, method: str, path: str, query: Mapping[str, list[str]], body: Any) -> tuple[int, Any]:
        if path.endswith("/launch/"):
            self.launches.append(body | {"template": path.split("/")[-3]})
            return 201, self._done(len(self.launches))
        if path.endswith("/jobs/"):
            jobs = [self._done(int(number)) for number in query["id__in"][0].split(",")]
            return 200, {"count": len(jobs), "results": jobs, "next": None}
        return super().answer(method, path, query, body)

    @staticmethod
    def _done(number: int) -> dict[str, Any]:
        return {"id": number, "url": f"/api/v2/jobs/{number}/", "status": "successful", "created": "2026-01-01T00:00:00Z", "artifacts": {}}


def webhook(name: str, **metadata: str) -> dict[str, Any]:
    """An event as an event stream makes it of a webhook."""
    return {"payload": {"kind": "ClusterOrder", "metadata": {"namespace": "orders", "name": name, "uid": f"uid-{name}", **metadata}}}


def test_webhooks_launch_one_job_for_each_order(tmp_path: Path) -> None:
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
    platform = LaunchRecorder(environment, tmp_path)
    with platform.serving() as url, open(tmp_path / "engine.log", "wb") as log:
        command = [str(Path(sys.executable).parent / "ansible-rulebook"), "-r", str(rulebook), "-i", str(inventory)]
        command += ["--controller-url", url, "--controller-token", "made-up"]
        with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=log, stderr=log) as engine:
            try:
                until(
                    lambda: "last" in [name(launch) for launch in platform.launches] and len(platform.launches) == 3,
                    f"three jobs are launched; the log is {log.name}",
                    180,
                )
            finally:
                engine.kill()
    assert {(name(launch), launch["template"]) for launch in platform.launches} == {
        ("demo", "openfleet-create-cluster"),
        ("old", "openfleet-delete-cluster"),
        ("last", "openfleet-create-cluster"),
    }
    assert {launch["limit"] for launch in platform.launches} == {"localhost,cluster_orders"}
    assert {launch["extra_vars"]["cluster_order_api_group"] for launch in platform.launches} == {"cloudkit.openshift.io"}


def name(launch: Mapping[str, Any]) -> str:
    """The order that the playbook of a launch would read in its event."""
    return str(launch["extra_vars"]["ansible_eda"]["event"]["payload"]["metadata"]["name"])
