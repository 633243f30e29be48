"""Conditions as Ramen writes them: the transition time changes with the status, the generation with every reconcile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ....plugins.module_utils.common.types import Object

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"


@dataclass(frozen=True)
class Condition:
    """The state of a condition; without a time, which depends on the condition before it."""

    type: str
    status: str
    reason: str
    message: str

    def to_object(self, generation: int, known: Object | None, now: str) -> Object:
        since = known["lastTransitionTime"] if known and known["status"] == self.status else now
        return {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "observedGeneration": generation,
            "lastTransitionTime": since,
        }


def by_type(status: Mapping[str, object] | None) -> dict[str, Object]:
    conditions = (status or {}).get("conditions") or []
    return {item["type"]: item for item in conditions} if isinstance(conditions, list) else {}


def is_true(known: Mapping[str, Object], kind: str, generation: int | None = None) -> bool:
    """Whether a condition is True; of this generation, where one is given."""
    item = known.get(kind)
    return bool(item and item["status"] == TRUE and generation in (None, item.get("observedGeneration")))


def merged(known: Mapping[str, Object], wanted: Iterable[Condition | Object], generation: int, now: str) -> list[Object]:
    """The conditions in their order. One that is an object already, of an earlier generation, is kept as it is."""
    return [item.to_object(generation, known.get(item.type), now) if isinstance(item, Condition) else item for item in wanted]
