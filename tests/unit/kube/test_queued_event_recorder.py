"""Events that are written by threads of their own: nothing waits for them but the end of a run, and none is lost without a word."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime
from typing import cast

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import event_recorder
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Forbidden
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.event_recorder import Event, QueuedEventRecorder

TIMEOUT_SECONDS = 60
ORDER = {
    "apiVersion": "example.com/v1",
    "kind": "ClusterOrder",
    "metadata": {"name": "demo", "namespace": "orders", "uid": "u1", "resourceVersion": "7", "labels": {"not": "needed"}},
    "status": {"phase": "Ready"},
}


class Hub:
    """Takes Events once it is open. Those with the reason Refused raise `error`."""

    def __init__(self, error: Exception | None = None) -> None:
        self.open = threading.Event()
        self.created: list[Object] = []
        self.time = datetime(2026, 1, 1, tzinfo=UTC)
        self._error = error

    def server_time(self) -> datetime:
        return self.time

    def create(self, item: Object) -> Object:
        assert self.open.wait(TIMEOUT_SECONDS)
        if self._error and item["reason"] == "Refused":
            raise self._error
        self.created.append(item)
        return item


def recorder(hub: Hub) -> QueuedEventRecorder:
    return QueuedEventRecorder(cast(Kube, hub))


def reasons(hub: Hub) -> list[str]:
    return sorted(item["reason"] for item in hub.created)


def test_nothing_waits_for_an_event_but_the_end_of_the_run() -> None:
    hub = Hub()
    events = recorder(hub)
    events.record(ORDER, [Event(f"Reason{number}", "message") for number in range(5)])
    assert not events.flush(0.01), "not written yet"
    hub.time = datetime(2026, 1, 2, tzinfo=UTC)
    hub.open.set()
    assert events.flush(TIMEOUT_SECONDS)
    assert reasons(hub) == [f"Reason{number}" for number in range(5)]
    assert {item["firstTimestamp"] for item in hub.created} == {"2026-01-01T00:00:00Z"}, "when it happened, not when it was written"
    assert {item["involvedObject"]["resourceVersion"] for item in hub.created} == {"7"}


def test_the_end_of_the_run_waits_for_no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_recorder, "MANY", 0)
    monkeypatch.setattr(event_recorder, "PAUSE_SECONDS", 10 * TIMEOUT_SECONDS)
    hub = Hub()
    hub.open.set()
    events = recorder(hub)
    events.record(ORDER, [Event(f"Reason{number}", "message") for number in range(20)])
    assert events.flush(TIMEOUT_SECONDS)
    assert len(hub.created) == 20


def test_it_works_again_after_a_flush_and_keeps_no_thread() -> None:
    hub = Hub()
    hub.open.set()
    events = recorder(hub)
    for _round in range(3):
        events.record(ORDER, [Event("Reason", "message")])
        assert events.flush(TIMEOUT_SECONDS)
    assert reasons(hub) == ["Reason"] * 3
    for thread in [thread for thread in threading.enumerate() if thread.name == "events"]:
        thread.join(TIMEOUT_SECONDS)
    assert [thread for thread in threading.enumerate() if thread.name == "events"] == []


@pytest.mark.parametrize("error", [Forbidden("events are not for this account"), RuntimeError("a fault of our own")])
def test_an_event_that_is_not_written_is_logged_and_keeps_none_from_being_written(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    hub = Hub(error)
    hub.open.set()
    events = recorder(hub)
    with caplog.at_level(logging.WARNING):
        events.record(ORDER, [Event("Refused", "message"), Event("Accepted", "message")])
        assert events.flush(TIMEOUT_SECONDS)
    assert reasons(hub) == ["Accepted"]
    assert f"the Event Refused about ClusterOrder demo was not written: {error}" in caplog.text


def test_more_than_can_wait_are_dropped_and_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(event_recorder, "QUEUED", 3)
    monkeypatch.setattr(event_recorder, "WRITERS", 0)  # none takes one meanwhile
    hub = Hub()
    with caplog.at_level(logging.WARNING):
        recorder(hub).record(ORDER, [Event(f"Reason{number}", "message") for number in range(4)])
    assert [record.getMessage() for record in caplog.records] == [
        "the Event Reason3 about ClusterOrder demo was not written: too many others wait"
    ]
