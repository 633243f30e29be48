"""Jobs as real runs: ansible-playbook on this machine, where Automation Platform would start a container."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from .jobs import Run


class PlaybookRunner:
    """Runs the playbooks of one checkout. `environment` is what the image of a site would provide."""

    def __init__(self, checkout: Path, environment: Mapping[str, str]) -> None:
        self._checkout = checkout
        self.environment = dict(environment)

    def __call__(self, run: Run) -> subprocess.Popen[bytes]:
        program = str(Path(sys.executable).parent / "ansible-playbook")
        command = [program, str(self._checkout / run.playbook), "-e", json.dumps(run.extra_vars)]
        command += ["--limit", run.limit] if run.limit else []
        command += ["--check"] if run.check else []
        environment = {**self.environment, **run.environment, "AWX_HOST": run.host, "JOB_ID": str(run.job)}
        with open(run.log, "wb") as log:
            return subprocess.Popen(command, env=environment, cwd=run.log.parent, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
