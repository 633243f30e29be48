# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""GitHub, and GitHub Enterprise Server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from .base import File, Forge, PullRequest, decoded, encoded, quoted, text_of

PUBLIC, PUBLIC_API = "https://github.com", "https://api.github.com"
EXISTS = 422  # also what GitHub answers to other mistakes; what follows then finds nothing


class GitHub(Forge):
    """A repository of GitHub, by its REST API."""

    @property
    def _root(self) -> str:
        url = self._credentials.url.rstrip("/")
        return f"{PUBLIC_API if url == PUBLIC else f'{url}/api/v3'}/repos/{quote(self._credentials.repository)}"

    @property
    def _login(self) -> Mapping[str, str]:
        return {
            "Authorization": f"Bearer {self._credentials.token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }

    def files(self, path: str, ref: str) -> list[str]:
        tree = decoded(self._call("GET", f"/git/trees/{quoted(ref)}", query={"recursive": "1"})).get("tree") or []
        return [item["path"] for item in tree if item.get("type") == "blob" and item["path"].startswith(f"{path}/")]

    def file(self, path: str, ref: str) -> File | None:
        answer = self._call("GET", f"/contents/{quote(path)}", allowed=(404,), query={"ref": ref})
        item = decoded(answer) if answer.status == 200 else None
        return File(text_of(item["content"]), item["sha"]) if isinstance(item, dict) else None

    def create_branch(self, name: str, base: str) -> None:
        commit = decoded(self._call("GET", f"/git/ref/heads/{quote(base)}"))["object"]["sha"]
        self._call("POST", "/git/refs", {"ref": f"refs/heads/{name}", "sha": commit}, allowed=(EXISTS,))

    def write(self, path: str, content: str | None, before: File | None, branch: str, message: str) -> None:
        body: dict[str, Any] = {"branch": branch, "message": message} | ({"sha": before.revision} if before else {})
        if content is None:
            self._call("DELETE", f"/contents/{quote(path)}", body)
        else:
            self._call("PUT", f"/contents/{quote(path)}", body | {"content": encoded(content)})

    def find_pull_request(self, head: str, base: str) -> PullRequest | None:
        owner = self._credentials.repository.partition("/")[0]
        found = decoded(self._call("GET", "/pulls", query={"state": "open", "head": f"{owner}:{head}", "base": base}))
        return PullRequest(found[0]["number"], found[0]["html_url"]) if found else None

    def open_pull_request(self, head: str, base: str, title: str, body: str) -> PullRequest | None:
        answer = self._call("POST", "/pulls", {"head": head, "base": base, "title": title, "body": body}, allowed=(EXISTS,))
        item = decoded(answer) if answer.status != EXISTS else None
        return PullRequest(item["number"], item["html_url"]) if item else None
