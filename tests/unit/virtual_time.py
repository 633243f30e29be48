"""Actors in virtual time: threads of which one runs at a time, and a script of bytes that decides faults and choices.

An actor that waits wakes the next one, so a minute of waiting takes no time, and the same script gives the same run.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence


class Violation(AssertionError):
    """An invariant does not hold."""


class Ended(BaseException):
    """The run has ended. Unwinds threads that still wait."""


class Actor:
    """A thread that runs only in its turn."""

    def __init__(self, time: VirtualTime, work: Callable[[], None]) -> None:
        self._time = time
        self.turn = threading.Lock()
        self.turn.acquire()
        self.thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self.thread.start()

    def _run(self, work: Callable[[], None]) -> None:
        self.turn.acquire()
        time = self._time
        try:
            if not time.is_over:
                work()
        except Ended:
            return
        except BaseException as error:  # noqa: BLE001 - raised again in the test
            time.failure = time.failure or error
        time.next_actor()


class VirtualTime:
    """One run. A subclass starts its actors, calls `play`, and checks its invariants in `check`, at each change of the time.

    Bytes of the script below `fault_threshold` cause no fault. `settle` seconds after the script has ended, the run ends.
    """

    def __init__(self, script: bytes, fault_threshold: int, faults: Sequence[str], duration: float, settle: float) -> None:
        self.now = 0.0
        self.is_over = False
        self.failure: BaseException | None = None
        self.requests = 0
        self._fault_threshold, self._faults, self._settle = fault_threshold, faults, settle
        self._scripted, self._script = bool(script), iter(script)
        self._end = self._duration = duration
        self._events: list[tuple[float, int, Actor | Callable[[], None]]] = []
        self._numbers: Iterator[int] = itertools.count()
        self._finished = threading.Lock()
        self._finished.acquire()
        self._current: Actor | None = None
        self._actors: list[Actor] = []

    def play(self) -> None:
        """Have the actors run until the end, and raise what has failed."""
        self.next_actor()
        self._finished.acquire()
        self.is_over = True
        for actor in self._actors:
            if actor.thread.is_alive():
                actor.turn.release()
                actor.thread.join()
        if self.failure:
            raise self.failure

    def check(self) -> None:
        """Violation where an invariant does not hold now."""

    # Time and turns

    def start(self, work: Callable[[], None], delay: float = 0.0) -> None:
        actor = Actor(self, work)
        self._actors.append(actor)
        self._push(delay, actor)

    def after(self, delay: float, effect: Callable[[], None]) -> None:
        self._push(delay, effect)

    def wait(self, seconds: float) -> None:
        """Called by the current actor: continue after so many seconds."""
        if self.is_over:
            raise Ended
        actor = self._current
        assert actor is not None
        self._push(seconds, actor)
        if self._next() is not actor:
            actor.turn.acquire()
        if self.is_over:
            raise Ended
        self._current = actor

    def next_actor(self) -> None:
        """Called by an actor that has ended."""
        self._next()

    def _push(self, delay: float, what: Actor | Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + delay, next(self._numbers), what))

    def _next(self) -> Actor | None:
        """Advance the clock and wake the next actor, unless that is the current one."""
        while self._events and not self.failure:
            when, _number, what = heapq.heappop(self._events)
            if when > self._end:
                break
            self.now = when
            try:
                self.check()
                if not isinstance(what, Actor):
                    what()
                    continue
            except Violation as error:
                self.failure = error
                break
            if what is not self._current or self._current is None:
                self._current = what
                what.turn.release()
            return what
        self._finished.release()
        return None

    # The script

    def _byte(self) -> int:
        byte = next(self._script, None)
        if byte is None:
            self._end = min(self._end, self.now + self._settle) if self._scripted else self._duration
        return byte or 0

    def choose(self, of: int) -> int:
        return self._byte() % of

    def fault(self) -> tuple[str, float]:
        """The fault of the next request, if any, and its duration in seconds."""
        self.requests += 1
        byte = self._byte()
        if byte < self._fault_threshold:
            return "", 0.01 + (byte % 4) * 0.05
        return self._faults[byte % len(self._faults)], 0.5 * 1.25 ** (self._byte() % 24)
