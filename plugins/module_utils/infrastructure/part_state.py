# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a part of a cluster's infrastructure is ready, as roles report it. Plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ..common.types import Object


@dataclass(frozen=True)
class PartState:
    """`reason` is one CamelCase word; `message` names what is missing."""

    ready: bool
    reason: str
    message: str = ""

    def as_dict(self) -> Object:
        return asdict(self)
