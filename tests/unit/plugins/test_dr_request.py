"""How a request is waited for."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

import pytest
from ansible_collections.openfleet.clusters.plugins.action.dr_request import ActionModule
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import State
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.copies import AcceptedRequest, ObservedCopy, RequestSpec

TO_WEST, TO_EAST = RequestSpec("Failover", failover="west"), RequestSpec("Relocate", "east")
ON_WEST = {
    "metadata": {"namespace": "shop", "name": "db", "uid": "uid-west", "generation": 4},
    "spec": {"action": "Failover", "failoverCluster": "west"},
}


class Waiting(ActionModule):
    """With what the bucket and the cluster say."""

    def __init__(self, accepted: AcceptedRequest) -> None:
        self._accepted = accepted

    def _info(self, *_given: object) -> Object:
        names = ("namespace", "name", "phase", "progression", "home", "leader", "message")
        return dict.fromkeys(names, "") | {"revision": 1, "request": None, "waits": []}

    def _find(self, *_given: object) -> Object:  # type: ignore[override]
        return ON_WEST

    def state(self, *_given: object) -> State:  # type: ignore[override]
        return State(intent={"accepted_request": asdict(self._accepted)})


@pytest.mark.parametrize(
    ("given", "accepted", "message"),
    [
        (
            "another copy won",
            AcceptedRequest(3, "east", TO_EAST, observed_copies={"west": ObservedCopy("uid-west", 4, 3, TO_WEST)}),
            "Failover to west is not in effect",
        ),
        (
            "a leader is to read it",
            AcceptedRequest(3, "east", TO_EAST, observed_copies={"west": ObservedCopy("uid-west", 3, 3, TO_EAST)}),
            "Not done after 0 s",
        ),
        (
            "it is in effect",
            AcceptedRequest(4, "west", TO_WEST, observed_copies={"west": ObservedCopy("uid-west", 4, 4, TO_WEST)}),
            "Not done after 0 s",
        ),
        ("no leader has begun", AcceptedRequest(), "Not done after 0 s"),
    ],
)
def test_request_that_no_leader_will_follow_is_not_waited_for(given: str, accepted: AcceptedRequest, message: str) -> None:
    parameters: dict[str, Any] = {"request": "failover", "wait_timeout": 0}
    unused = cast("Any", None)
    result = Waiting(accepted)._wait(unused, unused, WorkloadRef("shop", "db"), parameters)  # noqa: SLF001
    assert result["failed"] and message in result["msg"], given
