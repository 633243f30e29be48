# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Requests that must not be processed twice: when their answer is lost, what they were to do is looked up before they are repeated."""

from __future__ import annotations

from collections.abc import Callable

from ..common.types import Object
from ..kube.errors import AnswerLost
from .client import PlatformApi

TRIES = 3  # how often a request is sent whose answer is lost each time


def once(send: Callable[[], Object], find_created: Callable[[], Object | None]) -> Object:
    """Send a request. `find_created` returns what it has done, or None if it was not processed."""
    for attempt in range(1, TRIES + 1):
        try:
            return send()
        except AnswerLost:
            if (found := find_created()) is not None:
                return found
            if attempt == TRIES:
                raise
    raise AssertionError("the last try returns or raises")


def associate(api: PlatformApi, path: str, identity: int, called: str, *, remove: bool = False) -> None:
    """Add an object to a list of the controller, or remove it from there."""
    what = f"{'remove from' if remove else 'add to'} {path.rpartition('/')[2]} of {called}"
    body: Object = {"id": identity} | ({"disassociate": True} if remove else {})

    def find_created() -> Object | None:
        present = any(found["id"] == identity for found in api.list_all("controller", path, what))
        return {} if present != remove else None

    once(lambda: api.post("controller", path, what, body), find_created)
