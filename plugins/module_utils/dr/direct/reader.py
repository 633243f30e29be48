# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads objects from the API servers of the registered clusters."""

from __future__ import annotations

from collections.abc import Sequence

from ...kube.client import Kube
from ...kube.errors import NotFound
from ..interfaces import ObjectRef
from ..read_results import Absent, Found, Listed, ListResult, ReadResult, Unreachable
from .peers import Peers


class DirectReader:
    """ResourceReader over the registry's clients."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    def get(self, clusters: Sequence[str], ref: ObjectRef) -> dict[str, ReadResult]:
        return dict(self._peers.call_all(clusters, lambda kube: _get(kube, ref)))

    def list(self, clusters: Sequence[str], api_version: str, kind: str, namespace: str = "") -> dict[str, ListResult]:
        return dict(self._peers.call_all(clusters, lambda kube: _list(kube, api_version, kind, namespace)))

    def forget(self, clusters: Sequence[str], ref: ObjectRef) -> None:
        """Nothing was created to read the object."""


def _get(kube: Kube, ref: ObjectRef) -> ReadResult:
    item = kube.find(ref.api_version, ref.kind, ref.name, ref.namespace or None)
    if item is not None:
        return Found(item)
    # A server without the CRD, and a proxy in front of a dead server, answer 404 as well.
    return Absent() if kube.serves(ref.api_version, ref.kind) else _unknown_kind(kube, ref.api_version, ref.kind)


def _list(kube: Kube, api_version: str, kind: str, namespace: str) -> ListResult:
    try:
        return Listed(kube.list_all(api_version, kind, namespace or None))
    except NotFound:
        return _unknown_kind(kube, api_version, kind)


def _unknown_kind(kube: Kube, api_version: str, kind: str) -> Unreachable:
    return Unreachable(f"{kube.target.server} does not serve {kind} of {api_version}: install its CRD, and check the address.")
