# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The arguments of the event source `fleet_agent`, validated together. All mistakes are one message, which holds no secret."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..common.argument_checker import ArgumentChecker
from ..common.argument_spec_reader import read_options
from ..common.argument_specs import KUBERNETES, ORDERS, connection
from ..kube.allowed_addresses import AllowedAddresses
from ..orders.model import Names
from .settings import BadSettings
from .third_party import MISSING

HEALTH: dict[str, Any] = {"host": {"type": "str", "default": "127.0.0.1"}, "port": {"type": "int", "default": 5002}}
OPTIONS: dict[str, Any] = (
    KUBERNETES
    | ORDERS
    | {
        "hub": {"type": "str", "required": True},
        "home": {"type": "dict", "options": KUBERNETES, "required": True},
        "heartbeat": {"type": "int", "default": 10},
        "report": {"type": "int", "default": 20},
        "health": {"type": "dict", "options": HEALTH, "apply_defaults": True},
        "collections_paths": {"type": "list", "elements": "str", "default": []},
    }
)
CHECKER = ArgumentChecker("event source", noun="argument", empty_is_unset=True)
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,57}[a-z0-9])?")  # as the CRD of hubs has it
LONGEST_HEARTBEAT = 20
OWN_COLLECTIONS = Path(__file__).absolute().parents[6]  # the folder with ansible_collections, where this collection is
DEFAULT_COLLECTIONS = "~/.ansible/collections:/usr/share/ansible/collections"


@dataclass(frozen=True)
class AgentSettings:
    """How the agent works. Times are in seconds. `home` is the connection to the home cluster, and takes nothing from the environment."""

    hub: str
    home: Mapping[str, Any] = field(repr=False)
    names: Names = field(default_factory=Names)
    connection: Mapping[str, Any] = field(default_factory=dict, repr=False)
    heartbeat: float = 10.0
    report: float = 20.0
    health_host: str = "127.0.0.1"
    health_port: int = 5002
    collections_paths: tuple[str, ...] = ()

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> AgentSettings:
        """An empty string counts as not given: an unset variable of a rulebook is one."""
        if MISSING:
            raise BadSettings(f"The Python library {MISSING} is missing where ansible-rulebook runs; install what requirements.txt names.")
        problems: list[str] = []
        given = {name: value for name, value in arguments.items() if value not in ("", {})}
        values = CHECKER.check(read_options({"options": OPTIONS}, problems), given, problems)
        if "hub" in values and not NAME.fullmatch(values["hub"]):
            problems.append("hub must be the name of a Hub: at most 59 lower-case letters, digits and dashes")
        if not 1 <= values.get("heartbeat", 1) <= LONGEST_HEARTBEAT:
            problems.append(f"heartbeat must be between 1 and {LONGEST_HEARTBEAT}")
        if values.get("report", 1) < 1:
            problems.append("report must be at least 1")
        if not 0 <= values.get("health", {}).get("port", 0) <= 65535:
            problems.append("health.port must be between 0 and 65535")
        if "home" in values and not {"kubeconfig", "host"} & values["home"].keys():
            problems.append("home needs kubeconfig, the file with the credential of this hub")
        try:
            AllowedAddresses.of(values.get("allowed_addresses", []))
        except ValueError as error:
            problems.append(str(error))
        if problems:
            raise BadSettings(f"openfleet.clusters.fleet_agent cannot start: {'; '.join(problems)}.")
        return cls(
            values["hub"],
            connection(values["home"]),
            Names.of(values),
            connection(values),
            values["heartbeat"],
            values["report"],
            values["health"]["host"],
            values["health"]["port"],
            tuple(values["collections_paths"]) or default_collections(),
        )


def default_collections() -> tuple[str, ...]:
    """Where ansible-playbook looks for collections, and where this one is."""
    found = os.environ.get("ANSIBLE_COLLECTIONS_PATH") or DEFAULT_COLLECTIONS
    return (str(OWN_COLLECTIONS), *(os.path.expanduser(each) for each in found.split(os.pathsep) if each))  # noqa: PTH111 - it may be no path
