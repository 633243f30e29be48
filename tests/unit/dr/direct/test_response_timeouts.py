"""The timeouts of a cluster that hangs, by the responses to earlier requests."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.direct.response_timeouts import SHORT_SECONDS, ResponseTimeouts
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.read_results import Absent, Unauthorized, Unreachable

FULL, LONG = 10.0, 5.0


def answered(answer: Any) -> Future[Any]:
    request: Future[Any] = Future()
    if isinstance(answer, Exception):
        request.set_exception(answer)
    elif answer is not None:
        request.set_result(answer)
    return request


@pytest.mark.parametrize(
    ("answer", "took", "seconds"),
    [
        (Absent(), LONG, FULL),
        (Unreachable("refused"), 0.1, FULL),
        (Unreachable("timed out"), LONG, SHORT_SECONDS),
        (Unauthorized("proxy"), LONG, SHORT_SECONDS),
        (RuntimeError(), LONG, FULL),
        (None, FULL, 0.0),
    ],
)
def test_next_wait_follows_from_the_last_answer(answer: Any, took: float, seconds: float) -> None:
    timeouts = ResponseTimeouts()
    assert timeouts.seconds("east", FULL) == FULL
    timeouts.note("east", answered(answer), took)
    assert (timeouts.seconds("east", FULL), timeouts.seconds("west", FULL)) == (seconds, FULL)


def test_late_answer_restores_the_full_time_and_a_late_failure_a_short_one() -> None:
    for late, seconds in ((Absent(), FULL), (Unreachable("timed out"), SHORT_SECONDS)):
        timeouts, request = ResponseTimeouts(), answered(None)
        timeouts.note("east", request, FULL)
        request.set_result(late)
        assert timeouts.seconds("east", FULL) == seconds
        timeouts.note("east", answered(Absent()), 0.1)
        assert timeouts.seconds("east", FULL) == FULL
