# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The objects of a fleet as informers keep them: what a reconcile observes without a request. It decides nothing.

Of the agents of hubs, the Leases and reports are followed by their names, in all namespaces: no permission for other ones is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Optional

from ..common.timestamps import parse_time
from ..common.types import Object
from ..fleet.hub_report import CONFIG_MAP, KEY, LEASE, HubReport
from ..fleet.hub_state import AgentState
from ..fleet.kinds import API_VERSION, ASSIGNMENT, CLUSTER, HUB, HUB_NAMESPACE_PREFIX, QUOTA, QUOTA_NAME, hub_namespace
from ..fleet.model import ClusterAssignment, FleetCluster, FleetQuota, Hub
from ..fleet.observe import ObservedFleet
from ..fleet.secret_copies import Secrets
from ..kube.client import Kube
from ..lock.lease import API_VERSION as COORDINATION
from .informer import Informer
from .key_index import KeyIndex
from .work_queue import Key, sentence

Changed = Callable[[Optional[Object], Optional[Object]], None]  # noqa: UP045 - `|` is an operation for the pylint of ansible-test


@dataclass(frozen=True)
class Handlers:
    """What is called for each change, with the object before and after.

    `agent` gets the name of a hub whose agent reported, and the time since its heartbeat before if it renewed its Lease.
    """

    cluster: Changed
    hub: Changed
    quota: Changed
    assignment: Changed
    tenant: Changed
    agent: Callable[[str, timedelta], None]


