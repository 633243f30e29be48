# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Charts in a registry, by the distribution API: tags are versions, a manifest names the metadata and the archive by digest."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from ...common.semantic_version import Version
from ..bounded_http import Answer
from .chart_archive import MAX_ARCHIVE
from .fetch import Deadline, Fetcher
from .render import CHART_LAYER
from .repository_charts import ChartMetadata, FetchedChart, RepositoryCharts, chart_metadata, newest_first

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.cncf.helm.config.v1+json"
MAX_JSON = 1024 * 1024
MAX_PAGES = 20
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
CHALLENGE = re.compile(r'(realm|service|scope)="([^"]*)"')
NEXT = re.compile(r'<([^>]+)>;\s*rel="?next"?')


class OciRegistry(RepositoryCharts):
    """The charts below one path of a registry."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._lock = threading.Lock()
        self._tags: dict[str, list[Version]] = {}
        self._manifests: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
        self._tokens: dict[str, str] = {}
        parts = urlsplit(fetcher.base)
        self._root, self._path = f"{parts.scheme}://{parts.netloc}/v2", parts.path.strip("/")

    def versions(self, chart: str, deadline: Deadline) -> Sequence[Version]:
        with self._lock:
            if chart not in self._tags:
                self._tags[chart] = self._read_tags(chart, deadline)
            return self._tags[chart]

    def metadata(self, chart: str, version: Version, deadline: Deadline) -> ChartMetadata:
        _digest, manifest = self._manifest(chart, version, deadline)
        content = self._blob(chart, _descriptor(manifest.get("config"), CONFIG), MAX_JSON, deadline)
        return chart_metadata(version, _object(content) or {})

    def fetch(self, chart: str, version: Version, deadline: Deadline) -> FetchedChart:
        digest, manifest = self._manifest(chart, version, deadline)
        layers = manifest.get("layers")
        found = [blob for layer in layers if (blob := _descriptor(layer, CHART_LAYER))] if isinstance(layers, list) else []
        return FetchedChart(self._blob(chart, found[0] if found else "", MAX_ARCHIVE, deadline), digest)

    def _read_tags(self, chart: str, deadline: Deadline) -> list[Version]:
        url, tags = f"{self._url(chart)}/tags/list?n=1000", list[str]()
        for _page in range(MAX_PAGES):
            answer = self._get(chart, url, MAX_JSON, deadline)
            if answer.status == 404:
                return []
            listed = (_object(answer.body) or {}).get("tags") or []
            tags += [tag.replace("_", "+") for tag in listed if isinstance(tag, str)]  # a tag cannot have a plus sign
            following = NEXT.search(answer.headers.get("link", ""))
            if not following:
                break
            url = urljoin(answer.url, following[1])
        return newest_first(tags)

    def _manifest(self, chart: str, version: Version, deadline: Deadline) -> tuple[str, Mapping[str, Any]]:
        key = chart, version.text
        with self._lock:
            if key not in self._manifests:
                url = f"{self._url(chart)}/manifests/{version.text.replace('+', '_')}"
                answer = self._get(chart, url, MAX_JSON, deadline, {"Accept": MANIFEST})
                manifest = _object(answer.body) if answer.status == 200 else None
                if manifest is None:
                    raise self._fetcher.failed(f"it has no manifest of {chart} {version}")
                self._manifests[key] = f"sha256:{hashlib.sha256(answer.body).hexdigest()}", manifest
            return self._manifests[key]

    def _blob(self, chart: str, digest: str, limit: int, deadline: Deadline) -> bytes:
        if not digest:
            raise self._fetcher.failed(f"what it has as {chart} is not a chart")
        answer = self._get(chart, f"{self._url(chart)}/blobs/{digest}", limit, deadline)
        if answer.status != 200 or f"sha256:{hashlib.sha256(answer.body).hexdigest()}" != digest:
            raise self._fetcher.failed(f"a part of {chart} is missing, or has not the digest that its manifest has")
        return answer.body

    def _url(self, chart: str) -> str:
        return f"{self._root}/{f'{self._path}/{chart}'.lstrip('/')}"

    def _get(self, chart: str, url: str, limit: int, deadline: Deadline, headers: Mapping[str, str] | None = None) -> Answer:
        """GET; a registry that wants a token, also from anonymous clients, says where to get it."""
        sent = dict(headers or {})
        if token := self._tokens.get(chart):
            sent["Authorization"] = f"Bearer {token}"
        answer = self._fetcher.get(url, limit, deadline, sent)
        if answer.status == 401 and not token:
            self._tokens[chart] = self._token(answer, deadline)
            answer = self._fetcher.get(url, limit, deadline, sent | {"Authorization": f"Bearer {self._tokens[chart]}"})
        if answer.status == 401:
            raise self._fetcher.failed("it wants a login, and clusters have none: allow anonymous reads")
        return answer

    def _token(self, answer: Answer, deadline: Deadline) -> str:
        given = dict(CHALLENGE.findall(answer.headers.get("www-authenticate", "")))
        realm = given.pop("realm", "")
        if not realm:
            raise self._fetcher.failed("it wants a login, and clusters have none: allow anonymous reads")
        document = _object(self._fetcher.get(f"{realm}?{urlencode(given)}", MAX_JSON, deadline).body) or {}
        return str(document.get("token") or document.get("access_token") or "")


def _descriptor(value: Any, media_type: str) -> str:
    """The digest of a descriptor, if it is of this type."""
    if not isinstance(value, dict) or value.get("mediaType") != media_type:
        return ""
    digest = value.get("digest")
    return digest if isinstance(digest, str) and DIGEST.fullmatch(digest) else ""


def _object(content: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
