# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Answers that reconciles share for a moment: what many workloads have in common is not read again for each of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

SECONDS = 1.0

Result = TypeVar("Result")


class Recent:
    """The last answer to each question, for `seconds` after it was asked. Safe for concurrent use.

    An error is an answer too: a server that fails is not asked by every reconcile at once.
    """

    def __init__(self, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._mutex = threading.Lock()
        self._answers: dict[Hashable, tuple[float, Future[Any]]] = {}

    def get(self, question: Hashable, read: Callable[[], Result]) -> Result:
        """The answer, which `read` gets unless it is known or on its way."""
        now = self._clock()
        with self._mutex:
            asked, answer = self._answers.get(question, (0.0, None))
            if answer is not None and now - asked < self._seconds:
                known, pending = answer, False
            else:
                known, pending = Future(), True
                self._answers[question] = (now, known)
        if pending:
            try:
                known.set_result(read())
            except BaseException as error:  # noqa: BLE001 - the threads that wait for the answer raise it
                known.set_exception(error)
        result: Result = known.result()
        return result
