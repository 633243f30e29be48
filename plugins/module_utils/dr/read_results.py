# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The results of reading an object of a cluster. Only Found, Listed and Absent are knowledge of the cluster.

A cluster that does not answer, or refuses the credentials, may still have the object and may still run the workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

from ..common.types import Object


@dataclass(frozen=True)
class Found:
    """The object as the cluster returned it."""

    item: Object


@dataclass(frozen=True)
class Listed:
    """All objects of a kind."""

    items: Sequence[Object]


@dataclass(frozen=True)
class Absent:
    """The cluster answered that it does not have the object."""


@dataclass(frozen=True)
class Unreachable:
    """No usable response arrived in time. `why` says what failed and what to do."""

    why: str


@dataclass(frozen=True)
class Pending(Unreachable):
    """A hub has no result yet, because the read, or a change of the object, began a moment ago."""


@dataclass(frozen=True)
class Unauthorized:
    """The cluster refuses the credentials or the request, or there are no valid credentials for it."""

    why: str


# Not by `|`, which the pylint of ansible-test takes for an operation on dataclasses.
Unknown = Union[Unreachable, Unauthorized]  # noqa: UP007
ReadResult = Union[Found, Absent, Unreachable, Unauthorized]  # noqa: UP007
ListResult = Union[Listed, Unreachable, Unauthorized]  # noqa: UP007
