"""The examples of the modules for Automation Platform, run as they are written: on the stand-in, with the ledger on a real hub."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from pathlib import Path

import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.jobs import Run
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import Platform

from ..support.playbooks import Task, play, task

ROOT = Path(__file__).resolve().parents[3]
TOKENS = ("platform_engine_token", "platform_webhook_token")


def examples(module: str, url: str) -> list[Task]:
    text = importlib.import_module(f"ansible_collections.openfleet.clusters.plugins.modules.{module}").EXAMPLES
    tasks: list[Task] = yaml.safe_load(text.replace("https://aap.example.com", url).replace("https://platform.example.com", url))
    return tasks


def say_so(run: Run) -> subprocess.Popen[bytes]:
    with open(run.log, "wb") as log:
        return subprocess.Popen(["echo", "The job has run."], stdout=log)


def test_examples_run_as_they_are_written(tmp_path: Path, hub: Access, namespace: str) -> None:
    platform = Platform(gateway=True, folder=tmp_path, runner=say_so)
    shutil.copy(ROOT / "docs/examples/platform_site.yml", tmp_path)
    (tmp_path / "engine.kubeconfig").write_text("apiVersion: v1\nkind: Config\n", encoding="utf-8")
    with platform.serving() as url:
        token = platform.token()
        site = yaml.safe_load((tmp_path / "platform_site.yml").read_text(encoding="utf-8"))
        (tmp_path / "platform_site.yml").write_text(yaml.safe_dump(site | {"address": url}), encoding="utf-8")
        *created, removed = examples("platform_configuration", url)
        common = {"aap_hostname": url, "aap_token": "{{ token }}", "site_namespace": namespace}
        tasks = [
            *created,
            *examples("platform_configuration_info", url),
            removed,
            *examples("platform_document_info", url),
            task("platform_configuration", "Apply it", document="{{ generated.document }}", **common),
            *examples("platform_job", url),
        ]
        secrets = {"token": token, "platform_token": token, **dict.fromkeys(TOKENS, "hunter2-do-not-show")}
        played = play(tmp_path, tasks, defaults={"kubeconfig": str(hub.kubeconfig)}, secrets=secrets)
    assert played.code == 0, played.output
    assert any("sync-status" in line for line in played.fine("Show what was changed").result["msg"])
    assert yaml.safe_load((tmp_path / "platform.yml").read_text(encoding="utf-8"))["controller_templates"][0]["name"] == "sync-status"
    assert played.fine("Delete all that was created").changed
    assert "openfleet-create-cluster" in played.fine("Show the job templates").result["msg"]
    assert "The job has run." in played.fine("Show the output").result["proof.output"]
    assert "hunter2-do-not-show" not in played.output
