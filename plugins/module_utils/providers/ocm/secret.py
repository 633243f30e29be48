# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The Secret beside a cluster of OpenShift Cluster Manager: credentials for the service, and what the service does not store itself.

It exists before the cluster is requested, and has a finalizer until the cluster is absent. So where there is no Secret there is no
cluster of ours, also after the Secret or its whole namespace was deleted by hand.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping

from ...common.types import Object
from ...kube.client import FIELD_MANAGER
from ...lock.fenced_writer import Change, FencedWriter
from ..base import ClusterRef, NoSuchCluster, ProviderError
from .api import CLIENT_ID, TOKEN_URL, URL, Access

FINALIZER = f"{FIELD_MANAGER}/ocm"
NODES = "nodes"


class AccessSecret:
    """The Secret of one cluster. `content` is its data as text; it is read once."""

    def __init__(self, ref: ClusterRef) -> None:
        self._ref = ref
        self.name = f"{ref.name}-ocm"
        self._present = ref.kube.find("v1", "Secret", self.name, ref.namespace)
        self.content = self._decoded()

    @property
    def exists(self) -> bool:
        return self._present is not None

    @property
    def reference(self) -> str:
        return f"{self._ref.namespace}/{self.name}"

    def access(self) -> Access:
        """How to reach the service; one error that says what to do where that is not known."""
        if not self.content.get("token"):
            kind, what = (ProviderError, "has no token") if self.exists else (NoSuchCluster, "does not exist")
            raise kind(
                f"The Secret {self.reference} for OpenShift Cluster Manager {what}; "
                "create the cluster with secrets.token, or put an offline token into the Secret as token."
            )
        where = {"url": URL, "token_url": TOKEN_URL, "client_id": CLIENT_ID}
        return Access(self.content["token"], **{key: self.content.get(key) or default for key, default in where.items()})

    @property
    def requested_nodes(self) -> dict[str, int]:
        """The requested nodes by class, which the service only knows rounded, and only once it has created them."""
        try:
            return {str(name): int(nodes) for name, nodes in json.loads(self.content.get(NODES) or "{}").items()}
        except (ValueError, TypeError, AttributeError):
            return {}

    def record(self, writer: FencedWriter, content: Mapping[str, str], requested_nodes: Mapping[str, int] | None = None) -> list[Change]:
        """Write this into the Secret, beside what else is in it."""
        self.content |= content
        if requested_nodes is not None:
            self.content[NODES] = json.dumps(requested_nodes, sort_keys=True)
        return self._write(writer)

    def forget(self, writer: FencedWriter, key: str) -> None:
        """Remove a key. It is not reported as a change: its new value is recorded in a moment."""
        if self.content.pop(key, None) is not None:
            self._write(writer)

    def _write(self, writer: FencedWriter) -> list[Change]:
        changes = writer.apply([self._wanted([FINALIZER])], known=[self._present] if self._present else [])
        self._present = changes[0].after
        return changes

    def remove(self, writer: FencedWriter) -> list[Change]:
        """Delete the Secret: only once the cluster is absent."""
        if self._present is None:
            return []
        writer.apply([self._wanted([])])
        return writer.delete([self._wanted([])])

    def _wanted(self, finalizers: list[str]) -> Object:
        metadata = {"name": self.name, "namespace": self._ref.namespace, "labels": dict(self._ref.labels)}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {**metadata, **({"finalizers": finalizers} if finalizers else {})},
            "data": {key: base64.b64encode(value.encode()).decode() for key, value in self.content.items()},
        }

    def _decoded(self) -> dict[str, str]:
        try:
            data = (self._present or {}).get("data") or {}
            return {key: base64.b64decode(value).decode().strip() for key, value in data.items()}
        except (binascii.Error, UnicodeDecodeError):
            raise ProviderError(f"The Secret {self.reference} contains data that is not text.") from None
