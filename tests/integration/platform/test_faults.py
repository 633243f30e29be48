"""A platform that is overloaded, that breaks, or whose answers are lost: a run completes, and creates nothing twice."""

from __future__ import annotations

import random
import time

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.faults import Fault
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.sample import document
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import Platform
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError

from ..support.platform_documents import content_of
from ..support.platform_runs import Runs

COLLECTIONS = ("credentials", "projects", "job_templates", "schedules", "eda-credentials", "activations")
READ = (*COLLECTIONS, "organizations", "rulebooks")
WRITTEN = (
    *COLLECTIONS,
    "workflow_job_template_nodes",
    r"job_templates/\d+/labels",
    r"job_templates/\d+/credentials",
    r"job_templates/\d+/survey_spec",
)


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Back off for a moment only: how long is tested with the client."""
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: sleep(min(seconds, 0.01)))


@pytest.fixture(scope="module")
def wanted() -> list[str]:
    platform = Platform(gateway=True)
    with pytest.MonkeyPatch.context() as patch, platform.serving() as url:
        patch.setattr(time, "sleep", lambda _seconds: None)
        Runs(platform, url).run(document())
    return content_of(platform)


@pytest.mark.parametrize("how", ["429", "502", "503", "504", "lost", "done-502"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_run_completes_although_each_kind_of_request_fails_once(runs: Runs, wanted: list[str], how: str, method: str) -> None:
    runs.platform.faults += [Fault(how, method, f"/v[12]/{path}/$") for path in (READ if method == "GET" else WRITTEN)]
    runs.run(document())
    assert content_of(runs.platform) == wanted
    assert [fault.path for fault in runs.platform.faults if fault.times] == [], "every fault was met"


def test_runs_complete_with_faults_at_any_request(wanted: list[str], soak: int) -> None:
    for _round in range(2 * soak):
        platform = Platform(gateway=True)
        platform.after = lambda _request, platform=platform: _perhaps(platform)
        with platform.serving() as url:
            runs = Runs(platform, url)
            _run_until_done(runs)
            platform.after = lambda _request: None
            platform.faults.clear()
            runs.run(document())
            assert content_of(platform) == wanted
            runs.remove()
            assert not [line for line in content_of(platform) if "acme" in line]


def _perhaps(platform: Platform) -> None:
    if random.random() < 0.05:  # noqa: S311 - keeps no secret
        platform.faults.append(Fault(random.choice(["429", "503", "lost", "done-502", "dead"])))  # noqa: S311 - the same


def _run_until_done(runs: Runs, attempts: int = 20) -> None:
    """Run until one run ends without an error; the others end with one that is worth another attempt."""
    for _attempt in range(attempts):
        try:
            runs.run(document())
        except KubeError as error:
            assert error.retryable, error
        else:
            return
    raise AssertionError(f"no run of {attempts} ended without an error")
