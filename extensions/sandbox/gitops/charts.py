"""Helm charts made in memory, packed as Helm packs them, and the index of a chart repository."""

from __future__ import annotations

import datetime
import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

# What a chart has unless its maker says otherwise: an object without a workload.
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  version: {{ .Chart.Version | quote }}
  values: {{ .Values | toJson | quote }}
"""


@dataclass(frozen=True)
class Chart:
    """A chart: its metadata, its templates by file name, its default values and their JSON Schema."""

    name: str
    version: str
    templates: Mapping[str, str] = field(default_factory=lambda: {"configmap.yaml": CONFIG_MAP})
    values: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    dependencies: Sequence[Mapping[str, Any]] = ()
    description: str = "A chart of the sandbox"

    @property
    def metadata(self) -> dict[str, Any]:
        optional = {"annotations": dict(self.annotations), "dependencies": [dict(each) for each in self.dependencies]}
        return {
            "apiVersion": "v2",
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "type": "application",
            **{key: value for key, value in optional.items() if value},
        }

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}.tgz"

    def archive(self) -> bytes:
        """The chart as a tgz. Equal charts have equal bytes, and so equal digests."""
        files = {"Chart.yaml": yaml.safe_dump(self.metadata), "values.yaml": yaml.safe_dump(dict(self.values))}
        if self.schema is not None:
            files["values.schema.json"] = json.dumps(self.schema)
        files |= {f"templates/{name}": text for name, text in self.templates.items()}
        packed = io.BytesIO()
        with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed, tarfile.open(fileobj=compressed, mode="w") as archive:
            for name, text in files.items():
                content = text.encode()
                entry = tarfile.TarInfo(f"{self.name}/{name}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        return packed.getvalue()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def index(charts: Iterable[Chart]) -> str:
    """The `index.yaml` of a repository with these charts."""
    now = datetime.datetime.now(datetime.UTC).isoformat()
    entries: dict[str, list[dict[str, Any]]] = {}
    for chart in charts:
        entry = {**chart.metadata, "urls": [chart.file_name], "digest": digest(chart.archive()), "created": now}
        entries.setdefault(chart.name, []).append(entry)
    return yaml.safe_dump({"apiVersion": "v1", "generated": now, "entries": entries})
