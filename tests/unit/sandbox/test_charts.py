"""Charts as Helm packs them, and the index of their repository."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.access import ChartRepository
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.charts import Chart, digest


def test_a_chart_has_helms_files_below_its_name_and_equal_charts_have_equal_bytes() -> None:
    chart = Chart("web", "1.0.0", values={"a": 1}, schema={"type": "object"}, annotations={"layer": "2"})
    with tarfile.open(fileobj=io.BytesIO(chart.archive())) as archive:
        names = archive.getnames()
        metadata = archive.extractfile("web/Chart.yaml")
        assert metadata
        described = yaml.safe_load(metadata.read())
    assert names == ["web/Chart.yaml", "web/values.yaml", "web/values.schema.json", "web/templates/configmap.yaml"]
    assert (described["version"], described["annotations"]) == ("1.0.0", {"layer": "2"})
    # The header of gzip has no time, which would change the digest.
    assert chart.archive()[4:8] == bytes(4)


def test_publishing_adds_to_the_index_and_replaces_the_same_version(tmp_path: Path) -> None:
    repository = ChartRepository("http://127.0.0.1/charts", tmp_path).named("shop")
    repository.publish(Chart("web", "1.0.0"), Chart("web", "1.1.0"), Chart("db", "2.0.0"))
    changed = Chart("web", "1.0.0", values={"a": 1})
    repository.publish(changed)
    entries = yaml.safe_load((tmp_path / "shop" / "index.yaml").read_text())["entries"]
    assert {name: {entry["version"] for entry in found} for name, found in entries.items()} == {"web": {"1.0.0", "1.1.0"}, "db": {"2.0.0"}}
    (entry,) = (entry for entry in entries["web"] if entry["version"] == "1.0.0")
    assert entry["digest"] == digest((tmp_path / "shop" / entry["urls"][0]).read_bytes()) == digest(changed.archive())
    assert repository.url == "http://127.0.0.1/charts/shop"
