# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compare-and-swap on the status of one object: read, compute, write only if it is unchanged, again after a conflict."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Conflict

SWAP_SECONDS = 60.0  # for as long it is repeated: many clusters may be reserved at once
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5

Result = TypeVar("Result")


def swap_status(
    kube: Kube, read: Callable[[], Object], change: Callable[[Object], tuple[Object, Result]], known: Object | None = None
) -> Result:
    """Merge what `change` computes for the object into its status, and return its result. An empty change is not written.

    `known` is the object as a cache has it, which saves the first read. It may be old: only a write confirms it, so if there is nothing
    to write the object is read.
    """
    deadline, pause = time.monotonic() + SWAP_SECONDS, FIRST_PAUSE
    while True:
        item, is_cached, known = known or read(), known is not None, None
        status, result = change(item)
        if not status:
            if is_cached:
                continue
            return result
        try:
            kube.patch(item, {"status": status}, subresource="status")
            return result
        except Conflict:
            if time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(0, pause))  # noqa: S311 - spreads contenders, keeps no secret
        pause = min(2 * pause, LONGEST_PAUSE)


def merge_patch(before: Object, after: Object) -> Object:
    """The JSON merge patch from one object to another: what was removed is None."""
    changed: Object = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        present = before.get(key)
        if isinstance(value, dict) and isinstance(present, dict):
            if inner := merge_patch(present, value):
                changed[key] = inner
        elif present != value:
            changed[key] = value
    return changed
