"""Runs that die at a certain write: from then on no request of theirs is sent, as when their process was killed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import target
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError

_current = threading.local()


class Killed(BaseException):
    """Not an Exception: no code that handles errors runs in a process that was killed."""


def connect(options: Mapping[str, Any], *rest: Any) -> Kube:
    """To be used as `Kube.connect`: mortal for a run that `dies_at` has started in this thread, an ordinary one for others."""
    kube = Kube(target(options), *rest)
    _make_mortal(kube)
    return kube


def make_all_mortal(patch: pytest.MonkeyPatch) -> None:
    """As `connect`, for every connection of a run: also those into clusters."""
    initialize = Kube.__init__

    def initialize_mortal(kube: Kube, *arguments: Any, **options: Any) -> None:
        initialize(kube, *arguments, **options)
        _make_mortal(kube)

    patch.setattr(Kube, "__init__", initialize_mortal)


def _make_mortal(kube: Kube) -> None:
    writes_left = getattr(_current, "writes_left", None)
    if writes_left is not None:
        kube._transport.request = _mortal(kube._transport.request, writes_left)  # type: ignore[method-assign]  # noqa: SLF001


def _mortal(request: Callable[..., Any], writes_left: list[int]) -> Callable[..., Any]:
    """The requests of a run that dies at a write; the count is over all connections of the run.

    Events do not count: nothing depends on them, so a death at one is a death before the next write. Dry runs write nothing.
    """

    def send(method: str, path: str, what: str, query: Mapping[str, str] | None = None, *arguments: Any, **options: Any) -> Any:
        if method != "GET" and "/events" not in path and not (query or {}).get("dryRun"):
            writes_left[0] -= 1
        if writes_left[0] <= 0:
            if "/events" in path:  # its sender is perhaps a thread of the recorder, which would end with an unhandled error
                raise KubeError("The run was killed.")
            raise Killed
        return request(method, path, what, query, *arguments, **options)

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
