"""A process that contends for a place on a clock of its own speed, and prints from when to when it was allowed to act under which epoch.

It is told what it needs on its standard input, and ends on SIGTERM. Times are of the clock that all processes of the machine share.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import Documents, Place, awake
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease, verify
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import Decision, StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import Fenced, S3Error
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect


@dataclass(frozen=True)
class Settings:
    """`instance` is its name, `speed` how fast its clock goes, and `ttl` is in seconds of that clock."""

    options: dict[str, Any]
    place: list[str]
    instance: str
    speed: float
    ttl: float


class Contender:
    """Leads when it can, works, and gives back now and then."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._going = True
        self._chance = random.Random(settings.instance)  # noqa: S311 - the same each time
        store, self._place = connect(settings.options), Place(*settings.place)
        self._lease = Lease(store, self._place, "east", settings.instance, settings.ttl, lambda: awake() * settings.speed)
        self._documents = Documents(store, self._place.identity())
        self._states = StateStore(self._documents, self._place, settings.instance)

    def end(self, *_of: Any) -> None:
        self._going = False

    def contend(self) -> None:
        while self._going:
            try:
                if self._lease.attempt():
                    self._lead()
                else:
                    time.sleep(self._chance.uniform(0.05, 0.3))
            except Fenced:
                with suppress(S3Error):
                    self._lease.release()
            except S3Error:
                time.sleep(0.1)

    def _lead(self) -> None:
        lease, epoch = self._lease, self._lease.epoch
        self._states.seal(epoch)
        start, end = awake(), self._may_act_until()
        try:
            while lease.acting() and self._going:
                end = self._may_act_until()
                try:
                    self._work(epoch)
                    if self._chance.random() < 0.2:
                        end = awake()
                        lease.release()
                        time.sleep(0.5)
                        return
                    if not lease.renew():
                        return
                except Fenced:
                    raise
                except S3Error:
                    continue
        finally:
            end = end if lease.acting() else min(end, awake())
            # One that was stopped between its seal and its start may have no time left, and has never acted.
            if start < end:
                print(json.dumps([start, end, epoch]), flush=True)

    def _may_act_until(self) -> float:
        return awake() + self._lease.acting_seconds() / self._settings.speed

    def _work(self, epoch: int) -> None:
        verify(self._documents, self._place, epoch)
        step = f"{epoch}-{self._settings.instance}-{self._chance.random()}"
        Decision(self._documents, self._place).publish(self._states.write(epoch, {"step": step}))


def main() -> None:
    contender = Contender(Settings(**json.load(sys.stdin)))
    signal.signal(signal.SIGTERM, contender.end)
    contender.contend()


if __name__ == "__main__":
    main()
