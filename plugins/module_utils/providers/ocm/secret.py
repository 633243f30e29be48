# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The Secret beside a cluster of OpenShift Cluster Manager: how to reach the service for it, and what the service does not keep itself.

It is there before the cluster is asked for, and has a finalizer until the cluster is gone. So where there is no Secret there is no
cluster of ours, also after somebody has deleted the Secret or its whole namespace by hand.
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
ASKED = "nodes"


class AccessSecret:
    """The Secret of one place. `content` is what it holds, as text; it is read once."""

    def __init__(self, ref: ClusterRef) -> None:
        self._ref = ref
        self.name = f"{ref.name}-ocm"
        self._present = ref.kube.find("v1", "Secret", self.name, ref.namespace)
        self.content = self._decoded()

    @property
    def exists(self) -> bool:
        return self._present is not None

    def access(self) -> Access:
        """How to reach the service; one clear error where that is not known."""
        if not self.content.get("token"):
            kind, what = (ProviderError, "has no token in it") if self.exists else (NoSuchCluster, "is not there")
            raise kind(
                f"The Secret {self._ref.namespace}/{self.name} for OpenShift Cluster Manager {what}; "
                "make the cluster with secrets.token, or put an offline token there as token."
            )
        where = {"url": URL, "token_url": TOKEN_URL, "client_id": CLIENT_ID}
        return Access(self.content["token"], **{key: self.content.get(key) or default for key, default in where.items()})

    @property
    def asked(self) -> dict[str, int]:
        """The nodes that were asked for by class, which the service only knows rounded, and only once it has made them."""
        try:
            return {str(name): int(nodes) for name, nodes in json.loads(self.content.get(ASKED) or "{}").items()}
        except (ValueError, TypeError, AttributeError):
            return {}

    def keep(self, writer: FencedWriter, content: Mapping[str, str], asked: Mapping[str, int] | None = None) -> list[Change]:
        """Have this in the Secret, beside what else is in it."""
        self.content |= content
        if asked is not None:
            self.content[ASKED] = json.dumps(asked, sort_keys=True)
        return self._write(writer)

    def forget(self, writer: FencedWriter, key: str) -> None:
        """Have this no longer. No change that anybody wants to know of: what comes in its place is kept in a moment."""
        if self.content.pop(key, None) is not None:
            self._write(writer)

    def _write(self, writer: FencedWriter) -> list[Change]:
        changes = writer.apply([self._wanted([FINALIZER])], known=[self._present] if self._present else [])
        self._present = changes[0].after
        return changes

    def remove(self, writer: FencedWriter) -> list[Change]:
        """Take it away: only once the cluster is gone."""
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
            raise ProviderError(f"The Secret {self._ref.namespace}/{self.name} holds something that is no text.") from None
