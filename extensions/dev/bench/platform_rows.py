"""What it costs to find that nothing of a document has changed on Automation Platform: by our module, and by one of awx.awx an object."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ...sandbox.access import Access
from ...sandbox.platform.sample import as_usual, document
from ...sandbox.platform.standin import Platform
from ...sandbox.sandbox import Sandbox
from ...sandbox.screen import UserError
from .timing import Row, at_most, ratio, seconds, timed

TEMPLATES = 30
REQUESTS = 20
PLAYBOOK = Path(__file__).with_name("usual_platform.yml")
MODULE = "openfleet.clusters.platform_configuration"
NAMESPACE = "bench-platform"


def unchanged_platform(load: Sandbox) -> Iterator[Row]:
    """Our module writes the document. Then it, and the modules of awx.awx, find that nothing has changed."""
    Access(load.kubeconfig()).kubectl("create", "namespace", NAMESPACE)
    platform, content = Platform(), document(TEMPLATES)
    with platform.serving() as url:
        given = {"aap_hostname": url, "aap_token": platform.token(), "document": content, "site_namespace": NAMESPACE}
        given["kubeconfig"] = str(load.kubeconfig())
        ours = ["ansible", "localhost", "-m", MODULE, "-a", json.dumps(given)]
        with timed(f"{TEMPLATES} templates on Automation Platform: the first run"):
            run(ours)
        before = len(platform.requests)
        with timed(f"{TEMPLATES} templates on Automation Platform: the second run") as time:
            run(ours)
        requests = len(platform.requests) - before
        variables = {"url": url, "token": given["aap_token"], "document": as_usual(content)}
        with timed(f"{TEMPLATES} templates on Automation Platform: the second run by awx.awx") as usual_time:
            run(["ansible-playbook", str(PLAYBOOK), "-e", json.dumps(variables)])
        usual_requests = len(platform.requests) - before - requests
    what = f"{TEMPLATES} templates on Automation Platform, unchanged"
    times = f"{requests / usual_requests:.2f} x"
    yield Row(f"{what}: requests", f"{requests}", f"{usual_requests} by awx.awx", times, at_most(requests, REQUESTS, "requests"))
    yield Row(f"{what}: time", seconds(time), f"{seconds(usual_time)} by awx.awx", ratio(time, usual_time))


def run(command: list[str]) -> None:
    programs = Path(sys.executable).parent
    environment = os.environ | {"ANSIBLE_COLLECTIONS_PATH": str(Path(sys.prefix) / "collections"), "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run([str(programs / command[0]), *command[1:]], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"{command[0]} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
