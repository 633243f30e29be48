# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent of a hub while it leads: follows the assignments at home and their orders on the hub, reports, and answers requests.

The home cluster may be unreachable for hours: nothing on the hub depends on it. Informers and heartbeats try again with backoff and jitter,
and what changed meanwhile is written then, because each reconcile compares the whole of both sides.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from ..common.types import Object
from ..fleet.agent import AssignmentReconciler, Outcome
from ..fleet.assigned_order import HUB_LABEL, UID_LABEL, reference_of
from ..fleet.cluster_secrets import LABEL as SECRETS_LABEL
from ..fleet.kinds import API_VERSION, ASSIGNMENT, hub_namespace
from ..fleet.kubeconfig_request import is_request
from ..fleet.model import PROGRESSING, ClusterAssignment
from ..kube.client import Kube
from ..kube.errors import Conflict, KubeError, Unreachable
from ..templates.catalogue import Template
from .agent_connections import connect_home, connect_hub
from .agent_metrics import AgentState
from .agent_settings import AgentSettings
from .hub_reporting import HubReporting, Put
from .informer import Informer, in_thread
from .kubeconfig_requests import KubeconfigRequests
from .work_queue import Key, WorkQueue, sentence

log = logging.getLogger(__name__)

WORKERS = 8
WATCH_SECONDS = 60  # a connection to the home cluster may break unnoticed
RESYNC_SECONDS, UNSETTLED_SECONDS, SWEEP_SECONDS = 600.0, 2.0, 30.0
BROKEN_SECONDS = 60.0  # a watch that is broken for longer is reported
CONFLICT_SECONDS = (0.1, 0.3)  # by then the watch has brought what is newer
UNREACHABLE_SECONDS = (3.0, 10.0)  # until the next try for an assignment while a cluster does not answer


