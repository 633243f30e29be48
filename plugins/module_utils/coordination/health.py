# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The health that each cluster reports of itself in the bucket. A cluster without reports is unknown, not down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..common.clock import boottime, utc_now
from ..s3.errors import CoordinationError, NoSuchKey, PreconditionFailed
from ..s3.store import ObjectStore
from .documents import Document, DocumentStore, required_field, validate_name

HEALTHY, UNAUTHORIZED, UNREACHABLE, UNKNOWN = "healthy", "unauthorized", "unreachable", "unknown"
INTERVAL = 15.0
# So many reports may be missing before a cluster is unknown.
MISSED_REPORTS = 3
WRITE_ATTEMPTS = 10


@dataclass(frozen=True)
class Report:
    """The last report of a cluster. `sequence` 0: the cluster never reported."""

    state: str = UNKNOWN
    reason: str = ""
    interval: float = INTERVAL
    sequence: int = 0
    reporter: str = ""
    written_at: str = ""
    document: Document | None = field(default=None, compare=False, repr=False)


class ClusterHealth:
    """The status object of one cluster: the cluster itself writes it, all others read it."""

    def __init__(self, store: ObjectStore, cluster: str, clock: Callable[[], float] = boottime) -> None:
        self.cluster = validate_name("cluster", cluster)
        self._key = f"clusters/{cluster}/status"
        self._documents = DocumentStore(store, {"cluster": cluster})
        self._clock = clock
        self._last = Report()
        self._last_since: float | None = None

    def report(self, state: str, reason: str = "", interval: float = INTERVAL, reporter: str = "") -> Report:
        """Write the health of this cluster. The next report is due after `interval` seconds."""
        for _attempt in range(WRITE_ATTEMPTS):
            last = self._last = self._read()
            reported = {"state": state, "reason": reason, "interval": float(interval), "reporter": reporter}
            content = reported | {"sequence": last.sequence + 1, "written_at": utc_now()}
            try:
                document = self._documents.write(self._key, content, last.document)
            except (PreconditionFailed, NoSuchKey):
                continue
            self._last = _report(self._key, document)
            return self._last
        raise CoordinationError(
            f"The status of cluster {self.cluster} changes faster than it can be written. Check that no two clusters have this name."
        )

    def observe(self) -> Report:
        """The last report; UNKNOWN once several reports are missing, on our own clock."""
        report = self._read()
        if report is not self._last or self._last_since is None:
            self._last, self._last_since = report, self._clock()
        age = self._clock() - self._last_since
        if report.sequence and age > MISSED_REPORTS * report.interval:
            reason = f"no report for {age:.0f} seconds"
            return Report(UNKNOWN, reason, report.interval, report.sequence, report.reporter, report.written_at)
        return report

    def _read(self) -> Report:
        document = self._documents.read(self._key, self._last.document)
        if document is None:
            return self._last if not self._last.document else Report()
        return self._last if document is self._last.document else _report(self._key, document)


def reporting_clusters(store: ObjectStore) -> list[str]:
    """The names of all clusters that ever reported."""
    parts = (key.split("/") for key in store.keys("clusters/"))
    return sorted(named[1] for named in parts if len(named) == 3 and named[2] == "status")


def _report(key: str, document: Document) -> Report:
    return Report(
        state=required_field(document, key, "state", str),
        reason=str(document.content.get("reason", "")),
        interval=float(required_field(document, key, "interval", (int, float))),
        sequence=required_field(document, key, "sequence", int),
        reporter=str(document.content.get("reporter", "")),
        written_at=str(document.content.get("written_at", "")),
        document=document,
    )
