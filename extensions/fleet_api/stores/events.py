"""The Events of Kubernetes about a cluster, read when they are asked for."""

from __future__ import annotations

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.kube.errors import KubeError
from .home import Home, problem_of_own

MOST = 100


async def events_about(home: Home, item: Object) -> list[Object]:
    """The last of them, the latest first."""
    namespace, selector = item["metadata"]["namespace"], f"involvedObject.uid={item['metadata']['uid']}"
    try:
        found = await home.ask(lambda kube: kube.list_all("v1", "Event", namespace, field_selector=selector))
    except KubeError as error:
        raise problem_of_own(error) from error
    return sorted(found, key=_last_time, reverse=True)[:MOST]


def _last_time(event: Object) -> str:
    return str(event.get("lastTimestamp") or event["metadata"]["creationTimestamp"])
