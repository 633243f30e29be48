"""A stand-in for the API of Automation Platform's controller: what ansible-rulebook asks of it, with real playbook runs as jobs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

PROMPTS = {f"ask_{what}_on_launch": True for what in ("limit", "labels", "inventory", "variables")}


class Platform:
    """Launches the playbook of a template's name. The next `lose_answers` launches start a job and are answered with 502."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self.launches: list[dict[str, Any]] = []
        self.lose_answers = 0
        self._jobs: list[subprocess.Popen[bytes]] = []
        self._labels: list[str] = []
        self._environment = dict(environment)
        self._folder = folder

    @contextmanager
    def serving(self) -> Iterator[str]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield self.url
        finally:
            server.shutdown()
            server.server_close()
            for job in self._jobs:
                job.kill()
                job.wait()

    def labels_of(self, job: int) -> list[str]:
        return [self._labels[number - 1] for number in self.launches[job - 1].get("labels", [])]

    def answer(self, method: str, path: str, query: Mapping[str, list[str]], body: Any) -> tuple[int, Any]:
        if path.endswith("/config/"):
            return 200, {"version": "4.6.0"}
        if path.endswith("/organizations/"):
            return 200, _page([{"id": 1, "name": "Default"}])
        if path.endswith("/labels/"):
            return self._label(method, query, body)
        if path.endswith("/unified_job_templates/"):
            return 200, _page([_template(kind, query["name"][0]) for kind in ("job_template", "workflow_job_template")])
        if found := re.search(r"/(workflow_)?job_templates/([\w-]+)/launch/", path):
            return self._launch(found[1] or "", found[2], body)
        if found := re.search(r"/(workflow_)?jobs/", path):
            numbers = [int(part) for part in query["id__in"][0].split(",")]
            return 200, _page([self._job(found[1] or "", number) for number in numbers])
        return 404, {}

    def _label(self, method: str, query: Mapping[str, list[str]], body: Any) -> tuple[int, Any]:
        if method == "POST":
            self._labels.append(body["name"])
        name = body["name"] if method == "POST" else query["name"][0]
        found = [{"id": self._labels.index(name) + 1, "name": name}] if name in self._labels else []
        return (201, found[0]) if method == "POST" else (200, _page(found))

    def _launch(self, kind: str, template: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.launches.append(body | {"template": template, "workflow": bool(kind)})
        number = len(self.launches)
        variables = body["extra_vars"] | {"awx_job_id": number}
        playbook = f"openfleet.clusters.{template.removeprefix('openfleet-').replace('-', '_')}"
        program = str(Path(sys.executable).parent / "ansible-playbook")
        command = [program, playbook, "-e", json.dumps(variables), "-l", body["limit"]]
        with open(self._folder / f"job-{number}.log", "wb") as log:
            environment = self._environment | {"AWX_HOST": self.url}
            self._jobs.append(subprocess.Popen(command, env=environment, cwd=self._folder, stdout=log, stderr=log))
        if self.lose_answers:
            self.lose_answers -= 1
            return 502, {}
        return 201, self._job(kind, number)

    def _job(self, kind: str, number: int) -> dict[str, Any]:
        code = self._jobs[number - 1].poll()
        status = "running" if code is None else "failed" if code else "successful"
        url = f"/api/v2/{kind}jobs/{number}/"
        return {"id": number, "url": url, "status": status, "created": "2026-01-01T00:00:00Z", "artifacts": {}}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        platform, turn = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def handle_one(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                address = urlsplit(self.path)
                with turn:
                    code, answer = platform.answer(self.command, address.path, parse_qs(address.query), json.loads(body or b"null"))
                content = json.dumps(answer).encode()
                self.send_response_only(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = handle_one  # noqa: N815 - named by http.server

            def log_message(self, *_arguments: Any) -> None:
                """Tests read `launches` instead."""

        return Handler


def _page(results: list[Any]) -> dict[str, Any]:
    return {"count": len(results), "results": results, "next": None}


def _template(kind: str, name: str) -> dict[str, Any]:
    related = {"launch": f"/api/v2/{kind}s/{name}/launch/"}
    return {"id": name, "type": kind, "name": name, "summary_fields": {"organization": {"name": "Default"}}, "related": related} | PROMPTS


def environment_of(engine_environment: Mapping[str, str]) -> dict[str, str]:
    """What a job runs with: as the engine, without what marks its processes."""
    return {key: value for key, value in {**os.environ, **engine_environment}.items() if not key.startswith("OPENFLEET_TEST")}
