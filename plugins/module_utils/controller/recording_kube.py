# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A connection that passes on the answer to each write, so that a cache has it before the watch brings it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..common.types import Object
from ..kube.client import Kube
from ..kube.config import Target


class RecordingKube(Kube):
    """`written` gets each object that was created or patched, in the thread of the request."""

    def __init__(self, cluster: Target, written: Callable[[Object], None]) -> None:
        super().__init__(cluster)
        self._written = written

    def create(self, item: Object, *, dry_run: bool = False, strict: bool = False) -> Object:
        answer = super().create(item, dry_run=dry_run, strict=strict)
        if not dry_run:
            self._written(answer)
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
            self._written(answer)
        return answer
