# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs the implementation that is not active beside the active one, and reports where they differ.

The other one only reads: its connections refuse writes, and it has no deployer. Whatever happens to it is a difference
and never an error of the caller, who gets the answers of the active one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from ..common.types import Object
from ..kube.errors import KubeError, Unexpected
from ..s3.errors import S3Error
from .interfaces import Cluster, ClusterDirectory, Decision, ObjectRef, Placement, ResourceReader, Stamp
from .read_results import Found, Listed, ListResult, Pending, ReadResult, Unauthorized, Unreachable

Result = TypeVar("Result")

LIMIT = 100
# Either changes with each write, or is of the reader and not of the object.
IGNORED = {("metadata", "managedFields"), ("metadata", "resourceVersion")}


@dataclass(frozen=True)
class Readers:
    """What an implementation reads with, and its mode."""

    mode: str
    directory: ClusterDirectory
    reader: ResourceReader
    placement: Placement


class Comparison:
    """The differences of one reconcile, at most `LIMIT` of them. `other` connects when it is first asked."""

    def __init__(self, active: Readers, mode: str, other: Callable[[], Readers], seconds: float) -> None:
        self.differences: list[str] = []
        self.active = active
        self._mode = mode
        self._connect = other
        self._other: Readers | None = None
        self._seconds = seconds

    def run(
        self, what: str, active: Callable[[], Result], other: Callable[[Readers], Result], compare: Callable[[Result, Result], list[str]]
    ) -> Result:
        """The result of the active one. The other one works at the same time, and is waited for `seconds` longer at most."""
        threads = ThreadPoolExecutor(1)
        try:
            pending = threads.submit(lambda: other(self._readers()))
            result = active()
            try:
                found = compare(result, pending.result(self._seconds))
            except TimeoutError:
                found = [f"{self._mode} gave no answer within {self._seconds:g} s"]
            except (KubeError, S3Error) as error:
                found = [f"{self._mode} failed: {error}"]
            except Exception as fault:  # noqa: BLE001 - of any kind: the active one goes on
                found = [f"{self._mode} failed: {Unexpected(fault)}"]
            self.differences += [f"{what}: {text}" for text in found][: LIMIT - len(self.differences)]
            return result
        finally:
            threads.shutdown(wait=False)

    def names(self) -> tuple[str, str]:
        return self.active.mode, self._mode

    def _readers(self) -> Readers:
        if self._other is None:
            self._other = self._connect()
        return self._other


class ComparingDirectory:
    """ClusterDirectory of the active one, compared."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def clusters(self) -> list[Cluster]:
        both = self._comparison
        return both.run(
            "clusters",
            both.active.directory.clusters,
            lambda other: other.directory.clusters(),
            lambda one, two: cluster_differences(one, two, both.names()),
        )


class ComparingReader:
    """ResourceReader of the active one, compared."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def get(self, clusters: Sequence[str], ref: ObjectRef) -> Mapping[str, ReadResult]:
        both = self._comparison
        return both.run(
            str(ref),
            lambda: both.active.reader.get(clusters, ref),
            lambda other: other.reader.get(clusters, ref),
            lambda one, two: answer_differences(*_reported(one, two), both.names()),
        )

    def list(self, clusters: Sequence[str], api_version: str, kind: str, namespace: str = "") -> Mapping[str, ListResult]:
        both = self._comparison
        return both.run(
            f"all {kind}",
            lambda: both.active.reader.list(clusters, api_version, kind, namespace),
            lambda other: other.reader.list(clusters, api_version, kind, namespace),
            lambda one, two: list_differences(*_reported(one, two), both.names()),
        )

    def forget(self, clusters: Sequence[str], ref: ObjectRef) -> None:
        self._comparison.active.reader.forget(clusters, ref)


