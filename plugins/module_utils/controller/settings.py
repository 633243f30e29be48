# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The arguments of the event source, validated together. All mistakes are one message, which holds no secret."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..common.argument_checker import ArgumentChecker
from ..common.argument_spec_reader import read_options
from ..common.argument_specs import KUBERNETES, ORDERS, connection
from ..kube.allowed_addresses import AllowedAddresses
from ..orders.model import Names
from .third_party import MISSING

WEBHOOK: dict[str, Any] = {
    "host": {"type": "str", "default": "127.0.0.1"},
    "port": {"type": "int", "default": 5000},
    "token": {"type": "str", "no_log": True},
    "hmac_secret": {"type": "str", "no_log": True},
    "hmac_header": {"type": "str", "default": "X-Hub-Signature-256"},
    "certfile": {"type": "path"},
    "keyfile": {"type": "path"},
    "cafile": {"type": "path"},
    "client_names": {"type": "list", "elements": "str", "default": []},
    "health_port": {"type": "int"},
    "insecure": {"type": "bool", "default": False},
    "body_limit": {"type": "int", "default": 2**20},
    "rate_limit": {"type": "int", "default": 200},
    "max_connections": {"type": "int", "default": 256},
    "max_connections_per_client": {"type": "int", "default": 64},
}
OPTIONS: dict[str, Any] = (
    KUBERNETES
    | ORDERS
    | {
        "batch_size": {"type": "int", "default": 20},
        "max_in_flight": {"type": "int", "default": 4},
        "start_timeout": {"type": "int", "default": 300},
        "pending_timeout": {"type": "int"},
        "poll": {"type": "int", "default": 60},
        "resync": {"type": "int", "default": 3600},
        "remove_orphans_after": {"type": "int", "default": 0},
        "workflows": {"type": "list", "elements": "str", "choices": ["provision", "post_install", "delete"], "default": []},
        "webhook": {"type": "dict", "options": WEBHOOK, "apply_defaults": True},
    }
)
CHECKER = ArgumentChecker("event source", noun="argument", empty_is_unset=True)
WEBHOOK_AT_LEAST_ONE = ("body_limit", "rate_limit", "max_connections", "max_connections_per_client")
AT_LEAST_ONE = ("batch_size", "max_in_flight", "start_timeout", "poll", "resync")


class BadSettings(Exception):
    """The source cannot start with these settings; the text names every mistake."""


@dataclass(frozen=True)
class Webhook:
    """Where the webhook server listens, and how it authenticates senders: by every one of the three ways that is set.

    `client_names` are those of the certificates by `cafile` that may send. Without a `health_port`, `port` serves health and metrics too.
    """

    host: str = "127.0.0.1"
    port: int = 5000
    token: str = field(default="", repr=False)
    hmac_secret: str = field(default="", repr=False)
    hmac_header: str = "X-Hub-Signature-256"
    certfile: str = ""
    keyfile: str = ""
    cafile: str = ""
    client_names: tuple[str, ...] = ()
    health_port: int | None = None
    insecure: bool = False
    body_limit: int = 2**20
    rate_limit: int = 200
    max_connections: int = 256
    max_connections_per_client: int = 64

    def problems(self) -> list[str]:
        ports = {"port": self.port, "health_port": self.health_port or 0}
        found = [f"webhook.{name} must be between 0 and 65535, not {port}" for name, port in ports.items() if not 0 <= port <= 65535]
        if self.port and self.health_port == self.port:
            found.append(f"webhook.health_port must be another port than webhook.port, not {self.port} too")
        found += [f"webhook.{name} must be at least 1" for name in WEBHOOK_AT_LEAST_ONE if getattr(self, name) < 1]
        if self.keyfile and not self.certfile:
            found.append("webhook.keyfile belongs to webhook.certfile, which is missing")
        if self.cafile and not self.certfile:
            found.append("webhook.cafile authenticates clients by TLS, which needs webhook.certfile")
        if self.cafile and not self.client_names:
            found.append("webhook.cafile needs webhook.client_names: the DNS names, or common names, of the certificates that may send")
        if self.client_names and not self.cafile:
            found.append("webhook.client_names are those of certificates, which need webhook.cafile")
        if not (_is_loopback(self.host) or self.token or self.hmac_secret or self.cafile or self.insecure):
            found.append(
                f"webhook.host {self.host} is not a loopback address: set webhook.token, webhook.hmac_secret or webhook.cafile, "
                "or webhook.insecure: true"
            )
        return found


