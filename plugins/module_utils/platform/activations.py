# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rulebook activations of EDA: a running one is disabled, changed and enabled again; if that fails, it is as before."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..common.types import Object
from ..kube.errors import KubeError, NotFound, ServerError
from .client import PlatformApi

POLL_SECONDS = 1.0
WAIT_SECONDS = 300.0  # for an activation to start or to stop
STOPPED = ("stopped", "failed", "error", "completed")
STARTED = ("running", "completed")
FAILED = ("failed", "error")
PATH = "activations"
# Fields of the API that hold objects when they are read, and their ids when they are written.
LISTS = ("eda_credentials",)


class Activations:
    def __init__(self, api: PlatformApi) -> None:
        self._api = api

    def started(self, identity: int, name: str) -> None:
        """Wait until a new activation runs."""
        self._wait(identity, name, STARTED, failed=FAILED)

    def change(self, current: Object, body: Object, name: str) -> None:
        """Bring an activation to other fields, and to the state `is_enabled` of the body."""
        identity, was_enabled = int(current["id"]), bool(current.get("is_enabled"))
        fields = {key: value for key, value in body.items() if key != "is_enabled"}
        enabled = bool(body.get("is_enabled", was_enabled))
        if was_enabled and (fields or not enabled):
            self._disable(identity, name)
        if fields:
            self._replace(current, fields, name, enabled=enabled, was_enabled=was_enabled)
        elif enabled and not was_enabled:
            self._enable(identity, name)

    def delete(self, identity: int, name: str) -> None:
        """Delete an activation, and wait until it is gone: what it uses cannot be deleted before."""
        if not self._api.delete("eda", f"{PATH}/{identity}", f"delete rulebook activation {name}"):
            return
        ends = time.monotonic() + min(WAIT_SECONDS, self._api.seconds_left())
        while time.monotonic() < ends:
            try:
                self._api.get("eda", f"{PATH}/{identity}", f"read rulebook activation {name}")
            except NotFound:
                return
            time.sleep(POLL_SECONDS)
        raise ServerError(f"The rulebook activation {name} is still being deleted after {WAIT_SECONDS:g} s: see its instances in EDA.")

    def _replace(self, current: Object, fields: Object, name: str, *, enabled: bool, was_enabled: bool) -> None:
        identity = int(current["id"])
        try:
            self._patch(identity, name, fields)
            if enabled:
                self._enable(identity, name)
        except KubeError as error:
            if was_enabled:
                self._restore(current, fields, name, error)
            raise

    def _restore(self, current: Object, fields: Object, name: str, error: KubeError) -> None:
        """Enable the activation as it was before."""
        identity = int(current["id"])
        try:
            self._disable(identity, name)
            self._patch(identity, name, {field: _written(current, field) for field in fields})
            self._enable(identity, name)
        except KubeError as second:
            raise ServerError(
                f"{error} The activation {name} could not be enabled as it was before: {second} Check it on the platform."
            ) from error

    def _patch(self, identity: int, name: str, fields: Object) -> None:
        self._api.patch("eda", f"{PATH}/{identity}", f"change rulebook activation {name}", fields)

    def _enable(self, identity: int, name: str) -> None:
        self._api.post("eda", f"{PATH}/{identity}/enable", f"enable rulebook activation {name}", {}, repeatable=True)
        self._wait(identity, name, STARTED, failed=FAILED)

    def _disable(self, identity: int, name: str) -> None:
        self._api.post("eda", f"{PATH}/{identity}/disable", f"disable rulebook activation {name}", {}, repeatable=True)
        self._wait(identity, name, STOPPED)

    def _wait(self, identity: int, name: str, states: Sequence[str], failed: Sequence[str] = ()) -> None:
        ends = time.monotonic() + min(WAIT_SECONDS, self._api.seconds_left())
        while True:
            current = self._api.get("eda", f"{PATH}/{identity}", f"read rulebook activation {name}")
            status = str(current.get("status") or "")
            if status in states:
                return
            if status in failed or time.monotonic() > ends:
                reason = " ".join(str(current.get("status_message") or "no reason given").split())
                raise ServerError(
                    f"The rulebook activation {name} is {status} and should be {states[0]} ({reason}): see its instances in EDA."
                )
            time.sleep(POLL_SECONDS)


def _written(current: Object, field: str) -> object:
    """The value of a field as it is written, from an object that was read."""
    value = current.get(field)
    if field in LISTS:
        return [each["id"] if isinstance(each, dict) else each for each in value or []]
    if value is None and field.endswith("_id"):
        embedded = current.get(field.removesuffix("_id"))
        return embedded.get("id") if isinstance(embedded, dict) else None
    return value
