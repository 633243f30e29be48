# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""GitLab."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import MAX_PAGES, File, Forge, PullRequest, decoded, quoted, text_of

PAGE = 100
BRANCH_EXISTS = 400  # also what GitLab answers to other mistakes; what follows then finds no branch


class GitLab(Forge):
    """A project of GitLab, by version 4 of its API. Its pull requests are merge requests."""

    @property
    def _root(self) -> str:
        return f"{self._credentials.url.rstrip('/')}/api/v4/projects/{quoted(self._credentials.repository)}"

    @property
    def _login(self) -> Mapping[str, str]:
        return {"PRIVATE-TOKEN": self._credentials.token}

    def files(self, path: str, ref: str) -> list[str]:
        found: list[str] = []
        for page in range(1, MAX_PAGES + 1):
            query = {"path": path, "ref": ref, "recursive": "true", "per_page": PAGE, "page": page}
            answer = self._call("GET", "/repository/tree", allowed=(404,), query=query)
            listed = decoded(answer) if answer.status == 200 else []
            found += [item["path"] for item in listed if item.get("type") == "blob"]
            if len(listed) < PAGE:
                break
        return found

    def file(self, path: str, ref: str) -> File | None:
        answer = self._call("GET", f"/repository/files/{quoted(path)}", allowed=(404,), query={"ref": ref})
        item = decoded(answer) if answer.status == 200 else None
        return File(text_of(item["content"]), item["last_commit_id"]) if item else None

    def create_branch(self, name: str, base: str) -> None:
        self._call("POST", "/repository/branches", {"branch": name, "ref": base}, allowed=(BRANCH_EXISTS,))

    def write(self, path: str, content: str | None, before: File | None, branch: str, message: str) -> None:
        action: dict[str, Any] = {"action": "delete" if content is None else "update" if before else "create", "file_path": path}
        action |= {} if content is None else {"content": content}
        action |= {"last_commit_id": before.revision} if before else {}
        self._call("POST", "/repository/commits", {"branch": branch, "commit_message": message, "actions": [action]})

    def find_pull_request(self, head: str, base: str) -> PullRequest | None:
        found = decoded(self._call("GET", "/merge_requests", query={"state": "opened", "source_branch": head, "target_branch": base}))
        return PullRequest(found[0]["iid"], found[0]["web_url"]) if found else None

    def open_pull_request(self, head: str, base: str, title: str, body: str) -> PullRequest | None:
        wanted = {"source_branch": head, "target_branch": base, "title": title, "description": body, "remove_source_branch": True}
        answer = self._call("POST", "/merge_requests", wanted, allowed=(409,))
        item = decoded(answer) if answer.status != 409 else None
        return PullRequest(item["iid"], item["web_url"]) if item else None
