# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Gitea and Forgejo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from .base import MAX_PAGES, File, Forge, PullRequest, decoded, encoded, quoted, text_of

PAGE = 50


class Gitea(Forge):
    """A repository of Gitea or Forgejo, by version 1 of their API."""

    @property
    def _root(self) -> str:
        return f"{self._credentials.url.rstrip('/')}/api/v1/repos/{quote(self._credentials.repository)}"

    @property
    def _login(self) -> Mapping[str, str]:
        return {"Authorization": f"token {self._credentials.token}"}

    def files(self, path: str, ref: str) -> list[str]:
        found: list[str] = []
        for page in range(1, MAX_PAGES + 1):
            tree = decoded(self._call("GET", f"/git/trees/{quoted(ref)}", query={"recursive": "true", "page": page, "per_page": 1000}))
            found += [item["path"] for item in tree.get("tree") or [] if item.get("type") == "blob" and item["path"].startswith(f"{path}/")]
            if not tree.get("truncated"):
                break
        return found

    def file(self, path: str, ref: str) -> File | None:
        answer = self._call("GET", f"/contents/{quote(path)}", allowed=(404,), query={"ref": ref})
        item = decoded(answer) if answer.status == 200 else None
        return File(text_of(item["content"]), item["sha"]) if isinstance(item, dict) else None

    def create_branch(self, name: str, base: str) -> None:
        self._call("POST", "/branches", {"new_branch_name": name, "old_branch_name": base}, allowed=(409,))

    def write(self, path: str, content: str | None, before: File | None, branch: str, message: str) -> None:
        body: dict[str, Any] = {"branch": branch, "message": message} | ({"sha": before.revision} if before else {})
        if content is None:
            self._call("DELETE", f"/contents/{quote(path)}", body)
        else:
            self._call("PUT" if before else "POST", f"/contents/{quote(path)}", body | {"content": encoded(content)})

    def find_pull_request(self, head: str, base: str) -> PullRequest | None:
        for page in range(1, MAX_PAGES + 1):
            listed = decoded(self._call("GET", "/pulls", query={"state": "open", "limit": PAGE, "page": page}))
            for item in listed:
                if (item["head"]["ref"], item["base"]["ref"]) == (head, base):
                    return PullRequest(item["number"], item["html_url"])
            if len(listed) < PAGE:
                break
        return None

    def open_pull_request(self, head: str, base: str, title: str, body: str) -> PullRequest | None:
        answer = self._call("POST", "/pulls", {"head": head, "base": base, "title": title, "body": body}, allowed=(409,))
        item = decoded(answer) if answer.status != 409 else None
        return PullRequest(item["number"], item["html_url"]) if item else None
