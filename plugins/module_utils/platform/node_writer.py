# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Nodes of a workflow, written as a comparison says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..common.types import Object
from .client import PlatformApi
from .document import NODE
from .idempotent import associate, once
from .nodes import NodeChanges


class NodeWriter:
    """`filled` replaces references in a body by ids."""

    def __init__(self, api: PlatformApi, filled: Callable[[Any], Any]) -> None:
        self._api = api
        self._filled = filled

    def write(self, nodes: NodeChanges, workflow: int, called: str) -> None:
        """Deletions first: an edge to a deleted node may be part of a cycle."""
        known = dict(nodes.known)
        for name in nodes.delete:
            self._api.delete("controller", f"{NODE.path}/{known.pop(name)}", f"delete node {name} of {called}")
        for node, wanted in nodes.create:
            body = self._body(wanted) | {"identifier": node.identifier, "workflow_job_template": workflow}
            known[node.identifier] = self._create(body, f"create node {node.identifier} of {called}")["id"]
        for name, wanted in nodes.update:
            self._api.patch("controller", f"{NODE.path}/{known[name]}", f"change node {name} of {called}", self._body(wanted))
        for name, approval in nodes.approvals:
            self._approve(known[name], approval, f"create the approval of node {name} of {called}")
        for start, outcome, end in nodes.unlink:
            associate(self._api, f"{NODE.path}/{known[start]}/{outcome}", known[end], f"node {start}", remove=True)
        for start, outcome, end in nodes.link:
            associate(self._api, f"{NODE.path}/{known[start]}/{outcome}", known[end], f"node {start}")

    def _body(self, wanted: Object) -> Object:
        return {name: self._filled(value) for name, value in wanted.items()}

    def _create(self, body: Object, what: str) -> Object:
        def find_created() -> Object | None:
            query = {name: body[name] for name in ("identifier", "workflow_job_template")}
            return next(iter(self._api.list_all("controller", NODE.path, what, query)), None)

        return once(lambda: self._api.post("controller", NODE.path, what, body), find_created)

    def _approve(self, node: int, approval: Object, what: str) -> None:
        body = {"name": approval["name"], "description": approval.get("description", ""), "timeout": approval.get("timeout", 0)}

        def find_created() -> Object | None:
            shown = self._api.get("controller", f"{NODE.path}/{node}", what).get("summary_fields") or {}
            return {} if (shown.get("unified_job_template") or {}).get("name") == body["name"] else None

        once(lambda: self._api.post("controller", f"{NODE.path}/{node}/create_approval_template", what, body), find_created)
