"""A Helm repository on this machine: a folder with an index and archives, and an HTTP server for it."""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        pass


@dataclass
class ChartFolder:
    """The charts in a folder."""

    url: str
    folder: Path
    _entries: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def publish(self, name: str, version: str, schema: dict[str, Any] | None = None, **annotations: Any) -> None:
        """Add a version, with annotations of ours without their prefix."""
        metadata = {"apiVersion": "v2", "name": name, "version": version, "description": f"{name} of a test"}
        metadata |= {"annotations": {f"openfleet.clusters/{key}": json.dumps(value) for key, value in annotations.items()}}
        files = {"Chart.yaml": yaml.safe_dump(metadata)} | ({"values.schema.json": json.dumps(schema)} if schema else {})
        plain = io.BytesIO()
        with tarfile.open(fileobj=plain, mode="w") as archive:
            for path, text in files.items():
                member = tarfile.TarInfo(f"{name}/{path}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
        content = gzip.compress(plain.getvalue(), mtime=0)
        file = f"{name}-{version}.tgz"
        (self.folder / file).write_bytes(content)
        entry = metadata | {"urls": [file], "digest": hashlib.sha256(content).hexdigest()}
        self._entries.setdefault(name, []).append(entry)
        index = yaml.safe_dump({"apiVersion": "v1", "entries": self._entries})
        (self.folder / "index.yaml").write_text(index, encoding="utf-8")


@contextlib.contextmanager
def chart_folder(folder: Path) -> Iterator[ChartFolder]:
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield ChartFolder(f"http://127.0.0.1:{server.server_port}", folder)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
