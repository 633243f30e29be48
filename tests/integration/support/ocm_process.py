"""The stand-in for OpenShift Cluster Manager as a process of its own, for molecule, which needs it in several commands.

`python -m tests.integration.support.ocm_process FILE` starts it and returns when it serves. FILE then has its address
and a token. The process ends when FILE is deleted. Requests and answers that the service's description does not allow
are listed in a file beside FILE, with the suffix `.violations`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

from ansible_collections.openfleet.clusters.extensions.sandbox.access import until

from .ocm_standin import OFFLINE_TOKEN, TOKEN_PATH, OcmStandIn

POLL_SECONDS = 0.2


def start(file: Path) -> None:
    log = file.with_suffix(".log")
    command = [sys.executable, "-m", __spec__.name, "--serve", file]
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
    until(lambda: file.exists() or process.poll() is not None, "the stand-in serves")
    if process.poll() is not None:
        sys.exit(log.read_text(encoding="utf-8"))


def serve(file: Path) -> None:
    with OcmStandIn(hurried=True) as service:
        service.after = lambda _request: note(service, file.with_suffix(".violations"))
        threading.Thread(target=service.serve_forever, daemon=True).start()
        # Renamed, so that no reader finds half of it.
        part = file.with_suffix(".part")
        part.write_text(json.dumps({"url": service.url, "token_url": f"{service.url}{TOKEN_PATH}", "token": OFFLINE_TOKEN}))
        part.rename(file)
        while file.exists():
            time.sleep(POLL_SECONDS)
        service.over.set()
        service.shutdown()


def note(service: OcmStandIn, file: Path) -> None:
    if service.violations:
        file.write_text("\n".join(service.violations), encoding="utf-8")


if __name__ == "__main__":
    (serve if sys.argv[1] == "--serve" else start)(Path(sys.argv[-1]))
