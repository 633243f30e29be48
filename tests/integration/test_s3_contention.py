"""Contenders in threads on a real S3 server, through a proxy that does everything at once: never do two of them act."""

from __future__ import annotations

import itertools
import random
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.coordination import Documents, Place, awake
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination_lease import Lease, read_lock, verify
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination_state import Decision, StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3 import connect
from ansible_collections.openfleet.clusters.plugins.module_utils.s3_errors import Fenced, S3Error

from .s3_proxy import Fault, Proxy

Options = dict[str, Any]
PLACE = Place("orders", "demo")
TTL = 3.0
SECONDS = 15.0
CONTENDERS = 4


def storm(seed: int) -> Any:
    """Of four requests one goes wrong, each time in another way."""
    chance = random.Random(seed)  # noqa: S311 - the same storm each time

    def invent(method: str) -> Fault | None:
        if chance.random() > 0.25:
            return None
        reads = {"forwarded": False} if method == "GET" else {}
        return chance.choice(
            [
                Fault(),
                Fault(forwarded=False),
                Fault(status=500, **reads),
                Fault(status=503, forwarded=False),
                Fault(status=412 if method == "PUT" else 500),
                Fault(status=409 if method == "PUT" else 500, forwarded=False),
                Fault(hold=0.3),
                Fault(hold=0.2, after=chance.uniform(0.2, 2.0)),
            ]
        )

    return invent


@dataclass
class Contender(threading.Thread):
    """Leads when it can, works, stops now and then, and writes down from when to when it was allowed to act under which epoch."""

    options: Options
    number: int
    until: float
    terms: list[tuple[float, float, int]] = field(default_factory=list)
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def __hash__(self) -> int:
        return self.number

    def run(self) -> None:
        try:
            self._contend()
        except BaseException as error:  # noqa: BLE001 - the test sees it
            self.failure = error

    def _contend(self) -> None:
        store, chance = connect(self.options), random.Random(self.number)  # noqa: S311 - the same each time
        lease = Lease(store, PLACE, "east", f"east-{self.number}", TTL)
        documents = Documents(store, PLACE.identity())
        states = StateStore(documents, PLACE, lease.instance)
        while awake() < self.until:
            try:
                if not lease.attempt():
                    time.sleep(chance.uniform(0.05, 0.3))
                    continue
                self._lead(lease, documents, states, chance)
            except Fenced:
                with suppress(S3Error):
                    lease.release()
            except S3Error:
                time.sleep(0.1)

    def _lead(self, lease: Lease, documents: Documents, states: StateStore, chance: random.Random) -> None:
        epoch = lease.epoch
        states.seal(epoch)
        start, end = awake(), awake() + lease.acting_seconds()
        try:
            while lease.acting():
                end = awake() + lease.acting_seconds()
                try:
                    verify(documents, PLACE, epoch)
                    Decision(documents, PLACE).publish(states.write(epoch, {"step": f"{epoch}-{self.number}-{chance.random()}"}))
                    if chance.random() < 0.2:
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
            self.terms.append((start, min(end, awake()) if not lease.acting() else end, epoch))


def test_nobody_acts_beside_another_in_a_storm(faulty: tuple[Proxy, Options], bucket: Options) -> None:
    proxy, options = faulty
    proxy.invent = storm(1)
    until = awake() + SECONDS
    contenders = [Contender(options, number, until) for number in range(CONTENDERS)]
    for contender in contenders:
        contender.start()
    for contender in contenders:
        contender.join(SECONDS * 6)
        assert contender.failure is None
        assert not contender.is_alive()
    terms = sorted(term for contender in contenders for term in contender.terms)
    assert len(terms) > 3, "nobody has led; the storm was too strong to show anything"
    for (_start, end, epoch), (start, _end, later) in itertools.pairwise(terms):
        assert end <= start, f"epochs {epoch} and {later} acted at the same time"
        assert epoch < later
    # What is stored tells the same story, read without the proxy.
    time.sleep(2.5)
    documents = Documents(connect(bucket), PLACE.identity())
    states = StateStore(documents, PLACE)
    last, history = states.read(), states.history.entries()
    revisions = [entry["revision"] for entry in history]
    assert revisions == sorted(set(revisions))
    assert set(range(1, last.revision)) <= set(revisions), "a revision is missing in the history"
    epochs = [entry["epoch"] for entry in history]
    assert epochs == sorted(epochs)
    writers: dict[int, set[str]] = {}
    for entry in history:
        writers.setdefault(entry["epoch"], set()).add(entry["writer"])
    assert all(len(names) == 1 for names in writers.values())
    assert read_lock(documents, PLACE).epoch >= last.epoch
