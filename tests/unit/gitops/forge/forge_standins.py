"""Stand-ins for the APIs of Gitea, GitHub and GitLab: one repository in memory, which answers as these forges are documented to.

Each knows only what the adapters use. The real Gitea is in tests/integration/gitops.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ..http_server import Reply, Request

TOKEN = "t0ken-do-not-show"  # noqa: S105
NAME = "platform/clusters"


@dataclass
class Repository:
    """Branches with their files, and open pull requests as (head, base, title)."""

    branches: dict[str, dict[str, str]] = field(default_factory=lambda: {"main": {}})
    pulls: list[dict[str, Any]] = field(default_factory=list)
    writes: int = 0

    def merge(self, number: int) -> None:
        pull = next(item for item in self.pulls if item["number"] == number)
        pull["open"] = False
        self.branches[pull["base"]] = dict(self.branches[pull["head"]])

    def close(self, number: int) -> None:
        next(item for item in self.pulls if item["number"] == number)["open"] = False

    def opened(self, head: str = "", base: str = "") -> list[dict[str, Any]]:
        return [item for item in self.pulls if item["open"] and head in ("", item["head"]) and base in ("", item["base"])]

    def open(self, head: str, base: str, title: str) -> dict[str, Any] | None:
        if self.opened(head, base):
            return None
        self.pulls.append({"number": len(self.pulls) + 1, "head": head, "base": base, "title": title, "open": True})
        return self.pulls[-1]

    def write(self, branch: str, path: str, content: str | None) -> None:
        self.writes += 1
        if content is None:
            del self.branches[branch][path]
        else:
            self.branches[branch][path] = content


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def reply(document: Any, status: int = 200) -> Reply:
    return Reply(status, json.dumps(document).encode(), {"Content-Type": "application/json"})


@dataclass
class Call:
    """A request, taken apart."""

    method: str
    path: str
    query: dict[str, str]
    body: Any


class StandIn(ABC):
    """Answers for one repository. `fails` answers before anything else, if it returns something."""

    root = ""
    header, scheme = "authorization", ""

    def __init__(self) -> None:
        self.repository = Repository()
        self.fails: Callable[[Request], Reply | None] = lambda _request: None

    def __call__(self, request: Request) -> Reply:
        if failure := self.fails(request):
            return failure
        if request.headers.get(self.header) != f"{self.scheme}{TOKEN}":
            return reply({"message": "bad credentials"}, 401)
        parts = urlsplit(request.path)
        if not parts.path.startswith(self.root):
            return reply({"message": "not found"}, 404)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        call = Call(request.method, parts.path.removeprefix(self.root), query, json.loads(request.body) if request.body else None)
        return self.answer(call)

    @abstractmethod
    def answer(self, call: Call) -> Reply:
        """The answer to a call of the API."""


class _WithContents(StandIn):
    """What Gitea and GitHub have in common."""

    conflict = 409

    def answer(self, call: Call) -> Reply:
        repository = self.repository
        if found := re.fullmatch(r"/contents/(.+)", call.path):
            return self._contents(call, unquote(found[1]))
        if found := re.fullmatch(r"/git/trees/(.+)", call.path):
            paths = repository.branches.get(unquote(found[1]))
            if paths is None:
                return reply({}, 404)
            return reply(
                {"tree": [{"path": "orders", "type": "tree"}, *({"path": path, "type": "blob"} for path in paths)], "truncated": False}
            )
        if call.path == "/pulls" and call.method == "POST":
            created = repository.open(call.body["head"], call.body["base"], call.body["title"])
            return reply(self.pull(created), 201) if created else reply({"message": "already exists"}, self.conflict)
        return self.special(call)

    @abstractmethod
    def special(self, call: Call) -> Reply:
        """The answer to a call that the other forge does not have."""

    def pull(self, item: dict[str, Any]) -> dict[str, Any]:
        return {
            "number": item["number"],
            "html_url": f"https://forge.example.com/{NAME}/pulls/{item['number']}",
            "head": {"ref": item["head"]},
            "base": {"ref": item["base"]},
        }

    def _contents(self, call: Call, path: str) -> Reply:
        branch = (call.body or call.query).get("branch") or call.query.get("ref", "main")
        files = self.repository.branches.get(branch)
        present = (files or {}).get(path)
        if call.method == "GET":
            if files is None or present is None:
                return reply({"message": "not found"}, 404)
            return reply({"content": base64.encodebytes(present.encode()).decode(), "sha": sha(present)})
        if present is not None and call.body.get("sha") != sha(present):
            return reply({"message": "sha does not match"}, 409)
        content = None if call.method == "DELETE" else base64.b64decode(call.body["content"]).decode()
        self.repository.write(branch, path, content)
        return reply({}, 201 if present is None else 200)


class GiteaStandIn(_WithContents):
    root = f"/api/v1/repos/{NAME}"
    scheme = "token "

    def special(self, call: Call) -> Reply:
        if call.path == "/branches":
            name = call.body["new_branch_name"]
            if name in self.repository.branches:
                return reply({"message": "exists"}, 409)
            if call.body["old_branch_name"] not in self.repository.branches:
                return reply({}, 404)
            self.repository.branches[name] = dict(self.repository.branches[call.body["old_branch_name"]])
            return reply({}, 201)
        if call.path == "/pulls":
            start = (int(call.query["page"]) - 1) * int(call.query["limit"])
            return reply([self.pull(item) for item in self.repository.opened()][start : start + int(call.query["limit"])])
        return reply({}, 404)


class GitHubStandIn(_WithContents):
    root = f"/api/v3/repos/{NAME}"
    scheme = "Bearer "
    conflict = 422

    def special(self, call: Call) -> Reply:
        if found := re.fullmatch(r"/git/ref/heads/(.+)", call.path):
            return reply({"object": {"sha": f"commit-of-{found[1]}"}}) if found[1] in self.repository.branches else reply({}, 404)
        if call.path == "/git/refs":
            name, base = call.body["ref"].removeprefix("refs/heads/"), call.body["sha"].removeprefix("commit-of-")
            if name in self.repository.branches:
                return reply({"message": "Reference already exists"}, 422)
            self.repository.branches[name] = dict(self.repository.branches[base])
            return reply({}, 201)
        if call.path == "/pulls":
            owner, _colon, head = call.query["head"].partition(":")
            assert owner == NAME.split("/", maxsplit=1)[0]
            return reply([self.pull(item) for item in self.repository.opened(head, call.query["base"])])
        return reply({}, 404)


class GitLabStandIn(StandIn):
    root = f"/api/v4/projects/{NAME.replace('/', '%2F')}"
    header = "private-token"

    def answer(self, call: Call) -> Reply:
        repository = self.repository
        if found := re.fullmatch(r"/repository/files/([^/]+)", call.path):
            text = repository.branches.get(call.query["ref"], {}).get(unquote(found[1]))
            if text is None:
                return reply({"message": "404 File Not Found"}, 404)
            return reply({"content": base64.b64encode(text.encode()).decode(), "last_commit_id": sha(text)})
        if call.path == "/repository/tree":
            files = repository.branches.get(call.query["ref"], {})
            return reply([{"path": path, "type": "blob"} for path in files if path.startswith(f"{call.query['path']}/")])
        if call.path == "/repository/branches":
            if call.body["branch"] in repository.branches:
                return reply({"message": "Branch already exists"}, 400)
            repository.branches[call.body["branch"]] = dict(repository.branches[call.body["ref"]])
            return reply({}, 201)
        if call.path == "/repository/commits":
            (action,) = call.body["actions"]
            repository.write(call.body["branch"], action["file_path"], action.get("content"))
            return reply({}, 201)
        if call.path == "/merge_requests" and call.method == "POST":
            created = repository.open(call.body["source_branch"], call.body["target_branch"], call.body["title"])
            return reply(self._request(created), 201) if created else reply({"message": ["exists"]}, 409)
        if call.path == "/merge_requests":
            return reply([self._request(item) for item in repository.opened(call.query["source_branch"], call.query["target_branch"])])
        return reply({}, 404)

    def _request(self, item: dict[str, Any]) -> dict[str, Any]:
        return {"iid": item["number"], "web_url": f"https://forge.example.com/{NAME}/-/merge_requests/{item['number']}"}


STAND_INS: dict[str, type[StandIn]] = {"gitea": GiteaStandIn, "github": GitHubStandIn, "gitlab": GitLabStandIn}
