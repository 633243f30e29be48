# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Exact versions for the profiles of an order: newest first, within all ranges, needs and conflicts. It writes nothing.

What the order asks for as before keeps its version, whatever the repositories have now; only the rest is resolved. A search tries the
newest versions first and goes back where they do not fit together. Its first dead end is the one that the error names: it is the
combination that a tenant expects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...common.semantic_version import Range, Version
from ...infrastructure.profile_offer import OfferedProfile, ProfileOffer
from .chart_archive import BadChart, read_chart
from .charts import Charts
from .errors import InvalidProfiles
from .fetch import Deadline
from .layers import dependencies, layer_problems
from .lock_file import LockedProfile, LockedRepository, ProfilesLock
from .repository_charts import BadAnnotation, ChartMetadata
from .requests import MAX_PROFILES, Request, Rules, dependency
from .values import merged

MAX_STEPS = 2000
SHOWN_VERSIONS = 3
DEFAULT_LAYER = 0


@dataclass(frozen=True)
class Candidate:
    """A release at one version. `kept` is its entry of the lock file where nothing is to be changed."""

    request: Request
    version: Version
    layer: int
    requires: Mapping[str, tuple[Range, ...]] = field(default_factory=dict)
    conflicts: tuple[str, ...] = ()
    kept: LockedProfile | None = None

    def __str__(self) -> str:
        return f"{self.request.name} {self.version}"


Chosen = dict[str, Candidate]


