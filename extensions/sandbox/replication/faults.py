"""What an annotation asks of the stand-in: delays, the interval of the replication, and faults. It calls no API server.

A VolumeReplicationGroup that does not exist yet cannot have an annotation: that of its namespace counts for all groups in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ....plugins.module_utils.common.types import Object

FAULT = "standin.openfleet.clusters/fault"
STALE, RESTORE_ERROR, UPLOAD_ERROR, NEVER_SECONDARY, NO_SYNC, MAINTENANCE = WORDS = (
    "stale",
    "restore-error",
    "upload-error",
    "never-secondary",
    "no-sync",
    "maintenance",
)
# Steps that take no time unless they are asked to.
OBSERVE, RESTORE, PROTECT, UPLOAD, SECONDARY, PREPARE, FINAL_SYNC, FENCE, ACTIVATE = STEPS = (
    "observe",
    "restore",
    "protect",
    "upload",
    "secondary",
    "prepare",
    "final-sync",
    "fence",
    "activate",
)
INTERVAL, LAG = "interval", "lag"


@dataclass(frozen=True)
class Faults:
    """The words of the annotations, and the seconds of those that have some; `unknown` has the words that mean nothing."""

    words: frozenset[str] = frozenset()
    seconds: dict[str, float] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    @classmethod
    def of(cls, *items: Object | None) -> Faults:
        """The faults of the objects together; of several numbers for the same step the first counts."""
        words: set[str] = set()
        seconds: dict[str, float] = {}
        unknown = []
        for word in _words(items):
            name, equals, value = word.partition("=")
            if equals and name in (*STEPS, INTERVAL, LAG) and value.replace(".", "", 1).isdecimal():
                seconds.setdefault(name, float(value))
            elif word in WORDS:
                words.add(word)
            else:
                unknown.append(word)
        return cls(frozenset(words), seconds, tuple(unknown))

    def __contains__(self, word: str) -> bool:
        return word in self.words

    @property
    def problem(self) -> str:
        return f"The stand-in knows no fault {', '.join(self.unknown)}" if self.unknown else ""


def _words(items: Iterable[Object | None]) -> list[str]:
    texts = [(item["metadata"].get("annotations") or {}).get(FAULT, "") for item in items if item]
    return [word.strip() for text in texts for word in text.split(",") if word.strip()]


class Step(NamedTuple):
    """One step of one object: it begins again with each generation."""

    site: str
    uid: str
    generation: int
    name: str


class Delays:
    """When each step began, by a clock of its own process: a stand-in that was restarted counts from the beginning."""

    def __init__(self) -> None:
        self._began: dict[Step, float] = {}

    def remaining(self, step: Step, seconds: float, now: float) -> float:
        """How many seconds are left of a step; the first call begins it."""
        return max(0.0, self._began.setdefault(step, now) + seconds - now) if seconds else 0.0

    def forget(self, site: str, uid: str) -> None:
        self._began = {step: began for step, began in self._began.items() if (step.site, step.uid) != (site, uid)}
