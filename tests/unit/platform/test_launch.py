"""A job from its launch to its output, against the stand-in for the platform, whose jobs are commands here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.jobs import Run
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import Platform
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid, NotFound
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.client import Access, PlatformApi
from ansible_collections.openfleet.clusters.plugins.module_utils.platform.launch import JobFailed, run_job

Runner = Callable[[Run], "subprocess.Popen[bytes]"]


def command(code: int) -> Runner:
    """A job that shows whether it is a check, and ends with this exit code."""

    def run(run: Run) -> subprocess.Popen[bytes]:
        script = f"print('check' if {run.check} else 'run'); raise SystemExit({code})"
        with open(run.log, "wb") as log:
            return subprocess.Popen([sys.executable, "-c", script], stdout=log, stderr=log)

    return run


@contextmanager
def platform(tmp_path: Path, code: int = 0, **template: Any) -> Iterator[tuple[Platform, PlatformApi]]:
    """A platform with the job template `sync`."""
    standin = Platform(gateway=True, folder=tmp_path, runner=command(code))
    with standin.serving() as url:
        api = PlatformApi(Access(url, token=standin.token()), 60)

        def create(path: str, **body: Any) -> int:
            return int(api.post("controller", path, path, body)["id"])

        project = create("projects", name="project", organization=1, scm_type="git", scm_url="https://git.example.com/a.git")
        inventory = create("inventories", name="inventory", organization=1)
        fields = {"name": "sync", "project": project, "inventory": inventory, "playbook": "playbooks/sync_status.yml"}
        create("job_templates", **(fields | template))
        yield standin, api


def test_job_runs_in_check_mode_and_its_output_is_returned(tmp_path: Path) -> None:
    with platform(tmp_path, ask_job_type_on_launch=True) as (standin, api):
        job = run_job(api, "sync", "Default", {"job_type": "check", "limit": None, "extra_vars": {}}, sleep=lambda _seconds: None)
        assert (job.status, job.output) == ("successful", "check\n")
        assert [launch.sent for launch in standin.launches] == [{"job_type": "check"}]


def test_job_that_fails_is_reported_with_the_end_of_its_output(tmp_path: Path) -> None:
    with platform(tmp_path, code=2) as (_standin, api), pytest.raises(JobFailed, match=r"Job \d+ of sync is failed: .*ends with:\nrun"):
        run_job(api, "sync", "Default", {}, sleep=lambda _seconds: None)


@pytest.mark.parametrize(
    ("given", "prompt"), [({"job_type": "check"}, "job_type"), ({"limit": "a"}, "limit"), ({"extra_vars": {"a": 1}}, "variables")]
)
def test_what_the_template_does_not_prompt_for_is_refused_before_the_launch(tmp_path: Path, given: dict[str, Any], prompt: str) -> None:
    with platform(tmp_path) as (standin, api):
        with pytest.raises(Invalid, match=f"set ask_{prompt}_on_launch"):
            run_job(api, "sync", "Default", given)
        assert not standin.launches


def test_unknown_template_is_named_with_its_organization(tmp_path: Path) -> None:
    with platform(tmp_path) as (_standin, api), pytest.raises(NotFound, match="no job template other in the organization Default"):
        run_job(api, "other", "Default", {})