class FleetAgent:
    """The tasks of one agent with one credential. Events about what it does are handed to `put`."""

    def __init__(
        self, settings: AgentSettings, templates: Mapping[str, Template], version: str, put: Put, reconciled: Callable[[str], None]
    ) -> None:
        """`reconciled` is called with the result of each reconcile."""
        self._settings = settings
        self._namespace = hub_namespace(settings.hub)
        self._put = put
        self._reconciled = reconciled
        self._home, watching_home = connect_home(settings), connect_home(settings)
        hub, watching_hub = connect_hub(settings), Kube.connect(settings.connection)
        names = settings.names
        self._reconciler = AssignmentReconciler(self._home, hub, names, templates)
        self._queue = WorkQueue(self._handle)
        follow = partial(Informer, watching_home, namespace=self._namespace, watch_seconds=WATCH_SECONDS)
        self._assignments = follow(API_VERSION, ASSIGNMENT, self._assignment_changed)
        self._secrets = follow("v1", "Secret", self._secret_changed, transform=_kept)
        self._orders = Informer(watching_hub, names.api_version, "ClusterOrder", self._order_changed, UID_LABEL)
        self._reporting = HubReporting(settings, self._home, hub, watching_hub, templates, version, put)
        self._requests = KubeconfigRequests(self._home, hub, names, self._secrets, self._order_for_access)
        self._states: dict[str, str] = {}  # of assignments, by uid, as last passed on
        self._orphans: set[str] = set()

    async def run(self) -> None:
        """Run until cancelled; CredentialsChanged, in a group, when new connections to the home cluster are needed."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reporting.beat())
            tasks.create_task(self._reporting.report())
            for informer in (self._assignments, self._secrets, self._orders):
                tasks.create_task(informer.follow())
            for informer in (self._assignments, self._secrets):
                await informer.listed.wait()
            for _worker in range(WORKERS):
                tasks.create_task(self._queue.work())
            self._requests.start(tasks)
            tasks.create_task(self._sweep())

    def problems(self) -> list[str]:
        """Why the agent is not healthy; empty where it is."""
        informers = {"home": self._assignments, "the hub": self._orders}
        broken = [where for where, informer in informers.items() if informer.broken_for() > BROKEN_SECONDS]
        return [f"the connection to {where} is broken" for where in broken]

    def state(self) -> AgentState:
        """The state for the metrics."""
        states = Counter(str((item.get("status") or {}).get("state") or PROGRESSING) for item in self._assignments.all())
        return AgentState(True, bool(self._reporting.is_ready), self._reporting.failures, states, len(self._queue))

    # What causes a reconcile

    def _assignment_changed(self, before: Object | None, after: Object | None) -> None:
        self._queue.add_coalesced(self._key((after or before or {})["metadata"]["name"]))

    def _order_changed(self, before: Object | None, after: Object | None) -> None:
        for item in (before, after):
            if item and (uid := (item["metadata"].get("labels") or {}).get(UID_LABEL)):
                self._queue.add_coalesced(self._key(uid))

    def _secret_changed(self, before: Object | None, after: Object | None) -> None:
        item = after or before or {}
        if SECRETS_LABEL in (item["metadata"].get("labels") or {}):
            self._queue.add_coalesced(self._key(item["metadata"]["name"]))
        if after:
            self._requests.secret_changed(after)

    def _key(self, uid: str) -> Key:
        return Key(self._namespace, uid)

    # Assignments

    async def _handle(self, key: Key) -> None:
        item = self._assignments.get(key)
        if item is None:
            self._queue.forget(key)
            self._states.pop(key.name, None)
            return
        try:
            outcome = await in_thread(partial(self._reconciler.reconcile, item, self._order_of(item), self._secrets.get(key)))
        except (Conflict, Unreachable) as error:
            log.debug("%s: %s", key, sentence(error))
            seconds = CONFLICT_SECONDS if isinstance(error, Conflict) else UNREACHABLE_SECONDS
            self._queue.add_after(key, random.uniform(*seconds))  # noqa: S311 - spreads contenders, keeps no secret
            return
        if outcome.assignment:
            self._assignments.remember(outcome.assignment)
        self._reconciled(outcome.result)
        wait = RESYNC_SECONDS * random.uniform(0.5, 1.0) if outcome.is_settled else UNSETTLED_SECONDS  # noqa: S311 - the same
        self._queue.add_after(key, wait)
        await self._pass_on(item, outcome)

    def _order_of(self, item: Object) -> Object | None:
        reference = reference_of(ClusterAssignment.from_object(item))
        return self._orders.get(Key(reference.namespace, reference.name))

    def _order_for_access(self, key: Key) -> Object | None:
        item = self._assignments.get(key)
        return self._order_of(item) if item and "deletionTimestamp" not in item["metadata"] else None

    async def _pass_on(self, item: Object, outcome: Outcome) -> None:
        """An event where the order was created, changed or deleted, or where the state of the cluster is another one."""
        assignment = ClusterAssignment.from_object(item)
        state = str(((outcome.assignment or {}).get("status") or {}).get("state", ""))
        before = self._states.get(assignment.uid, PROGRESSING)
        self._states[assignment.uid] = state
        if outcome.result in ("created", "changed", "deleted") or state != before:
            reference = reference_of(assignment)
            await self._put(
                {
                    "type": "assignment_reconciled",
                    "hub": self._settings.hub,
                    "namespace": assignment.namespace,
                    "name": assignment.name,
                    "uid": assignment.uid,
                    "order": {"namespace": reference.namespace, "name": reference.name},
                    "result": outcome.result,
                    "state": state,
                    "message": outcome.message,
                }
            )

    # What no event causes

    async def _sweep(self) -> None:
        """Delete old requests for kubeconfigs, and report orders whose assignment does not exist."""
        while True:
            try:
                await self._requests.delete_old(self._namespace)
                await self._find_orphans()
            except KubeError as error:
                log.debug("sweep: %s", sentence(error))
            await asyncio.sleep(SWEEP_SECONDS)

    async def _find_orphans(self) -> None:
        """Orders of this fleet without an assignment are kept: the home cluster may have been restored from a backup."""
        for order in self._orders.all():
            metadata = order["metadata"]
            uid = metadata["labels"][UID_LABEL]
            if metadata["labels"].get(HUB_LABEL) != self._settings.hub or uid in self._orphans or self._assignments.get(self._key(uid)):
                continue
            if await in_thread(partial(self._home.find, API_VERSION, ASSIGNMENT, uid, self._namespace)) is None:
                self._orphans.add(uid)
                names = {"namespace": metadata["namespace"], "name": metadata["name"]}
                log.warning("the ClusterOrder %s/%s has no assignment at home", *names.values())
                await self._put({"type": "order_orphaned", "hub": self._settings.hub, "uid": uid, "order": names})


def _kept(secret: Object) -> Object:
    """Without the values of Secrets that the agent has no use for."""
    labels = secret["metadata"].get("labels") or {}
    return secret if SECRETS_LABEL in labels or is_request(secret) else {**secret, "data": {}}
