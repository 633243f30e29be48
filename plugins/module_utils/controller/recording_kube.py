# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A connection that passes on the answer to each write, so that a cache has it before the watch brings it.

A hub or quota that is read is passed on too. What a write frees is found by comparing the object before and after it; while a watch is
broken, a cache would lack the version before, for example because the answer to another write was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..common.types import Object
from ..fleet.kinds import API_VERSION, HUB, QUOTA
from ..kube.client import Kube
from ..kube.config import Target

SWAPPED = (HUB, QUOTA)  # whose status is written by compare-and-swap


class RecordingKube(Kube):
    """`observed` gets each object that was created or patched, and each hub and quota that was read, in the thread of the request."""

    def __init__(self, cluster: Target, observed: Callable[[Object], None]) -> None:
        super().__init__(cluster)
        self._observed = observed

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object:
        answer = super().get(api_version, kind, name, namespace)
        if api_version == API_VERSION and kind in SWAPPED:
            # A copy: a cache drops metadata, while the caller uses the answer.
            self._observed({**answer, "metadata": dict(answer["metadata"])})
        return answer

    def create(self, item: Object, *, dry_run: bool = False, strict: bool = False) -> Object:
        answer = super().create(item, dry_run=dry_run, strict=strict)
        if not dry_run:
            self._observed(answer)
        return answer

    def patch(
        self,
        item: Object,
        changes: Object | Sequence[Object],
        *,
        subresource: str = "",
        checked: bool = True,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Object:
        answer = super().patch(item, changes, subresource=subresource, checked=checked, dry_run=dry_run, strict=strict)
        if not dry_run:
            self._observed(answer)
        return answer
