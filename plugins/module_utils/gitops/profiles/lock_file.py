# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lock file of an order: its profiles with exact versions and digests. A value with its JSON; nothing here resolves or fetches.

It is an annotation of the order, which only the controller can change. What it has is installed, whatever the repositories have since.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from ...kube.errors import Invalid

ANNOTATION = "profiles-lock"  # after the API group of the order and a slash
MAX_BYTES = 128 * 1024  # all annotations of an object have 256 KiB


@dataclass(frozen=True)
class LockedRepository:
    """A repository of charts. Its url starts with https://, http:// or oci://; `ca` has certificates in PEM, `insecure` means HTTP."""

    url: str
    ca: str = ""
    insecure: bool = False

    @property
    def is_oci(self) -> bool:
        return self.url.startswith("oci://")


@dataclass(frozen=True)
class LockedProfile:
    """One release. `profile` is what the site offers, of which a cluster can have several releases; `chart` is its chart's name.

    `digest` is that of the chart's archive in an HTTP repository, or of the manifest in a registry. `requires` has ranges of versions by
    profile, `conflicts` profiles; `request` is the hash of what template and order asked for.
    """

    name: str
    profile: str
    chart: str
    repository: str
    version: str
    digest: str
    layer: int = 0
    namespace: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    dependsOn: tuple[str, ...] = ()  # noqa: N815 - the names of the JSON
    requires: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    conflicts: tuple[str, ...] = ()
    request: str = ""


@dataclass(frozen=True)
class ProfilesLock:
    """The profiles of an order, ordered by layer and name, and the repositories of their charts."""

    profiles: tuple[LockedProfile, ...] = ()
    repositories: Mapping[str, LockedRepository] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str) -> ProfilesLock:
        """An empty text is an empty lock. One that cannot be read is an error: it is ours, so another version or a person wrote it."""
        if not text:
            return cls()
        try:
            document = json.loads(text)
            return cls(
                tuple(_profile(item) for item in document["profiles"]),
                {name: LockedRepository(**item) for name, item in document.get("repositories", {}).items()},
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise Invalid(
                "The lock file of the order's profiles cannot be read: remove its annotation, and its profiles are resolved again.", []
            ) from None

    def to_json(self) -> str:
        """The same text for the same lock; Invalid where it is too long for an annotation."""
        document = {
            "profiles": [_without_empty(asdict(item)) for item in self.profiles],
            "repositories": {name: _without_empty(asdict(item)) for name, item in sorted(self.repositories.items())},
        }
        text = json.dumps(document, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        if len(text.encode()) > MAX_BYTES:
            raise Invalid(
                f"The profiles of the order with their values have more than {MAX_BYTES // 1024} KiB: use fewer or shorter values.", []
            )
        return text

    @cached_property
    def revisions(self) -> Mapping[str, str]:
        """A hash of each release and of all that it depends on, so that another one below means another one above."""
        by_name, found = {item.name: item for item in self.profiles}, dict[str, str]()

        def revision(name: str) -> str:
            if name not in found:
                item = by_name[name]
                own = asdict(item) | {"request": "", "url": self.repositories[item.repository].url}
                below = [revision(each) for each in item.dependsOn]
                found[name] = hashlib.sha256(json.dumps([own, below], sort_keys=True).encode()).hexdigest()[:16]
            return found[name]

        return {item.name: revision(item.name) for item in self.profiles}


def _profile(item: Mapping[str, Any]) -> LockedProfile:
    tuples = {key: tuple(item.get(key, ())) for key in ("dependsOn", "conflicts")}
    requires = {name: tuple(ranges) for name, ranges in item.get("requires", {}).items()}
    return LockedProfile(**{**item, **tuples, "requires": requires})


def _without_empty(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if value or key == "layer"}
