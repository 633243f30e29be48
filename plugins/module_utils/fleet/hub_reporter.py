# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writes the heartbeat and the report of a hub to the home cluster. What is in the report, `hub_checks` decides."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from ..common.types import Object
from ..kube.client import Kube, retry_on_conflict
from ..kube.errors import KubeError, Unreachable
from .hub_report import CONFIG_MAP, KEY, LEASE, Check, HubReport
from .kinds import hub_namespace

LEASE_API = "coordination.k8s.io/v1"
LEASE_SECONDS = 60
API = "api"  # the check of the hub's own API server


class HubReporter:
    """One for each agent. `holder` names its process."""

    def __init__(self, home: Kube, hub: str, holder: str) -> None:
        self._home = home
        self._namespace = hub_namespace(hub)
        self._holder = holder

    def beat(self) -> None:
        """Renew the Lease, also one of another holder: the agent that leads on the hub reports."""
        retry_on_conflict(self._renew)

    def _renew(self) -> None:
        now = (self._home.server_time() or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": self._holder, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now}
        present = self._home.find(LEASE_API, "Lease", LEASE, self._namespace)
        if present is None:
            self._home.create(self._object(LEASE_API, "Lease", LEASE) | {"spec": spec})
        else:
            self._home.replace({**present, "spec": {**(present.get("spec") or {}), **spec}})

    def publish(self, report: HubReport) -> bool:
        """Write the report; False where it is there already."""
        return retry_on_conflict(lambda: self._publish({KEY: report.to_json()}))

    def _publish(self, data: dict[str, str]) -> bool:
        present = self._home.find("v1", "ConfigMap", CONFIG_MAP, self._namespace)
        if present is None:
            self._home.create(self._object("v1", "ConfigMap", CONFIG_MAP) | {"data": data})
        elif present.get("data") != data:
            self._home.replace({**present, "data": data})
        else:
            return False
        return True

    def _object(self, api_version: str, kind: str, name: str) -> Object:
        return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": self._namespace}}


def without_api(report: HubReport, error: KubeError) -> HubReport:
    """The last report, while the API server of the hub gives no other one. Its own check says so, and the hub takes no clusters."""
    text = "does not answer" if isinstance(error, Unreachable) else f"fails: {error}"
    failed = Check(API, passed=False, message=f"The API server of the hub {text}: start it, or check the network of the agent.")
    return replace(report, checks=(failed, *(each for each in report.checks if each.name != API)))
