"""The playbook configure_platform on a real hub and the stand-in for Automation Platform, which runs the jobs that it launches."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.runner import PlaybookRunner
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import Platform
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace

ROOT = Path(__file__).resolve().parents[3]
COLLECTIONS = Path(sys.prefix) / "collections"
RUN_SECONDS = 300


class Configuration:
    """A site with its file and secrets, on a hub and a platform; the ledger is in `namespace`."""

    def __init__(self, hub: Access, namespace: str, folder: Path) -> None:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_", "KUBE"))}
        self.environment = inherited | {
            "HOME": str(folder),
            "KUBECONFIG": str(hub.kubeconfig),
            "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
            "ANSIBLE_NOCOLOR": "1",
        }
        self.platform = Platform(gateway=True, folder=folder, runner=PlaybookRunner(ROOT, self.environment))
        self.namespace = namespace
        self._folder = folder

    def write(self, address: str, **keys: object) -> None:
        example = yaml.safe_load((ROOT / "docs/examples/platform_site.yml").read_text(encoding="utf-8"))
        hub = example["hub"] | {"kubeconfig": self.environment["KUBECONFIG"]}
        site = example | {"address": address, "hub": hub, "variables": {"cluster_site_namespace": self.namespace}} | keys
        (self._folder / "site.yml").write_text(yaml.safe_dump(site), encoding="utf-8")
        secrets = {
            "platform_token": self.platform.token(),
            "platform_engine_token": "secret-of-the-engine",
            "platform_engine_kubeconfig": "apiVersion: v1\nkind: Config\ncurrent-context: secret-context\n",
            "platform_webhook_token": "secret-of-webhooks",
        }
        (self._folder / "secrets.yml").write_text(yaml.safe_dump(secrets), encoding="utf-8")

    def play(self, *options: str) -> tuple[int, str]:
        """Run the playbook; its exit code and its output, which contains no secret."""
        self.platform.requests.clear()
        command = [str(Path(sys.executable).parent / "ansible-playbook"), "openfleet.clusters.configure_platform", "-vvv"]
        command += ["-e", "platform_site_file=site.yml", "-e", "@secrets.yml", *options]
        done = subprocess.run(
            command, cwd=self._folder, env=self.environment, capture_output=True, text=True, check=False, timeout=RUN_SECONDS
        )
        output = done.stdout + done.stderr
        assert not re.search(r"secret-of-|secret-context", output)
        return done.returncode, output


@pytest.fixture
def configuration(quick_hub: Access, tmp_path: Path) -> Iterator[Configuration]:
    with fresh_namespace(quick_hub) as namespace:
        yield Configuration(quick_hub, namespace, tmp_path)


def test_platform_is_planned_configured_proven_by_a_job_and_removed(configuration: Configuration) -> None:
    platform = configuration.platform
    with platform.serving() as url:
        configuration.write(url)
        code, output = configuration.play("--check")
        assert code == 0, output
        assert re.search(r"create +controller_templates +openfleet-create-cluster", output), output
        assert platform.writes() == []
        assert platform.launches == []

        code, output = configuration.play()
        assert code == 0, output
        assert [(launch.template, launch.sent["job_type"], launch.ignored) for launch in platform.launches] == [
            ("openfleet-sync-status", "check", {})
        ]
        assert "Update the status of the orders" in output.partition("Show the output of the job")[2]
        states = {activation["name"]: activation["status"] for activation in platform.objects("activations")}
        assert states == {"openfleet-cluster-fulfillment": "running", "openfleet-webhooks": "running"}

        code, output = configuration.play()
        assert code == 0, output
        launches = [write for write in platform.writes() if write.endswith("/launch/")]
        assert platform.writes() == launches
        assert len(launches) == 1

        code, output = configuration.play("-e", "platform_state=absent")
        assert code == 0, output
        for kind in ("job_templates", "workflow_job_templates", "credentials", "activations", "projects"):
            assert platform.objects(kind) == [], kind
        assert len(platform.launches) == 2


def test_failed_proof_fails_the_run_with_the_output_of_the_job(configuration: Configuration, tmp_path: Path) -> None:
    with configuration.platform.serving() as url:
        configuration.write(url, webhooks=False, hub={"secret": "openfleet-hub", "kubeconfig": str(tmp_path / "no-such-file")})
        code, output = configuration.play()
        assert code == 2
        assert re.search(r"Job \d+ of openfleet-sync-status is failed", output), output
        assert configuration.play("-e", "platform_state=absent")[0] == 0


def test_mistake_in_the_site_file_is_named_before_the_platform_is_asked(configuration: Configuration) -> None:
    configuration.write("https://platform.example.com", organisation="x")
    code, output = configuration.play()
    assert code == 2
    assert "key organisation is not known to this site file (did you mean organization?)" in output