@dataclass(frozen=True)
class Settings:
    """How the source works. Times are in seconds.

    `start_timeout` is how long a run may take until it locks its order, `pending_timeout` after how long one that has not counts as lost;
    None is as long. `poll` is how often providers are asked whose clusters cannot be watched, `resync` how often a settled order is
    provisioned again, which repairs drift. `remove_orphans_after` is how long what a deleted order left behind is kept, 0 is no limit.
    `workflows` are the actions that the rulebook launches as workflows.
    """

    names: Names = field(default_factory=Names)
    connection: Mapping[str, Any] = field(default_factory=dict, repr=False)
    batch_size: int = 20
    max_in_flight: int = 4
    start_timeout: int = 300
    pending_timeout: int | None = None
    poll: int = 60
    resync: int = 3600
    remove_orphans_after: int = 0
    workflows: tuple[str, ...] = ()
    webhook: Webhook = field(default_factory=Webhook)

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> Settings:
        """An empty string counts as not given: an unset variable of a rulebook is one. `settings` holds further arguments."""
        if MISSING:
            raise BadSettings(f"The Python library {MISSING} is missing where ansible-rulebook runs; install what requirements.txt names.")
        problems: list[str] = []
        given = _given(arguments)
        settings = given.pop("settings", {})
        if isinstance(settings, Mapping):
            given = _merged(settings, given)
        else:
            problems.append("settings must be a dictionary of arguments")
        values = CHECKER.check(read_options({"options": OPTIONS}, problems), given, problems)
        problems += [f"{name} must be at least 1" for name in AT_LEAST_ONE if values.get(name, 1) < 1]
        pending = values.get("pending_timeout")
        if pending is not None and pending < values.get("start_timeout", 0):
            problems.append(f"pending_timeout must be at least start_timeout, {values['start_timeout']}, not {pending}")
        if values.get("remove_orphans_after", 0) < 0:
            problems.append("remove_orphans_after must be 0 or more")
        if not _is_absolute(values.get("kubeconfig")):
            problems.append("kubeconfig must be an absolute path: runs start in folders of their own")
        try:
            AllowedAddresses.of(values.get("allowed_addresses", []))
        except ValueError as error:
            problems.append(str(error))
        given = values.get("webhook", {})
        webhook = Webhook(**given | {"client_names": tuple(given.get("client_names", ()))})
        problems += webhook.problems()
        if problems:
            raise BadSettings(f"openfleet.clusters.cluster_orders cannot start: {'; '.join(problems)}.")
        return cls(
            Names.of(values),
            connection(values),
            **{name: values[name] for name in AT_LEAST_ONE},
            pending_timeout=pending,
            remove_orphans_after=values["remove_orphans_after"],
            workflows=tuple(values["workflows"]),
            webhook=webhook,
        )


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: _given(value) if isinstance(value, Mapping) and name != "kubeconfig" else value for name, value in arguments.items()}
    return {name: value for name, value in given.items() if value not in ("", {})}


def _merged(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """An argument that is given by itself takes precedence over the same one in `settings`."""
    merged = {**settings, **given}
    webhooks = [arguments["webhook"] for arguments in (settings, given) if "webhook" in arguments]
    if len(webhooks) == 2 and all(isinstance(webhook, Mapping) for webhook in webhooks):
        merged["webhook"] = {**webhooks[0], **webhooks[1]}
    return merged


def _is_absolute(kubeconfig: Any) -> bool:
    return not isinstance(kubeconfig, str) or all(part.startswith(("/", "~")) for part in kubeconfig.split(os.pathsep) if part)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
