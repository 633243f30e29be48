"""The stand-in for OpenShift Cluster Manager as a process of its own, for molecule, which needs it in several commands.

`python -m tests.integration.support.ocm_process FILE` starts it and returns when it serves. FILE then has its address
and a token. The process ends when FILE is deleted. Requests and answers that the service's description does not allow
are listed in a file beside FILE, with the suffix `.violations`.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from .background import announce, start
from .ocm_standin import OFFLINE_TOKEN, TOKEN_PATH, OcmStandIn


def serve(file: Path) -> None:
    with OcmStandIn(hurried=True) as service:
        service.after = lambda _request: note(service, file.with_suffix(".violations"))
        threading.Thread(target=service.serve_forever, daemon=True).start()
        announce(file, {"url": service.url, "token_url": f"{service.url}{TOKEN_PATH}", "token": OFFLINE_TOKEN})
        service.over.set()
        service.shutdown()


def note(service: OcmStandIn, file: Path) -> None:
    if service.violations:
        file.write_text("\n".join(service.violations), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(Path(sys.argv[2]))
    else:
        start(__spec__.name, Path(sys.argv[1]))