class Resolution:
    """One resolution. `offered` are the profiles that the order may have, `before` is its lock file."""

    def __init__(self, offer: ProfileOffer, offered: Mapping[str, OfferedProfile], rules: Rules | None, charts: Charts) -> None:
        self._offer = offer
        self._offered = offered
        self._rules = rules
        self._charts = charts
        self._deadline = Deadline()
        self._metadata: dict[tuple[str, Version], ChartMetadata] = {}
        self._problem = ""
        self._steps = 0
        self._before: Mapping[str, LockedProfile] = {}
        self._locked_profiles: set[str] = set()

    def resolve(self, requests: Sequence[Request], before: ProfilesLock) -> ProfilesLock:
        """The lock file; InvalidProfiles where there is none, RepositoryFailed where a repository cannot be read."""
        self._before = {item.name: item for item in before.profiles}
        self._locked_profiles = {item.profile for item in before.profiles}
        chosen = self._search({}, tuple(requests))
        if chosen is None:
            raise InvalidProfiles([self._problem])
        layers = {name: candidate.layer for name, candidate in chosen.items()}
        needs = {name: _needs(candidate, chosen) for name, candidate in chosen.items()}
        if problems := layer_problems(layers, needs):
            raise InvalidProfiles(problems)
        waits = dependencies(layers, needs)
        mistakes: list[str] = []
        entries = [self._locked(candidate, waits[name], mistakes) for name, candidate in chosen.items()]
        if mistakes:
            raise InvalidProfiles(mistakes)
        entries.sort(key=lambda item: (item.layer, item.name))
        used = {item.repository for item in entries}
        kept = {name: item for name, item in before.repositories.items() if name in used}
        offered = {item.name: LockedRepository(item.url, item.ca, item.insecure) for item in self._offer.repositories.values()}
        return ProfilesLock(tuple(entries), kept | {name: item for name, item in offered.items() if name in used})

    # The search

    def _search(self, chosen: Chosen, pending: tuple[Request, ...]) -> Chosen | None:
        self._steps += 1
        if self._steps > MAX_STEPS or len(chosen) + len(pending) > MAX_PROFILES:
            raise InvalidProfiles([f"there are too many combinations: {self._problem or 'use fewer profiles'}; set exact versions"])
        if not pending:
            return chosen
        request, rest = pending[0], pending[1:]
        for candidate in self._candidates(request):
            trial = chosen | {request.name: candidate}
            if problem := self._violation(trial, rest):
                self._note(problem)
            elif found := self._search(trial, (*rest, *self._missing(trial, rest))):
                return found
        return None

    def _note(self, problem: str) -> None:
        self._problem = self._problem or problem

    def _candidates(self, request: Request) -> Iterator[Candidate]:
        locked = self._before.get(request.name)
        same = locked is not None and locked.profile == request.profile and locked.request == request.hash
        if locked is not None and same:
            yield _kept(request, locked)
            if not request.dependency:
                return  # an order that asks for the same keeps what it has
        profile = self._offered.get(request.profile)
        if profile is None:
            self._note(f"profile {request.name}: {request.profile} is no longer on offer: leave it as it was, or remove it")
            return
        known = self._charts.of(profile.repository).versions(profile.chart, self._deadline)
        found = matching(known, profile, request.ranges)
        if locked is not None and locked.profile == request.profile:
            found.sort(key=lambda version: version.text != locked.version)  # a change of values is no upgrade
        if not found:
            wanted = _texts([profile.versions, *map(Range.parse, request.ranges)]) or "any version"
            newest = ", ".join(map(str, known[:SHOWN_VERSIONS])) or "none"
            chart = f"{profile.chart} in {profile.repository}"
            self._note(f"profile {request.name}: no version of {chart} matches {wanted}; the newest are {newest}")
        for version in found:
            yield self._candidate(request, profile, version)

    def _candidate(self, request: Request, profile: OfferedProfile, version: Version) -> Candidate:
        key = profile.name, version
        if key not in self._metadata:
            try:
                self._metadata[key] = self._charts.of(profile.repository).metadata(profile.chart, version, self._deadline)
            except BadAnnotation as error:
                raise InvalidProfiles([f"profile {request.name}: the chart {profile.chart} {version} {error}"]) from None
        metadata = self._metadata[key]
        layers = (request.layer, profile.layer, metadata.layer)
        requires = {
            name: tuple(each[name] for each in (profile.requires, metadata.requires) if name in each)
            for name in {**profile.requires, **metadata.requires}
        }
        layer = next((layer for layer in layers if layer is not None), DEFAULT_LAYER)
        return Candidate(request, version, layer, requires, tuple(dict.fromkeys((*profile.conflicts, *metadata.conflicts))))

    def _violation(self, chosen: Chosen, rest: Sequence[Request]) -> str:
        """Why these do not fit together; what is still pending may fit."""
        names = {*chosen, *(request.name for request in rest)}
        pending = {request.profile for request in rest}
        for candidate in chosen.values():
            for needed, ranges in candidate.requires.items():
                present = [other for other in chosen.values() if other.request.profile == needed]
                if needed in pending or any(_matches(other, ranges) for other in present):
                    continue
                wanted = f"{candidate} needs {needed} {_texts(ranges)}".rstrip()
                if present:
                    return f"{wanted}, and the order has {', '.join(map(str, present))}"
                if needed not in self._offered and needed not in self._locked_profiles:
                    return f"{wanted}, which is not on offer"
                if needed in names:
                    return f"{wanted}, and the name {needed} is that of another profile: use another name for that"
            beside = [str(other) for other in chosen.values() if other.request.profile in candidate.conflicts and other is not candidate]
            if beside:
                return f"{candidate} cannot be installed beside {', '.join(beside)}"
        return ""

    def _missing(self, chosen: Chosen, rest: Sequence[Request]) -> list[Request]:
        present = {*(each.request.profile for each in chosen.values()), *(request.profile for request in rest)}
        needed = dict.fromkeys(name for each in chosen.values() for name in each.requires if name not in present)
        return [dependency(name, self._rules) for name in needed]

    # The result

    def _locked(self, candidate: Candidate, waits: tuple[str, ...], mistakes: list[str]) -> LockedProfile:
        request, kept = candidate.request, candidate.kept
        if kept is not None:
            return LockedProfile(**{**vars(kept), "dependsOn": waits})
        profile = self._offered[request.profile]
        values = merged(profile.values, request.values)
        return LockedProfile(
            request.name,
            profile.name,
            profile.chart,
            profile.repository,
            candidate.version.text,
            self._checked_digest(candidate, profile, values, mistakes),
            candidate.layer,
            request.namespace or profile.namespace or request.name,
            values,
            waits,
            {name: tuple(each.text for each in ranges) for name, ranges in candidate.requires.items()},
            candidate.conflicts,
            request.hash,
        )

    def _checked_digest(self, candidate: Candidate, profile: OfferedProfile, values: Mapping[str, object], mistakes: list[str]) -> str:
        from .values_schema import values_problems  # here, as most runs check no values, and the validator takes long to load

        fetched = self._charts.of(profile.repository).fetch(profile.chart, candidate.version, self._deadline)
        locked = self._before.get(candidate.request.name)
        same = locked is not None and (locked.repository, locked.chart, locked.version) == (
            profile.repository,
            profile.chart,
            candidate.version.text,
        )
        if locked is not None and same and locked.digest != fetched.digest:
            mistakes.append(f"{candidate} is another chart than it was: the repository has changed a version; choose another version")
        try:
            mistakes.extend(f"{candidate}: {problem}" for problem in values_problems(read_chart(fetched.archive), values))
        except BadChart as error:
            mistakes.append(f"{candidate}: the chart {profile.chart} {error}")
        return fetched.digest


def matching(versions: Sequence[Version], profile: OfferedProfile, ranges: Sequence[str]) -> list[Version]:
    """The versions within the site's range and these. An empty range means any version, also a prerelease that another one names."""
    given = [each for each in (profile.versions, *map(Range.parse, ranges)) if each.text] or [profile.versions]
    return [version for version in versions if all(each.matches(version) for each in given)]


def _kept(request: Request, locked: LockedProfile) -> Candidate:
    requires = {name: tuple(map(Range.parse, texts)) for name, texts in locked.requires.items()}
    version = Version.parse(locked.version)
    if version is None:
        raise AssertionError("what is locked was a version")
    return Candidate(request, version, locked.layer, requires, locked.conflicts, locked)


def _texts(ranges: Sequence[Range]) -> str:
    return " and ".join(each.text for each in ranges if each.text)


def _matches(candidate: Candidate, ranges: Sequence[Range]) -> bool:
    return all(not each.text or each.matches(candidate.version) for each in ranges)


def _needs(candidate: Candidate, chosen: Chosen) -> list[str]:
    return [
        name
        for name, other in chosen.items()
        if other is not candidate and (ranges := candidate.requires.get(other.request.profile)) is not None and _matches(other, ranges)
    ]
