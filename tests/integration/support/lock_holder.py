"""An object that stays, however often its deletion is asked for, as long as a finalizer of the tests holds it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube, retry_on_conflict

FINALIZER = "example.com/held"


@contextlib.contextmanager
def held(kube: Kube, read: Callable[[], Object]) -> Iterator[None]:
    """`read` gets the latest version of the object, because its controller writes to it too."""

    def finalize(*ours: str) -> None:
        item = read()
        others = [entry for entry in item["metadata"].get("finalizers", []) if entry != FINALIZER]
        kube.patch(item, {"metadata": {"finalizers": [*others, *ours]}})

    retry_on_conflict(lambda: finalize(FINALIZER))
    try:
        yield
    finally:
        retry_on_conflict(finalize)