class ComparingPlacement:
    """Placement of the active one, compared. Changes are made by the active one only."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._active = comparison.active.placement

    def read(self, drpc: Object) -> Decision:
        both = self._comparison
        return both.run(
            f"decision of {drpc['metadata']['namespace']}/{drpc['metadata']['name']}",
            lambda: self._active.read(drpc),
            lambda other: other.placement.read(drpc),
            lambda one, two: [] if one == two else [_both(both.names(), _placed(one), _placed(two))],
        )

    def set(self, drpc: Object, cluster: str, stamp: Stamp) -> bool:
        return self._active.set(drpc, cluster, stamp)

    def retain(self, drpc: Object, cluster: str, stamp: Stamp) -> bool:
        return self._active.retain(drpc, cluster, stamp)

    def clear(self, drpc: Object, cluster: str, stamp: Stamp) -> bool:
        return self._active.clear(drpc, cluster, stamp)


def _reported(one: Mapping[str, Result], two: Mapping[str, Result]) -> tuple[dict[str, Result], dict[str, Result]]:
    """The answers of clusters that a hub has an answer of already. The next reconcile compares the others."""
    pending = {name for answers in (one, two) for name, answer in answers.items() if isinstance(answer, Pending)}
    first, second = ({name: answer for name, answer in answers.items() if name not in pending} for answers in (one, two))
    return first, second


def cluster_differences(one: Sequence[Cluster], two: Sequence[Cluster], modes: tuple[str, str]) -> list[str]:
    ones, twos = ({cluster.name: cluster for cluster in clusters} for clusters in (one, two))
    found = []
    for name in sorted({*ones, *twos}):
        first, second = ones.get(name), twos.get(name)
        if first is None or second is None:
            found.append(f"{name} is known to {modes[0] if first else modes[1]} only")
            continue
        for field in ("region", "healthy", "fenced", "fence_requested"):
            values = getattr(first, field), getattr(second, field)
            if values[0] != values[1]:
                described = [
                    f"{value} ({each.reason})" if field == "healthy" else str(value)
                    for value, each in zip(values, (first, second), strict=True)
                ]
                found.append(f"{field} of {name}: {_both(modes, *described)}")
    return found


def answer_differences(one: Mapping[str, ReadResult], two: Mapping[str, ReadResult], modes: tuple[str, str]) -> list[str]:
    found = []
    for name in sorted({*one, *two}):
        first, second = one.get(name), two.get(name)
        if isinstance(first, Found) and isinstance(second, Found):
            found += [f"{name} has another {path} by {modes[1]}" for path in _object_paths(first.item, second.item)]
        elif type(first) is not type(second):
            found.append(f"{name}: {_both(modes, _described(first), _described(second))}")
    return found


def list_differences(one: Mapping[str, ListResult], two: Mapping[str, ListResult], modes: tuple[str, str]) -> list[str]:
    return answer_differences(_by_name(one), _by_name(two), modes)


def _by_name(answers: Mapping[str, ListResult]) -> dict[str, ReadResult]:
    """The objects of lists, each as an answer of its own."""
    single: dict[str, ReadResult] = {}
    for cluster, answer in answers.items():
        if isinstance(answer, Listed):
            for item in answer.items:
                single[f"{cluster} {item['metadata'].get('namespace', '')}/{item['metadata']['name']}"] = Found(item)
        else:
            single[cluster] = answer
    return single


def _object_paths(one: Object, two: Object) -> Iterator[str]:
    """The status of another version of the object was reported at another time, and is not compared."""
    versions = [item["metadata"].get("resourceVersion") for item in (one, two)]
    yield from (path for path in _paths(one, two) if versions[0] == versions[1] or not path.startswith("status"))


def _paths(one: Any, two: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The paths at which two objects differ; without values, which may be long or secret."""
    if one == two or path in IGNORED:
        return
    if isinstance(one, dict) and isinstance(two, dict) and len(path) < 3:
        for key in sorted({*one, *two}):
            yield from _paths(one.get(key), two.get(key), (*path, key))
        return
    yield ".".join(path)


def _described(answer: ReadResult | None) -> str:
    if answer is None:
        return "Not listed"
    name = type(answer).__name__
    return f"{name} ({answer.why})" if isinstance(answer, Unreachable | Unauthorized) else name


def _placed(decision: Decision) -> str:
    return " ".join([decision.cluster or "none", *(f"(retained on {name})" for name in decision.retained)])


def _both(modes: tuple[str, str], one: str, two: str) -> str:
    return f"{one} by {modes[0]}, {two} by {modes[1]}"
