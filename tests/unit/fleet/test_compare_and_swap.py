"""A change of a status that was computed from an outdated object is computed again, never written."""

from __future__ import annotations

from typing import Any, cast

from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.compare_and_swap import swap_status
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Conflict


class OneObject:
    """An API server with one object, which refuses a checked patch of another version."""

    def __init__(self) -> None:
        self.item: Object = {"metadata": {"resourceVersion": 1}, "status": {"used": 0}}

    def patch(self, item: Object, changes: Object, *, subresource: str, checked: bool = True) -> Object:
        version = self.item["metadata"]["resourceVersion"]
        if checked and item["metadata"]["resourceVersion"] != version:
            raise Conflict("the object has been modified")
        assert subresource == "status"
        self.item = {"metadata": {"resourceVersion": version + 1}, "status": self.item["status"] | changes["status"]}
        return self.item


def test_change_of_another_process_is_never_lost() -> None:
    server, seen = OneObject(), list[int]()

    def add_one(item: Object) -> tuple[Object, Any]:
        seen.append(item["status"]["used"])
        if len(seen) == 1:  # another process writes between the read and the write
            server.patch(server.item, {"status": {"used": 49}}, subresource="status")
        return {"used": item["status"]["used"] + 1}, None

    swap_status(cast(Kube, server), lambda: server.item, add_one)
    assert (seen, server.item["status"]["used"]) == ([0, 49], 50)
