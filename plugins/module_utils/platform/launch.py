# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One job of a job template, from its launch to its output. What a template does not prompt for is refused: the platform would drop it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ..common.types import Object
from ..kube.errors import Invalid, NotFound
from .client import PlatformApi
from .errors import PlatformError

POLL_SECONDS = 2.0
ENDED = ("successful", "failed", "error", "canceled")
# What a launch can set, and the prompt of the template for it.
PROMPTS = {"job_type": "job_type", "limit": "limit", "extra_vars": "variables"}


class JobFailed(PlatformError):
    """A job did not succeed. The text ends with the last lines of its output."""


@dataclass(frozen=True)
class Job:
    """A job that succeeded, or that the deadline found running."""

    id: int
    status: str
    url: str
    output: str = field(repr=False)


def run_job(api: PlatformApi, template: str, organization: str, given: Object, sleep: Callable[[float], None] = time.sleep) -> Job:
    """Launch a template with what is `given` (job_type, limit, extra_vars), and wait for the end of the job.

    The time is that of the connection. JobFailed unless the job is successful.
    """
    found = _template(api, template, organization)
    given = {name: value for name, value in given.items() if value}
    if missing := [name for name in given if not found.get(f"ask_{PROMPTS[name]}_on_launch")]:
        prompts = ", ".join(f"ask_{PROMPTS[name]}_on_launch" for name in missing)
        raise Invalid(f"The job template {template} does not prompt for {', '.join(missing)}: set {prompts}.", [])
    # A second job in check mode does no harm.
    launched = api.post(
        "controller", f"job_templates/{found['id']}/launch", f"launch {template}", given, repeatable=given.get("job_type") == "check"
    )
    job = _wait(api, int(launched["id"]), template, sleep)
    stdout = api.request("controller", "GET", f"jobs/{job['id']}/stdout/", f"read the output of {template}", query={"format": "json"})
    result = Job(int(job["id"]), str(job["status"]), str(job.get("url", "")), str(stdout.get("content", "")))
    if result.status != "successful":
        last = "\n".join(result.output.splitlines()[-20:]) or str(job.get("job_explanation") or job.get("result_traceback") or "")
        raise JobFailed(f"Job {result.id} of {template} is {result.status}: see its output in the platform. It ends with:\n{last}")
    return result


def _template(api: PlatformApi, name: str, organization: str) -> Object:
    query = {"name": name, "organization__name": organization}
    found = api.list_all("controller", "job_templates", f"find the job template {name}", query)
    if not found:
        raise NotFound(f"There is no job template {name} in the organization {organization}.")
    return found[0]


def _wait(api: PlatformApi, job: int, template: str, sleep: Callable[[float], None]) -> Object:
    while True:
        found = api.get("controller", f"jobs/{job}", f"read job {job} of {template}")
        # The output is complete only after that.
        if found.get("status") in ENDED and found.get("event_processing_finished", True):
            return found
        sleep(min(POLL_SECONDS, api.seconds_left()))
