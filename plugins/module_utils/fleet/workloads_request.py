# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A request for the workloads of a cluster, and its answer. It is a Secret like a request for a kubeconfig, and ends like one. Pure.

It is created when a client asks: no hub reads all its clusters again and again for reports that few read.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from dataclasses import dataclass
from typing import Any

from ..common.text import shortened
from ..common.types import Object
from .kinds import hub_namespace
from .kubeconfig_request import ERROR_LIMIT, LABEL, TYPE
from .workloads import from_json

NAME_PREFIX = "workloads-"
WANTED, WORKLOADS = "wanted", "workloads"  # keys of the Secret; the second is the value of the first too


def request_for(hub: str, uid: str) -> Object:
    """The Secret to create; its name is random."""
    metadata = {"name": f"{NAME_PREFIX}{secrets.token_hex(8)}", "namespace": hub_namespace(hub), "labels": {LABEL: uid}}
    return {"apiVersion": "v1", "kind": "Secret", "type": TYPE, "metadata": metadata, "data": {WANTED: _encoded(WORKLOADS)}}


def wants_workloads(secret: Object) -> bool:
    return (secret.get("data") or {}).get(WANTED) == _encoded(WORKLOADS)


@dataclass(frozen=True)
class WorkloadsAnswer:
    """The workloads as JSON, or why there are none."""

    workloads: str = ""
    error: str = ""

    def apply_to(self, request: Object) -> Object:
        answer = {"error": shortened(self.error, ERROR_LIMIT)} if self.error else {WORKLOADS: self.workloads}
        return {**request, "data": {**request["data"], **{key: _encoded(value) for key, value in answer.items()}}}

    @classmethod
    def from_secret(cls, secret: Object) -> WorkloadsAnswer | None:
        """The answer; None while the agent has not answered. What cannot be read is an error."""
        data = secret.get("data") or {}
        if error := _decoded(data.get("error")):
            return cls(error=shortened(error, ERROR_LIMIT))
        text = _decoded(data.get(WORKLOADS))
        return cls(text) if text else None

    def content(self) -> dict[str, Any]:
        """The workloads as plain data; ValueError where the hub sent something else."""
        return from_json(self.workloads)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decoded(value: Any) -> str:
    try:
        return base64.b64decode(str(value or ""), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
