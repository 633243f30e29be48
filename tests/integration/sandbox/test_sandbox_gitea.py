"""Gitea in the sandbox: a pull request is opened, seen and merged through its API, and git has the result."""

from __future__ import annotations

import base64

from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.access import Gitea


def test_a_pull_request_is_opened_and_merged(gitea: Gitea) -> None:
    gitea.create_repository("orders")
    path = f"/repos/{gitea.username}/orders"
    change = {"branch": "main", "new_branch": "more", "message": "Add an order", "content": base64.b64encode(b"kind: Order\n").decode()}
    gitea.call("POST", f"{path}/contents/orders/dev.yaml", change)
    opened = gitea.call("POST", f"{path}/pulls", {"base": "main", "head": "more", "title": "Add an order"})
    assert opened["state"] == "open"
    gitea.merge(f"{gitea.username}/orders", opened["number"])
    merged = gitea.call("GET", f"{path}/contents/orders/dev.yaml?ref=main")
    assert base64.b64decode(merged["content"]) == b"kind: Order\n"
