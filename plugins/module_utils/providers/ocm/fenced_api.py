# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writes to OpenShift Cluster Manager for one cluster: each verifies the lock first and is recorded as a change. Reads are the API's own.

The service has no conditional writes, so the lock is read again before each write. In check mode nothing is written.
"""

from __future__ import annotations

from ...common.types import Object
from ...lock.fenced_writer import Change
from ..base import Provider
from .api import OcmApi
from .redaction import shown


class FencedApi:
    """The API, and what its writes need of the provider: the lock, check mode, and the list of changes. `name` is the cluster's there."""

    def __init__(self, api: OcmApi, provider: Provider, name: str) -> None:
        self.api = api
        self.name = name
        self._provider = provider

    def post(self, path: str, kind: str, name: str, body: Object, *, dry_run: bool = False) -> Object:
        created = body
        if dry_run or self._may_write():
            created = self.api.post(path, f"create {kind} {name}", body, dry_run=dry_run) or body
        self._record("created", None, shown(kind, name, body))
        return created

    def patch(self, path: str, kind: str, name: str, present: Object, body: Object) -> None:
        if self._may_write():
            self.api.patch(path, f"change {kind} {name}", body)
        before = {key: present[key] for key in body if key in present}
        self._record("changed", shown(kind, name, before), shown(kind, name, body))

    def delete(self, path: str, kind: str, name: str, present: Object, *, dry_run: bool = False) -> None:
        if dry_run or self._may_write():
            self.api.delete(path, f"delete {kind} {name}", dry_run=dry_run)
        self._record("deleted", shown(kind, name, present), None)

    def _may_write(self) -> bool:
        if self._provider.ref.check_mode:
            return False
        self._provider.writer.verify()
        return True

    def _record(self, action: str, before: Object | None, after: Object | None) -> None:
        self._provider.changes.append(Change(action, before, after))
