# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Node requests of orders and of templates, checked against the resource classes that a template allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..common.argument_checker import Problems
from ..common.argument_values import clip, show
from ..providers.model import NodeRequest

MAX_NODES = 1000


def check_node_requests(given: Any, allowed: Sequence[str], where: str, problems: Problems) -> list[NodeRequest]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        problems.append(f"{where} must be a list")
        return []
    result: list[NodeRequest] = []
    seen: set[str] = set()
    for index, request in enumerate(node_requests_as_data(given)):
        path = f"{where}[{index}]"
        if not isinstance(request, Mapping):
            problems.append(f"{path} must be an object with resourceClass and numberOfNodes")
            continue
        mistakes: Problems = []
        name, number = request.get("resourceClass"), request.get("numberOfNodes")
        if not isinstance(name, str) or not name:
            mistakes.append(f"{path}.resourceClass is {'missing' if name in (None, '') else 'not a string'}")
        elif allowed and name not in allowed:
            mistakes.append(f"{path}.resourceClass {clip(name)} is not allowed: the template has {', '.join(allowed)}")
        elif name in seen:
            mistakes.append(f"{path}.resourceClass {clip(name)} is listed twice: request the sum once")
        else:
            seen.add(name)
        mistakes.extend(_count_mistakes(number, f"{path}.numberOfNodes"))
        problems.extend(mistakes)
        if not mistakes:
            result.append(NodeRequest(str(name), int(str(number))))
    return result


def node_requests_as_data(requests: Iterable[Any]) -> list[Any]:
    """As they are spelt in orders, in templates and for roles. What is no NodeRequest stays as it is."""
    return [
        {"resourceClass": request.resource_class, "numberOfNodes": request.number_of_nodes} if isinstance(request, NodeRequest) else request
        for request in requests
    ]


def _count_mistakes(number: Any, path: str) -> Iterator[str]:
    if number is None:
        yield f"{path} is missing"
    elif isinstance(number, bool) or not isinstance(number, int):
        yield f"{path} must be an integer, not {show(number)}"
    elif number < 1:
        yield f"{path} must be at least 1, not {show(number)}"
    elif number > MAX_NODES:
        yield f"{path} must be at most {MAX_NODES}, not {show(number)}"
