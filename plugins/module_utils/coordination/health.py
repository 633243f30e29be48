# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How clusters are, as each tells of itself in the bucket. One that tells nothing is unknown: silence does not say that it is down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..s3.errors import CoordinationError, Missing, PreconditionFailed
from ..s3.store import ObjectStore
from .documents import Document, Documents, awake, checked_name, now
from .documents import field as field_of

HEALTHY, UNAUTHORIZED, UNREACHABLE, UNKNOWN = "healthy", "unauthorized", "unreachable", "unknown"
INTERVAL = 15.0
# How many reports may be missing before a cluster is unknown.
MISSED = 3
SWAP_TRIES = 10


@dataclass(frozen=True)
class Report:
    """What a cluster said last. `sequence` 0: it never said anything."""

    state: str = UNKNOWN
    reason: str = ""
    interval: float = INTERVAL
    sequence: int = 0
    reporter: str = ""
    written: str = ""
    document: Document | None = field(default=None, compare=False, repr=False)


class ClusterHealth:
    """The status object of one cluster: its own source writes it, all others watch it."""

    def __init__(self, store: ObjectStore, cluster: str, clock: Callable[[], float] = awake) -> None:
        self.cluster = checked_name("cluster", cluster)
        self._key = f"clusters/{cluster}/status"
        self._documents = Documents(store, {"cluster": cluster})
        self._clock = clock
        self._seen = Report()
        self._seen_since: float | None = None

    def report(self, state: str, reason: str = "", interval: float = INTERVAL, reporter: str = "") -> Report:
        """Say how this cluster is. `interval` is when the next report is due."""
        for _attempt in range(SWAP_TRIES):
            last = self._seen = self._read()
            said = {"state": state, "reason": reason, "interval": float(interval), "reporter": reporter}
            content = said | {"sequence": last.sequence + 1, "written": now()}
            try:
                document = self._documents.write(self._key, content, last.document)
            except (PreconditionFailed, Missing):
                continue
            self._seen = _report(self._key, document)
            return self._seen
        raise CoordinationError(
            f"The status of cluster {self.cluster} changes faster than it can be written: do two clusters have that name?"
        )

    def look(self) -> Report:
        """What the cluster said last; UNKNOWN once it has been silent for several intervals, on our own clock."""
        found = self._read()
        if found is not self._seen or self._seen_since is None:
            self._seen, self._seen_since = found, self._clock()
        silent = self._clock() - self._seen_since
        if found.sequence and silent > MISSED * found.interval:
            return Report(UNKNOWN, f"no report for {silent:.0f} seconds", found.interval, found.sequence, found.reporter, found.written)
        return found

    def _read(self) -> Report:
        document = self._documents.read(self._key, self._seen.document)
        if document is None:
            return self._seen if not self._seen.document else Report()
        return self._seen if document is self._seen.document else _report(self._key, document)


def clusters(store: ObjectStore) -> list[str]:
    """The names of all clusters that have ever told of themselves."""
    parts = (key.split("/") for key in store.keys("clusters/"))
    return sorted(named[1] for named in parts if len(named) == 3 and named[2] == "status")


def _report(key: str, document: Document) -> Report:
    return Report(
        state=field_of(document, key, "state", str),
        reason=str(document.content.get("reason", "")),
        interval=float(field_of(document, key, "interval", (int, float))),
        sequence=field_of(document, key, "sequence", int),
        reporter=str(document.content.get("reporter", "")),
        written=str(document.content.get("written", "")),
        document=document,
    )
