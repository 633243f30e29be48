"""A DNS server as a process of its own, for molecule, which needs it in several commands.

`python -m tests.integration.support.name_server_process FILE` starts it and returns when it serves. FILE then has its port and its key.
The process ends when FILE is deleted. With names after FILE, it prints the addresses that the server has for them, one name a line.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from .background import announce, start
from .name_server import KEY_NAME, NameServer, name_server


def serve(file: Path) -> None:
    with tempfile.TemporaryDirectory(dir=file.parent) as folder, name_server(Path(folder)) as server:
        announce(file, {"port": server.port, "key": server.key, "key_name": KEY_NAME})


def ask(file: Path, *names: str) -> None:
    known = json.loads(file.read_text(encoding="utf-8"))
    server = NameServer(known["port"], known["key"])
    for name in names:
        print(" ".join(sorted(server.values(name))))


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(Path(sys.argv[2]))
    elif len(sys.argv) > 2:
        ask(Path(sys.argv[1]), *sys.argv[2:])
    else:
        start(__spec__.name, Path(sys.argv[1]))
