# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The arguments of the event sources s3_coordination and dr_placements, validated together.

All mistakes are one message, which holds no secret.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..common.argument_checker import ArgumentChecker
from ..common.argument_spec_reader import read_options
from ..common.argument_specs import KUBERNETES, S3
from ..lock.lease import SITE_NAMESPACE
from ..s3.errors import BadOptions
from ..s3.store import CONNECTIONS
from .documents import WorkloadRef
from .health import INTERVAL
from .lease import TTL
from .probe import Probe, api_server_probe

POLL_SECONDS = 5.0
REGISTRY_SECONDS = 60.0
SHARED: dict[str, Any] = S3 | {
    "holder": {"type": "str"},
    "cluster": {"type": "str"},
    "kubernetes": {"type": "dict", "options": KUBERNETES},
    "registry_namespace": {"type": "str"},
    "registry_interval": {"type": "float", "default": REGISTRY_SECONDS},
    "ttl": {"type": "float", "default": TTL},
    "poll_interval": {"type": "float", "default": POLL_SECONDS},
    "connections": {"type": "int", "default": CONNECTIONS},
}
CHECKER = ArgumentChecker("event source", noun="argument", empty_is_unset=True)


@dataclass(frozen=True)
class SourceArguments:
    """The arguments of one event source, and the rules between them."""

    name: str
    options: Mapping[str, Any]
    rules: Mapping[str, Any]


S3_COORDINATION = SourceArguments(
    "s3_coordination",
    SHARED | {"workloads": {"type": "list", "elements": "raw"}},
    {"required_by": {"kubernetes": ["cluster"], "registry_namespace": ["kubernetes"]}, "required_one_of": [["workloads", "kubernetes"]]},
)
DR_PLACEMENTS = SourceArguments(
    "dr_placements",
    SHARED | {"kubernetes": SHARED["kubernetes"] | {"required": True}, "site_namespace": {"type": "str", "default": SITE_NAMESPACE}},
    {"required_by": {"kubernetes": ["cluster"]}},
)


@dataclass(frozen=True)
class Settings:
    """What to lead, watch and report. `cluster` is the cluster whose health this process reports, if any.

    With `follow_drpcs` the workloads are the DRPlacementControls that exist on the cluster of `connection`. The health of the registries
    in `registry_namespace` of that cluster is checked each `registry_interval` seconds.
    """

    workloads: Sequence[WorkloadRef]
    holder: str
    ttl: float = TTL
    poll: float = POLL_SECONDS
    connections: int = CONNECTIONS
    cluster: str = ""
    probe: Probe | None = None
    health_interval: float = INTERVAL
    instance: str = field(default_factory=lambda: secrets.token_hex(8))
    store: Mapping[str, Any] = field(default_factory=dict, repr=False)
    follow_drpcs: bool = False
    connection: Mapping[str, Any] = field(default_factory=dict, repr=False)
    registry_namespace: str = ""
    registry_interval: float = REGISTRY_SECONDS
    site_namespace: str = SITE_NAMESPACE

    def __post_init__(self) -> None:
        if self.poll <= 0:
            raise BadOptions(f"poll_interval is {self.poll:g}: set more than 0.")
        if self.registry_interval < 1:
            raise BadOptions(f"registry_interval is {self.registry_interval:g}: set at least 1.")
        if self.connections < 2:
            raise BadOptions(f"connections is {self.connections}: set at least 2, one for leases and one for polls.")

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], source: SourceArguments = S3_COORDINATION) -> Settings:
        problems: list[str] = []
        values = CHECKER.check(read_options({"options": source.options, **source.rules}, problems), arguments, problems)
        if problems:
            raise BadOptions(f"openfleet.clusters.{source.name} cannot start: {'; '.join(problems)}.")
        return cls(
            workloads=parse_workloads(values["workloads"]) if "workloads" in values else [],
            holder=values.get("holder") or values.get("cluster") or socket.gethostname(),
            ttl=values["ttl"],
            poll=values["poll_interval"],
            connections=values["connections"],
            cluster=values.get("cluster", ""),
            probe=api_server_probe(values["kubernetes"]) if "kubernetes" in values else None,
            store={name: value for name, value in values.items() if name in S3},
            follow_drpcs="workloads" not in values,
            connection=values.get("kubernetes", {}),
            registry_namespace=values.get("registry_namespace", ""),
            registry_interval=values["registry_interval"],
            site_namespace=values.get("site_namespace", SITE_NAMESPACE),
        )


def parse_workloads(items: list[Any]) -> list[WorkloadRef]:
    if not items:
        raise BadOptions("workloads is empty: name at least one workload, as namespace/name.")
    workloads = [WorkloadRef(*_names(item)) for item in items]
    repeated = sorted({str(workload) for workload in workloads if workloads.count(workload) > 1})
    if repeated:
        raise BadOptions(f"workloads has duplicates: {', '.join(repeated)}. Name each workload once.")
    return workloads


def _names(item: Any) -> tuple[str, str]:
    if isinstance(item, Mapping) and set(item) == {"namespace", "name"}:
        return str(item["namespace"]), str(item["name"])
    if isinstance(item, str) and item.count("/") == 1:
        namespace, name = item.split("/")
        return namespace, name
    raise BadOptions(f"{item!r} is not a workload: write namespace/name, or a dictionary with namespace and name.")
