"""A process that contends for the lease of a workload, and prints each term as [start, end, epoch].

It reads its settings from standard input and ends on SIGTERM. Its own clock has its own speed; the printed times are from
the clock that all processes of the machine share.
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

from ansible_collections.openfleet.clusters.plugins.module_utils.common.clock import boottime
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.decision import DecisionStore
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease, verify_epoch
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import Fenced, S3Error
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect


@dataclass(frozen=True)
class Settings:
    """`speed` is the speed of the contender's clock. `ttl` is in seconds of that clock."""

    options: dict[str, Any]
    workload: list[str]
    instance: str
    speed: float
    ttl: float


class Contender:
    """Leads when it can, works, and releases the lease at random."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._running = True
        self._random = random.Random(settings.instance)  # noqa: S311 - repeatable
        store, self._workload = connect(settings.options), WorkloadRef(*settings.workload)
        self._lease = Lease(store, self._workload, "east", settings.instance, settings.ttl, lambda: boottime() * settings.speed)
        self._documents = DocumentStore(store, self._workload.identity())
        self._states = StateStore(self._documents, self._workload, settings.instance)

    def end(self, *_of: Any) -> None:
        self._running = False

    def contend(self) -> None:
        while self._running:
            try:
                if self._lease.try_acquire():
                    self._lead()
                else:
                    time.sleep(self._random.uniform(0.05, 0.3))
            except Fenced:
                with suppress(S3Error):
                    self._lease.release()
            except S3Error:
                time.sleep(0.1)

    def _lead(self) -> None:
        lease, epoch = self._lease, self._lease.epoch
        self._states.seal(epoch)
        start, end = boottime(), self._acts_until()
        try:
            while lease.acting() and self._running:
                end = self._acts_until()
                try:
                    self._work(epoch)
                    if self._random.random() < 0.2:
                        end = boottime()
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
            end = end if lease.acting() else min(end, boottime())
            # A process that was stopped between its seal and its start may have no time left. It never acted.
            if start < end:
                print(json.dumps([start, end, epoch]), flush=True)

    def _acts_until(self) -> float:
        return boottime() + self._lease.acting_seconds() / self._settings.speed

    def _work(self, epoch: int) -> None:
        verify_epoch(self._documents, self._workload, epoch)
        step = f"{epoch}-{self._settings.instance}-{self._random.random()}"
        DecisionStore(self._documents, self._workload).publish(self._states.write(epoch, {"step": step}))


def main() -> None:
    contender = Contender(Settings(**json.load(sys.stdin)))
    signal.signal(signal.SIGTERM, contender.end)
    contender.contend()


if __name__ == "__main__":
    main()
