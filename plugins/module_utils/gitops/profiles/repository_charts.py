# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the resolution asks a repository of charts, whichever kind it is, and which chart metadata counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...common.bounded_yaml import BadYaml, load
from ...common.semantic_version import BadRange, Range, Version
from ...infrastructure.profile_offer import layer_problem
from .fetch import Deadline

PREFIX = "openfleet.clusters/"
LAYER, REQUIRES, CONFLICTS = f"{PREFIX}layer", f"{PREFIX}requires", f"{PREFIX}conflicts"
MAX_ANNOTATION = 16 * 1024


class BadAnnotation(ValueError):
    """A chart has an annotation of ours with a mistake. The text is a part of a sentence."""


@dataclass(frozen=True)
class ChartMetadata:
    """One version of a chart: its layer, the profiles that it needs with their versions, and those that it cannot be beside."""

    version: Version
    description: str = ""
    layer: int | None = None
    requires: Mapping[str, Range] = field(default_factory=dict)
    conflicts: tuple[str, ...] = ()


@dataclass(frozen=True)
class FetchedChart:
    """The archive of one version, and the digest by which it is known in its repository."""

    archive: bytes = field(repr=False)
    digest: str


class RepositoryCharts(ABC):
    """The charts of one repository. Answers are kept, so that many orders of one run share them."""

    @abstractmethod
    def versions(self, chart: str, deadline: Deadline) -> Sequence[Version]:
        """Every version of the chart, the newest first; none where the repository does not have the chart."""

    @abstractmethod
    def metadata(self, chart: str, version: Version, deadline: Deadline) -> ChartMetadata:
        """The metadata of one version; BadAnnotation where one of ours has a mistake."""

    @abstractmethod
    def fetch(self, chart: str, version: Version, deadline: Deadline) -> FetchedChart:
        """The archive of one version, after its digest was checked."""


def newest_first(texts: Sequence[str]) -> list[Version]:
    """Versions that differ only in what follows a plus sign are in the order of their texts."""
    found = [version for text in dict.fromkeys(texts) if (version := Version.parse(text))]
    return sorted(found, key=lambda version: (version, version.text), reverse=True)


def chart_metadata(version: Version, document: Mapping[str, Any]) -> ChartMetadata:
    """What counts of a Chart.yaml."""
    annotations = document.get("annotations")
    given = annotations if isinstance(annotations, dict) else {}
    layer = _annotation(given, LAYER)
    if layer is not None and (problem := layer_problem(layer)):
        raise BadAnnotation(f"has the annotation {LAYER}, which {problem}")
    requires, conflicts = _annotation(given, REQUIRES) or {}, _annotation(given, CONFLICTS) or []
    if not isinstance(conflicts, list) or not all(isinstance(name, str) for name in conflicts):
        raise BadAnnotation(f"has the annotation {CONFLICTS}, which must be a list of profiles")
    if not isinstance(requires, dict) or not all(isinstance(text, str) for pair in requires.items() for text in pair):
        raise BadAnnotation(f"has the annotation {REQUIRES}, which must be a mapping of profiles to ranges of versions")
    try:
        ranges = {name: Range.parse(text) for name, text in requires.items()}
    except BadRange as error:
        raise BadAnnotation(f"has the annotation {REQUIRES}, in which a range {error}") from None
    return ChartMetadata(version, str(document.get("description") or "")[:1000], layer, ranges, tuple(conflicts))


def _annotation(annotations: Mapping[str, Any], name: str) -> Any:
    text = annotations.get(name)
    if not isinstance(text, str):
        return None
    try:
        return load(text, MAX_ANNOTATION)
    except BadYaml as error:
        raise BadAnnotation(f"has the annotation {name}, which {error}") from None
