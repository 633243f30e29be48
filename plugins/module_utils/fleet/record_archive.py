# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The records of deleted clusters over time: exported to a bucket as JSON lines by day, summed as usage, deleted by age and number."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..common.timestamps import format_time, parse_time
from ..common.types import Object
from ..kube.client import Kube
from ..s3.errors import PreconditionFailed
from ..s3.store import ObjectStore
from .kinds import API_VERSION, RECORD
from .model import EARLIEST

SWAPS = 10


@dataclass(frozen=True)
class Retention:
    """For how long records stay on the home cluster, and how many of each tenant. None is no limit."""

    max_age: timedelta | None = None
    max_number: int | None = None


def surplus(records: Iterable[Object], retention: Retention, now: datetime, *, only_exported: bool) -> list[Object]:
    """The records to delete: too old, or beyond the newest of their tenant. Those that are not exported stay, if `only_exported`."""
    by_tenant: dict[str, list[Object]] = {}
    for record in sorted(records, key=_order, reverse=True):
        by_tenant.setdefault(record["metadata"]["namespace"], []).append(record)
    found = []
    for own in by_tenant.values():
        for number, record in enumerate(own):
            is_old = retention.max_age is not None and now - _deleted(record) > retention.max_age
            is_beyond = retention.max_number is not None and number >= retention.max_number
            if (is_old or is_beyond) and (is_exported(record) or not only_exported):
                found.append(record)
    return sorted(found, key=_order)


def usage(lines: Iterable[Mapping[str, object]]) -> dict[str, dict[str, float]]:
    """The node hours by tenant and resource class, of exported lines."""
    total: dict[str, dict[str, float]] = {}
    for line in lines:
        hours = line.get("nodeHours")
        own = total.setdefault(str(line["namespace"]), {})
        for name, each in (hours if isinstance(hours, dict) else {}).items():
            own[name] = round(own.get(name, 0.0) + float(each), 3)
    return {tenant: dict(sorted(own.items())) for tenant, own in sorted(total.items())}


def is_exported(record: Object) -> bool:
    return bool((record.get("status") or {}).get("exported"))


def as_line(record: Object) -> Object:
    """What is exported of a record."""
    return {"namespace": record["metadata"]["namespace"], **record["spec"]}


def delete_surplus(home: Kube, retention: Retention, now: datetime, *, only_exported: bool) -> int:
    """Delete records by age and number. Returns how many."""
    if retention == Retention():
        return 0
    found = surplus(home.list_all(API_VERSION, RECORD), retention, now, only_exported=only_exported)
    return sum(home.delete(record, checked=True) for record in found)


class RecordArchive:
    """Moves records of a home cluster to a bucket. Each step is repeated safely: a day has a record once."""

    def __init__(self, home: Kube, store: ObjectStore, prefix: str) -> None:
        self._home = home
        self._store = store
        self._prefix = prefix.rstrip("/")

    def export(self, now: datetime) -> int:
        """Write the records that are not in the bucket yet, one write for each day, then mark them. Returns how many."""
        by_day: dict[str, list[Object]] = {}
        for record in self._home.list_all(API_VERSION, RECORD):
            if not is_exported(record):
                by_day.setdefault(f"{_deleted(record):%Y-%m-%d}", []).append(record)
        for day, records in sorted(by_day.items()):
            self._add(day, records)
            for record in records:
                self._home.patch(record, {"status": {"exported": format_time(now)}}, subresource="status", checked=False)
        return sum(map(len, by_day.values()))

    def read(self, day: str) -> list[Object]:
        """The lines of a day, such as 2026-01-02."""
        stored = self._store.get(self._key(day))
        return [json.loads(line) for line in stored.body.splitlines()] if stored else []

    def _add(self, day: str, records: Sequence[Object]) -> None:
        for attempt in range(1, SWAPS + 1):
            stored = self._store.get(self._key(day))
            lines = {line["uid"]: line for line in map(json.loads, stored.body.splitlines())} if stored else {}
            added = [line for line in map(as_line, records) if line["uid"] not in lines]
            if not added:
                return
            ordered = sorted([*lines.values(), *added], key=lambda line: (line["deleted"], line["uid"]))
            body = "".join(f"{json.dumps(line, sort_keys=True)}\n" for line in ordered).encode()
            try:
                if stored:
                    self._store.replace(self._key(day), body, stored)
                else:
                    self._store.create(self._key(day), body)
                return
            except PreconditionFailed:
                if attempt == SWAPS:
                    raise

    def _key(self, day: str) -> str:
        return f"{self._prefix}/{day}.jsonl"


def _deleted(record: Object) -> datetime:
    return parse_time(record["spec"]["deleted"]) or EARLIEST


def _order(record: Object) -> tuple[datetime, str]:
    return _deleted(record), record["spec"]["uid"]
