# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The arguments of the event source of a fleet, validated together. All mistakes are one message, which holds no secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from ..common.argument_checker import ArgumentChecker
from ..common.argument_spec_reader import read_options
from ..common.argument_specs import KUBERNETES, S3, connection
from ..fleet.model import parse_lifetime
from ..fleet.record_archive import Retention
from ..fleet.schedule import HUB_TIMEOUT, Weights
from ..lock.lease import SITE_NAMESPACE
from .settings import BadSettings
from .third_party import MISSING

PREFIX = "fleet/records"
RECORDS: dict[str, Any] = {name: option for name, option in S3.items() if name != "bucket"} | {
    "bucket": {"type": "str"},
    "prefix": {"type": "str", "default": PREFIX},
    "interval": {"type": "int", "default": 300},
    "max_age": {"type": "str"},
    "max_number": {"type": "int"},
}
WEIGHTS: dict[str, Any] = {name: {"type": "int", "default": getattr(Weights(), name)} for name in Weights.__dataclass_fields__}
HEALTH: dict[str, Any] = {"host": {"type": "str", "default": "127.0.0.1"}, "port": {"type": "int", "default": 5001}}
OPTIONS: dict[str, Any] = KUBERNETES | {
    "site_namespace": {"type": "str", "default": SITE_NAMESPACE},
    "hub_timeout": {"type": "int", "default": int(HUB_TIMEOUT.total_seconds())},
    "sweep": {"type": "int", "default": 300},
    "secrets_poll": {"type": "int", "default": 60},
    "weights": {"type": "dict", "options": WEIGHTS, "apply_defaults": True},
    "records": {"type": "dict", "options": RECORDS, "apply_defaults": True},
    "health": {"type": "dict", "options": HEALTH, "apply_defaults": True},
}
CHECKER = ArgumentChecker("event source", noun="argument", empty_is_unset=True)
AT_LEAST_ONE = ("hub_timeout", "sweep", "secrets_poll")


@dataclass(frozen=True)
class RecordSettings:
    """Where records are exported to, if anywhere, and for how long they stay on the home cluster."""

    store: Mapping[str, Any] = field(default_factory=dict, repr=False)
    prefix: str = PREFIX
    interval: int = 300
    retention: Retention = field(default_factory=Retention)


@dataclass(frozen=True)
class FleetSettings:
    """How the source works. A hub is lost `hub_timeout` after its last heartbeat; the other times are in seconds."""

    connection: Mapping[str, Any] = field(default_factory=dict, repr=False)
    site_namespace: str = SITE_NAMESPACE
    hub_timeout: timedelta = HUB_TIMEOUT
    sweep: int = 300
    secrets_poll: int = 60
    weights: Weights = field(default_factory=Weights)
    records: RecordSettings = field(default_factory=RecordSettings)
    health_host: str = "127.0.0.1"
    health_port: int = 5001

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> FleetSettings:
        """An empty string counts as not given: an unset variable of a rulebook is one. `settings` holds further arguments."""
        if MISSING:
            raise BadSettings(f"The Python library {MISSING} is missing where ansible-rulebook runs; install what requirements.txt names.")
        problems: list[str] = []
        given = {name: value for name, value in arguments.items() if value not in ("", {})}
        further = given.pop("settings", {})
        if isinstance(further, Mapping):
            given = {**further, **given}
        else:
            problems.append("settings must be a dictionary of arguments")
        values = CHECKER.check(read_options({"options": OPTIONS}, problems), given, problems)
        problems += [f"{name} must be at least 1" for name in AT_LEAST_ONE if values.get(name, 1) < 1]
        records, health, weights = values.get("records", {}), values.get("health", {}), values.get("weights", {})
        problems += [f"weights.{name} must be 0 or more" for name, weight in weights.items() if weight < 0]
        problems += _records_problems(records)
        if not 0 <= health.get("port", 0) <= 65535:
            problems.append(f"health.port must be between 0 and 65535, not {health['port']}")
        if problems:
            raise BadSettings(f"openfleet.clusters.fleet cannot start: {'; '.join(problems)}.")
        return cls(
            connection(values),
            values["site_namespace"],
            timedelta(seconds=values["hub_timeout"]),
            values["sweep"],
            values["secrets_poll"],
            Weights(**weights),
            _records(records),
            health["host"],
            health["port"],
        )


def _records_problems(records: Mapping[str, Any]) -> list[str]:
    found = []
    if records.get("interval", 1) < 1:
        found.append("records.interval must be at least 1")
    if records.get("max_number", 0) < 0:
        found.append("records.max_number must be 0 or more")
    if "max_age" in records and parse_lifetime(records["max_age"]) is None:
        found.append("records.max_age must be a number of minutes, hours or days, such as 30m, 72h or 90d")
    return found


def _records(records: Mapping[str, Any]) -> RecordSettings:
    store = {name: value for name, value in records.items() if name in S3} if "bucket" in records else {}
    retention = Retention(parse_lifetime(records.get("max_age", "")), records.get("max_number"))
    return RecordSettings(store, records["prefix"], records["interval"], retention)