class FleetCache:
    """The informers of one home cluster. `home` tells the time."""

    def __init__(self, watching: Kube, home: Kube, handlers: Handlers) -> None:
        self._home = home
        self._handlers = handlers
        self._clusters = Informer(watching, API_VERSION, CLUSTER, self._cluster_changed)
        self._hubs = Informer(watching, API_VERSION, HUB, handlers.hub)
        self._quotas = Informer(watching, API_VERSION, QUOTA, handlers.quota)
        self._assignments = Informer(watching, API_VERSION, ASSIGNMENT, self._assignment_changed)
        self._tenants = Informer(watching, "v1", "Namespace", handlers.tenant, transform=_labels_only)
        self._leases = Informer(watching, COORDINATION, "Lease", self._lease_changed, name=LEASE)
        self._reports = Informer(watching, "v1", "ConfigMap", self._report_changed, name=CONFIG_MAP)
        self._by_hub = KeyIndex()  # clusters by the hub that they are bound to
        self._assigned: dict[str, Key] = {}  # assignments by the uid of their cluster
        self._heartbeats: dict[str, datetime] = {}  # when a renewal was observed, by hub
        self._parsed_reports: dict[str, HubReport] = {}
        self._parsed_hubs: dict[str, Hub] = {}
        self._parsed_quotas: dict[str, FleetQuota] = {}

    # Following

    def informers(self) -> tuple[Informer, ...]:
        return (self._clusters, self._hubs, self._quotas, self._assignments, self._tenants, self._leases, self._reports)

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Follow all kinds, and return when each is listed. In any order: a release reads the cluster again."""
        for informer in self.informers():
            tasks.create_task(informer.follow())
        for informer in self.informers():
            await informer.listed.wait()

    @property
    def is_listed(self) -> bool:
        return all(informer.listed.is_set() for informer in self.informers())

    def problems(self, broken_seconds: float) -> list[str]:
        """Why the cache is not current: what cannot be listed, and watches that are broken for longer."""
        found = []
        for informer in self.informers():
            if informer.refusal:
                found.append(f"{informer.kind} cannot be followed: {sentence(informer.refusal)}")
            elif informer.broken_for() > broken_seconds or not informer.listed.is_set():
                found.append(f"the watch of {informer.kind} is broken for {informer.broken_for():.0f} s")
        return found

    def observe(self, item: Object) -> None:
        """Store the answer to a request. The handlers are called as for a change that a watch brings."""
        known = {CLUSTER: self._clusters, HUB: self._hubs, QUOTA: self._quotas, ASSIGNMENT: self._assignments}
        informer = known.get(item.get("kind", "")) if item.get("apiVersion") == API_VERSION else None
        if informer:
            informer.observe(item)

    # Reading

    def now(self) -> datetime:
        return self._home.server_time() or datetime.now(UTC)

    def cluster(self, key: Key) -> Object | None:
        return self._clusters.get(key)

    def clusters(self) -> Iterator[tuple[Key, Object]]:
        for item in self._clusters.all():
            yield Key(item["metadata"]["namespace"], item["metadata"]["name"]), item

    def clusters_of_tenant(self, namespace: str) -> list[Key]:
        return [Key(namespace, item["metadata"]["name"]) for item in self._clusters.below(namespace)]

    def clusters_on(self, hub: str) -> set[Key]:
        return set(self._by_hub.get(hub))

    def hub(self, name: str) -> Object | None:
        return self._hubs.get(Key("", name))

    def hubs(self) -> list[Object]:
        return self._hubs.all()

    def agent(self, hub: str) -> AgentState:
        item = self._reports.get(Key(hub_namespace(hub), CONFIG_MAP))
        return AgentState(self._heartbeat(hub), self._report(hub, item) if item else None)

    def fleet(self, keys: Iterable[Key], secrets: Secrets, hub_timeout: timedelta) -> ObservedFleet:
        """The fleet as a reconcile of these clusters observes it. Clusters that no longer exist are left out."""
        found = (self._clusters.get(key) for key in keys)
        clusters = tuple(FleetCluster.from_object(item) for item in found if item)
        assignments = {each.uid: self._assignments.get(self._assigned[each.uid]) for each in clusters if each.uid in self._assigned}
        tenants = {each.namespace: self._tenants.get(Key("", each.namespace)) for each in clusters}
        return ObservedFleet(
            clusters,
            {hub.name: hub for hub in map(self._hub, self._hubs.all())},
            {quota.namespace: quota for quota in map(self._quota, self._quotas.all())},
            {uid: ClusterAssignment.from_object(item) for uid, item in assignments.items() if item},
            {name: item["metadata"].get("labels") or {} for name, item in tenants.items() if item},
            self.now(),
            secrets,
            hub_timeout,
        )

    def _hub(self, item: Object) -> Hub:
        """Parsed once for each version, with the latest heartbeat: the stored one is written seldom."""
        name = item["metadata"]["name"]
        hub = self._parsed_hubs.get(name)
        if hub is None or hub.raw is not item:
            hub = self._parsed_hubs[name] = Hub.from_object(item)
        latest = self._heartbeat(name)
        return replace(hub, heartbeat=latest) if latest and (hub.heartbeat is None or latest > hub.heartbeat) else hub

    def _heartbeat(self, hub: str) -> datetime | None:
        return self._heartbeats.get(hub) or self._renewal(self._leases.get(Key(hub_namespace(hub), LEASE)))

    def _renewal(self, lease: Object | None) -> datetime | None:
        """Of a renewal that was not observed, its own time. The clock of the hub may differ, so an observed one counts from then."""
        renewed = parse_time(((lease or {}).get("spec") or {}).get("renewTime"))
        return min(renewed, self.now()) if renewed else None

    def _quota(self, item: Object) -> FleetQuota:
        namespace = item["metadata"]["namespace"]
        quota = self._parsed_quotas.get(namespace)
        if quota is None or quota.raw is not item:
            quota = self._parsed_quotas[namespace] = FleetQuota.from_object(item)
        return quota

    def quota(self, namespace: str) -> FleetQuota | None:
        item = self._quotas.get(Key(namespace, QUOTA_NAME))
        return self._quota(item) if item else None

    def _report(self, hub: str, item: Object) -> HubReport:
        if hub not in self._parsed_reports:
            self._parsed_reports[hub] = HubReport.from_json(str((item.get("data") or {}).get(KEY, "")))
        return self._parsed_reports[hub]

    # Handlers of the informers

    def _cluster_changed(self, before: Object | None, after: Object | None) -> None:
        item = after or before or {}
        key = Key(item["metadata"]["namespace"], item["metadata"]["name"])
        if after is None:
            self._by_hub.forget(key)
        elif hub := (after.get("status") or {}).get("hub"):
            self._by_hub.put(key, [hub])
        self._handlers.cluster(before, after)

    def _assignment_changed(self, before: Object | None, after: Object | None) -> None:
        metadata = (after or before or {})["metadata"]
        if after is None:
            self._assigned.pop(metadata["name"], None)
        else:
            self._assigned[metadata["name"]] = Key(metadata["namespace"], metadata["name"])
        self._handlers.assignment(before, after)

    def _lease_changed(self, before: Object | None, after: Object | None) -> None:
        if hub := _hub_of(after or before):
            gap = timedelta()
            if after is None:
                self._heartbeats.pop(hub, None)
            elif before is not None and before.get("spec") != after.get("spec"):
                now, known = self.now(), self._heartbeats.get(hub) or self._renewal(before)
                gap = now - known if known else gap
                self._heartbeats[hub] = now
            self._handlers.agent(hub, gap)

    def _report_changed(self, before: Object | None, after: Object | None) -> None:
        if hub := _hub_of(after or before):
            self._parsed_reports.pop(hub, None)
            self._handlers.agent(hub, timedelta())


def _hub_of(item: Object | None) -> str:
    """The hub that the object is about; empty for one of the same name elsewhere."""
    namespace = str((item or {"metadata": {}})["metadata"].get("namespace", ""))
    return namespace.removeprefix(HUB_NAMESPACE_PREFIX) if namespace.startswith(HUB_NAMESPACE_PREFIX) else ""


def _labels_only(item: Object) -> Object:
    return {"metadata": {name: item["metadata"][name] for name in ("name", "uid", "resourceVersion", "labels") if name in item["metadata"]}}
