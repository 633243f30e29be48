"""Runs that die at a certain write: from then on no request of theirs is sent, as when their process was killed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import target

_current = threading.local()


class Killed(BaseException):
    """Not an Exception: no code that handles errors runs in a process that was killed."""


class MortalKube(Kube):
    """A connection of a run that dies at a write; the count is over all connections of the run."""

    writes_left: list[int]

    def _exchange(self, method: str, *arguments: Any, **options: Any) -> Any:
        if method != "GET":
            self.writes_left[0] -= 1
        if self.writes_left[0] <= 0:
            raise Killed
        return super()._exchange(method, *arguments, **options)


def connect(options: Mapping[str, Any], *rest: Any) -> Kube:
    """To be used as `Kube.connect`: mortal for a run that `dies_at` has started in this thread, an ordinary one for others."""
    writes_left = getattr(_current, "writes_left", None)
    if writes_left is None:
        return Kube(target(options), *rest)
    kube = MortalKube(target(options), *rest)
    kube.writes_left = writes_left
    return kube


def dies_at(write: int, run: Callable[[], object]) -> bool:
    """Whether the run dies at this write, which is not made; False where it has fewer."""
    _current.writes_left = [write]
    try:
        run()
    except Killed:
        return True
    finally:
        del _current.writes_left
    return False
