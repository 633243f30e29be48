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


def connect(options: Mapping[str, Any], *rest: Any) -> Kube:
    """To be used as `Kube.connect`: mortal for a run that `dies_at` has started in this thread, an ordinary one for others."""
    kube = Kube(target(options), *rest)
    writes_left = getattr(_current, "writes_left", None)
    if writes_left is not None:
        kube._transport.request = _mortal(kube._transport.request, writes_left)  # type: ignore[method-assign]  # noqa: SLF001
    return kube


def _mortal(request: Callable[..., Any], writes_left: list[int]) -> Callable[..., Any]:
    """The requests of a run that dies at a write; the count is over all connections of the run.

    Events do not count: nothing depends on them, so a death at one is a death before the next write.
    """

    def send(method: str, path: str, *arguments: Any, **options: Any) -> Any:
        if method != "GET" and "/events" not in path:
            writes_left[0] -= 1
        if writes_left[0] <= 0:
            raise Killed
        return request(method, path, *arguments, **options)

    return send


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
