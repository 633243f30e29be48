"""Rulebook activations: the states they walk through, and what EDA refuses in which of them.

No rulebook runs. Each time an activation is read, it makes one step towards the state that was asked for, so that a client that waits
sees every state, and a test waits for no clock.
"""

from __future__ import annotations

from collections.abc import Callable

from ....plugins.module_utils.common.types import Object
from .exchange import Refused, Response

STEPS = {"pending": "starting", "starting": "running", "stopping": "stopped"}
BUSY = ("starting", "stopping", "deleting", "running", "unresponsive")


def healthy(_activation: Object) -> str:
    """The rulebook of every activation starts."""
    return ""


class Activations:
    """`defect` names what keeps the rulebook of an activation from running, or is empty; such an activation fails while it starts."""

    def __init__(self) -> None:
        self.defect: Callable[[Object], str] = healthy

    def begin(self, activation: Object) -> None:
        activation |= {"status": "pending" if activation["is_enabled"] else "stopped", "status_message": ""}

    def step(self, activation: Object) -> bool:
        """One step; false when the activation is deleted by it."""
        status = activation["status"]
        if status == "deleting":
            return False
        if status == "starting" and (defect := self.defect(activation)):
            activation |= {"status": "failed", "status_message": defect}
        elif status in STEPS:
            activation |= {"status": STEPS[status], "status_message": ""}
        return True

    def check_change(self, activation: Object) -> None:
        if activation["is_enabled"] or activation["status"] in BUSY:
            raise Refused(409, "Activation is not in disabled mode and in stopped status")

    def enable(self, activation: Object) -> Response:
        if activation["is_enabled"]:
            return Response(204)
        if activation["status"] in BUSY:
            raise Refused(409, "Activation not enabled due to current activation status")
        activation["is_enabled"] = True
        self.begin(activation)
        return Response(204)

    def disable(self, activation: Object) -> Response:
        self._check_deleting(activation)
        if activation["is_enabled"]:
            if activation["status"] in ("starting", "running"):
                activation["status"] = "stopping"
            elif activation["status"] == "pending":
                activation["status"] = "stopped"
            activation["is_enabled"] = False
        return Response(204)

    def restart(self, activation: Object) -> Response:
        self._check_deleting(activation)
        if not activation["is_enabled"]:
            raise Refused(403, {"detail": "Activation is disabled and cannot be run."})
        activation |= {"status": "pending", "restart_count": activation["restart_count"] + 1}
        return Response(204)

    def end(self, activation: Object, status: str, message: str = "") -> None:
        """What happens without a request: the rulebook completed or failed."""
        activation |= {"status": status, "status_message": message}

    @staticmethod
    def _check_deleting(activation: Object) -> None:
        if activation["status"] == "deleting":
            raise Refused(409, {"detail": "Object is being deleted"})
