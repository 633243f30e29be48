"""Charts in memory, in the place of repositories: versions with their annotations, schemas and values."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.common.semantic_version import Version
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.charts import Charts
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.fetch import Deadline
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.repository_charts import (
    ChartMetadata,
    FetchedChart,
    RepositoryCharts,
    chart_metadata,
    newest_first,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.profile_offer import ProfileOffer

PREFIX = "openfleet.clusters/"


def packed(name: str, version: str, files: Mapping[str, str] | None = None, **metadata: Any) -> bytes:
    """The archive of a chart."""
    content = {"Chart.yaml": yaml.safe_dump({"apiVersion": "v2", "name": name, "version": version} | metadata), **(files or {})}
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for path, text in content.items():
            member = tarfile.TarInfo(f"{name}/{path}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return gzip.compress(plain.getvalue(), mtime=0)


class InMemory(RepositoryCharts):
    """`charts` has, by chart and version, annotations of ours without their prefix, and `schema`, `values`, `salt`."""

    def __init__(self, charts: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        self.charts = charts
        self.asked: list[str] = []

    def versions(self, chart: str, deadline: Deadline) -> Sequence[Version]:
        self.asked.append(f"versions {chart}")
        return newest_first(list(self.charts.get(chart, {})))

    def metadata(self, chart: str, version: Version, deadline: Deadline) -> ChartMetadata:
        self.asked.append(f"metadata {chart} {version}")
        given = self.charts[chart][version.text]
        annotations = {f"{PREFIX}{name}": json.dumps(given[name]) for name in ("layer", "requires", "conflicts") if name in given}
        return chart_metadata(version, {"annotations": annotations})

    def fetch(self, chart: str, version: Version, deadline: Deadline) -> FetchedChart:
        self.asked.append(f"fetch {chart} {version}")
        given = self.charts[chart][version.text]
        files = {"salt": str(given.get("salt", "")), "values.yaml": yaml.safe_dump(given.get("values", {}))}
        if "schema" in given:
            files["values.schema.json"] = json.dumps(given["schema"])
        archive = packed(chart, version.text, files)
        return FetchedChart(archive, f"sha256:{hashlib.sha256(archive).hexdigest()}")


class ChartsInMemory(Charts):
    def __init__(self, charts: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        super().__init__(ProfileOffer())
        self.repository = InMemory(charts)

    def of(self, repository: str) -> RepositoryCharts:
        return self.repository
