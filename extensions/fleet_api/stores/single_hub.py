"""What a fleet has and a single hub has not: hubs, quotas and records. The hub itself stands for all hubs, with the templates it offers."""

from __future__ import annotations

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.controller.work_queue import Key
from ....plugins.module_utils.fleet.hub_checks import offered_templates
from ....plugins.module_utils.templates.catalogue import find_templates


class FixedObjects:
    """Objects that never change, in the form of an informer's cache."""

    def __init__(self, *items: Object) -> None:
        self._items = {Key(item["metadata"].get("namespace", ""), item["metadata"]["name"]): item for item in items}

    def get(self, key: Key) -> Object | None:
        return self._items.get(key)

    def all(self) -> list[Object]:
        return [*self._items.values()]

    def below(self, namespace: str) -> list[Object]:
        return [item for key, item in self._items.items() if key.namespace == namespace]


def this_hub(collections_paths: list[str]) -> Object:
    """The hub as an object of a fleet, whose status has the templates of these collections."""
    templates = [
        {"name": each.name, "title": each.title, "description": each.description, "parameters": dict(each.parameters)}
        | {"nodes": dict(each.nodes), "classes": [*each.classes]}
        for each in offered_templates(find_templates(collections_paths))
    ]
    return {"metadata": {"name": "hub"}, "spec": {"capacity": {"clusters": 0}}, "status": {"templates": templates}}
