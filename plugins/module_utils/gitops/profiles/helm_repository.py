# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A Helm repository: an index of charts, and archives, over HTTP."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urljoin

from ...common.bounded_yaml import BadYaml, load
from ...common.semantic_version import Version
from .chart_archive import MAX_ARCHIVE
from .fetch import Deadline, Fetcher
from .repository_charts import ChartMetadata, FetchedChart, RepositoryCharts, chart_metadata, newest_first

MAX_INDEX = 16 * 1024 * 1024
MAX_NODES = 2_000_000
DIGEST = re.compile(r"(sha256:)?[0-9a-f]{64}")


class HelmRepository(RepositoryCharts):
    """The charts of a Helm repository. Its index is read once."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._lock = threading.Lock()
        self._entries: Mapping[str, list[Mapping[str, Any]]] | None = None

    def versions(self, chart: str, deadline: Deadline) -> Sequence[Version]:
        return newest_first([str(entry.get("version", "")) for entry in self._charts(deadline).get(chart, [])])

    def metadata(self, chart: str, version: Version, deadline: Deadline) -> ChartMetadata:
        return chart_metadata(version, self._entry(chart, version, deadline))

    def fetch(self, chart: str, version: Version, deadline: Deadline) -> FetchedChart:
        entry = self._entry(chart, version, deadline)
        urls = entry.get("urls")
        if not isinstance(urls, list) or not urls or not isinstance(urls[0], str):
            raise self._fetcher.failed(f"its index has no address of {chart} {version}")
        url = urljoin(f"{self._fetcher.base}/", urls[0])
        answer = self._fetcher.get(url, MAX_ARCHIVE, deadline)
        if answer.status != 200:
            raise self._fetcher.failed(f"the archive of {chart} {version} cannot be fetched: the answer is {answer.status}")
        digest, wanted = hashlib.sha256(answer.body).hexdigest(), entry.get("digest")
        if isinstance(wanted, str) and DIGEST.fullmatch(wanted) and wanted.removeprefix("sha256:") != digest:
            raise self._fetcher.failed(f"the archive of {chart} {version} has not the digest that its index has")
        return FetchedChart(answer.body, f"sha256:{digest}")

    def _entry(self, chart: str, version: Version, deadline: Deadline) -> Mapping[str, Any]:
        found = (entry for entry in self._charts(deadline).get(chart, []) if entry.get("version") == version.text)
        return next(found, {})

    def _charts(self, deadline: Deadline) -> Mapping[str, list[Mapping[str, Any]]]:
        with self._lock:  # many orders of one run ask at the same time
            if self._entries is None:
                self._entries = self._read(deadline)
            return self._entries

    def _read(self, deadline: Deadline) -> Mapping[str, list[Mapping[str, Any]]]:
        answer = self._fetcher.get(f"{self._fetcher.base}/index.yaml", MAX_INDEX, deadline)
        if answer.status != 200:
            raise self._fetcher.failed(f"its index.yaml cannot be fetched: the answer is {answer.status}")
        try:
            document = load(answer.body, MAX_INDEX, MAX_NODES)
        except BadYaml as error:
            raise self._fetcher.failed(f"its index.yaml {error}") from None
        entries = document.get("entries") if isinstance(document, dict) else None
        if not isinstance(entries, dict):
            raise self._fetcher.failed("its index.yaml has no entries")
        return {name: [each for each in charts if isinstance(each, dict)] for name, charts in entries.items() if isinstance(charts, list)}
