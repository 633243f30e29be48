"""Two or three clusters in memory, with a controller of VolumeReplicationGroups that behaves as Ramen's, and a leader that drives `step`.

Time and faults are what the caller chooses: clusters that do not answer or are dead, lost and late actions, new leaders, slow
controllers. Each write of a workload has a number, so that lost data is visible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.step import step, sweep_leftovers
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import (
    Action,
    DeleteVRG,
    DeployVRG,
    Intent,
    Observations,
    Placed,
    Policy,
    ReleaseDRPC,
    SetPlacement,
    StartWorkload,
    Step,
    StopWorkload,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.ramen_api import DRPC_UID, EPOCH, REVISION
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.read_results import Absent, Found, ReadResult, Unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.readers import read_workload
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import State
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.vrg import VRG
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.workloads import Write, replicas_of, starts, stops
from ansible_collections.openfleet.clusters.tests.unit.dr.audit import Entry, Performed, Recorded, audit, is_stuck, reports_of

from ..virtual_time import Violation
from . import samples

REPLICAS = {"cron": 0, "database": 1, "web": 2}  # of the controllers of the workload


@dataclass
class Cluster:
    """One cluster: its VolumeReplicationGroup, its workload, and the number of the last write that its volumes have."""

    name: str
    vrg: dict[str, Any] | None = None
    progress: int = 0  # of the controller, since the spec changed
    controllers: dict[str, Object] = field(default_factory=lambda: {name: controller(name, 0) for name in REPLICAS})
    running: int = 0
    data: int = 0
    reachable: bool = True
    alive: bool = True

    @property
    def wanted(self) -> int:
        return sum(self.replicas.values())

    @property
    def replicas(self) -> dict[str, int]:
        return {name: replicas_of(item) for name, item in self.controllers.items()}

    @property
    def answers(self) -> bool:
        return self.reachable and self.alive

    @property
    def view(self) -> VRG | None:
        return VRG.from_object(self.vrg) if self.vrg else None

    @property
    def receives(self) -> bool:
        """Whether its volumes follow the primary's, once nothing uses them."""
        return bool(self.alive and not self.running and (view := self.view) and not view.is_primary and view.is_current)

    @property
    def sends(self) -> bool:
        return bool(self.alive and (view := self.view) and view.claims_data and self.progress >= 2)


@dataclass
class Simulation:
    """The clusters, the bucket and one leader."""

    names: tuple[str, ...] = ("east", "west")
    policy: Policy = field(default_factory=samples.policy)
    intent: Intent = field(default_factory=samples.intent)
    state: State = field(default_factory=lambda: State(epoch=1, revision=1))
    placed: Placed = field(default_factory=Placed)
    volsync: bool = False  # with VolSync alone, a relocated cluster reports that it is secondary before its data is away
    minutes: float = 0
    writes: int = 0
    released: bool = False
    history: list[Entry] = field(default_factory=list)
    late: list[tuple[Action, int, int]] = field(default_factory=list)  # actions that were sent and have not arrived yet
    moved_data: int = 0  # the last write of the home when it moved there
    last: Step | None = None

    def __post_init__(self) -> None:
        self.clusters = {name: Cluster(name) for name in self.names}
        self.clusters["east"].controllers = {name: controller(name, replicas) for name, replicas in REPLICAS.items()}
        self.run_pods("east")

    # The leader

    def observe(self) -> Observations:
        answers: dict[str, ReadResult] = {}
        for name, cluster in self.clusters.items():
            answer: ReadResult = Found(_copy(cluster.vrg)) if cluster.vrg else Absent()
            answers[name] = answer if cluster.answers else Unreachable("no answer")
        workloads = {
            name: replace(read_workload(item.controllers.values()), running=item.running)
            for name, item in self.clusters.items()
            if item.answers
        }
        return Observations(samples.at(self.minutes), answers, workloads, self.placed)

    def lead(self, lost: int = 0, delayed: int = 0) -> Step:
        """One step. `lost` and `delayed` are bit masks of the actions that do not arrive, or arrive later.

        Both at once: the leader dies in the middle of the action.
        """
        observations = self.observe()
        run = sweep_leftovers if self.released else step
        result = run(self.intent, self.state, observations, self.policy)
        again = run(self.intent, self.state, observations, self.policy)
        must(result == again, "the same input has another result")
        must(result.state == self.state or not result.actions, "a step records and acts at once")
        must(not is_stuck(result) or result.state != self.state, f"no action, no wait: {self.state}")
        reports = reports_of(self.intent, self.state, observations, self.policy) if result.state != self.state or result.actions else {}
        if result.state != self.state:
            self._record(replace(result.state, revision=self.state.revision + 1), reports)
        for number, action in enumerate(result.actions):
            is_cut = bool(lost & delayed & 1 << number) and isinstance(action, (StartWorkload, StopWorkload))
            if lost >> number & 1 and not is_cut:
                continue
            self.history.append(Performed(action, self.state.epoch, self.state.revision, reports))
            if delayed >> number & 1 and not is_cut:
                self.late.append((action, self.state.epoch, self.state.revision))
            else:
                self.perform(action, self.state.epoch, self.state.revision, cut=int(is_cut))
        self.last = result
        return result

    def _record(self, state: State, reports: Any) -> None:
        before, self.state = self.state, state
        self.history.append(Recorded(state, reports))
        if state.home != before.home and state.home:
            self.moved_data = self.clusters[state.home].data
        if state.peer_ready and not before.peer_ready and before.request is None:
            behind = [name for name, cluster in self.clusters.items() if name != state.home and cluster.data < self.moved_data]
            must(not behind, f"PeerReady although {behind} lacks what {state.home} had when it took over")

    def new_leader(self) -> None:
        """Another leader seals the state. Actions of the one before may still arrive."""
        self._record(replace(self.state, epoch=self.state.epoch + 1, revision=self.state.revision + 1), {})

    def arrive(self, number: int) -> None:
        if self.late:
            self.perform(*self.late.pop(number % len(self.late)))

    def perform(self, action: Action, epoch: int, revision: int, cut: int = 0) -> None:
        """`cut` is the number of writes that are missing at the end of an action that has several."""
        if isinstance(action, SetPlacement):
            self.placed = Placed(action.cluster, action.retained)
            return
        if isinstance(action, ReleaseDRPC):
            self.released = True
            return
        cluster = self.clusters[action.cluster]
        if not cluster.answers or ((view := cluster.view) and view.stamp > (epoch, revision)):
            return  # it does not answer, or its deployer refuses an older stamp
        if isinstance(action, DeployVRG):
            self._deploy(cluster, action, epoch, revision)
        elif isinstance(action, DeleteVRG):
            cluster.vrg, cluster.progress = None, 0
        elif isinstance(action, StartWorkload):
            self._scale(cluster, starts(cluster.controllers.values()), cut)
        elif isinstance(action, StopWorkload):
            self._scale(cluster, stops(cluster.controllers.values()), cut)

    def _scale(self, cluster: Cluster, writes: list[list[Write]], cut: int) -> None:
        for _item, wanted in [write for each in writes for write in each][: -cut or None]:
            cluster.controllers[wanted["metadata"]["name"]] = wanted

    def _deploy(self, cluster: Cluster, action: DeployVRG, epoch: int, revision: int) -> None:
        before = cluster.vrg or {"metadata": {"generation": 0}, "spec": None, "status": {}}
        annotations = {DRPC_UID: action.owner, EPOCH: str(epoch), REVISION: str(revision)}
        changed = before["spec"] != action.spec
        request = self.state.request
        if changed and request and request.kind == "Relocate" and action.spec["replicationState"] == "primary":
            gone = self.clusters[request.origin].data
            must(cluster.data >= gone or cluster.name == request.origin, f"relocated to {cluster.name} without the last writes")
        metadata = {"generation": before["metadata"]["generation"] + changed, "annotations": annotations}
        cluster.vrg = {"metadata": metadata, "spec": _copy(action.spec), "status": before["status"]}
        cluster.progress = 0 if changed else cluster.progress

    # The clusters

    def tick(self, name: str) -> None:
        """One reconcile of the controllers of a cluster."""
        cluster = self.clusters[name]
        if not cluster.alive:
            return
        if cluster.vrg:
            cluster.progress += 1
            cluster.vrg = cluster.vrg | {"status": self._status(cluster, cluster.vrg)}

    def run_pods(self, name: str) -> None:
        cluster = self.clusters[name]
        cluster.running = cluster.wanted if cluster.alive else cluster.running

    def _status(self, cluster: Cluster, vrg: dict[str, Any]) -> dict[str, Any]:
        spec, status, generation = vrg["spec"], dict(vrg["status"]), vrg["metadata"]["generation"]
        primary = spec["replicationState"] == "primary"
        conditions = dict.fromkeys(self._reached(cluster, primary), "True")
        if cluster.progress >= 2:
            status["observedGeneration"] = generation
            status["state"] = self._state(spec, conditions)
            status["prepareForFinalSyncComplete"] = bool(spec.get("prepareForFinalSync"))
            status["finalSyncComplete"] = bool(spec.get("runFinalSync")) and self._final_sync(cluster)
        merged = {item["type"]: item for item in status.get("conditions", [])}
        merged |= {
            kind: samples.condition(kind, value, generation, since=samples.stamp(self.minutes)) for kind, value in conditions.items()
        }
        return status | {"conditions": list(merged.values())}

    def _reached(self, cluster: Cluster, primary: bool) -> Iterator[str]:
        if primary:
            yield "ClusterDataReady"
        elif cluster.running:
            return
        if cluster.progress >= 2:
            yield from ("DataReady", "NoClusterDataConflict")
            if primary or all(peer.data >= cluster.data for peer in self.clusters.values()):
                yield "DataProtected"
        if primary and cluster.progress >= 3:
            yield "ClusterDataProtected"

    def _state(self, spec: dict[str, Any], conditions: dict[str, str]) -> str:
        if spec["replicationState"] == "primary":
            return "Primary"
        slow = spec.get("action") == "Relocate" and not self.volsync
        wanted = ("DataReady", "DataProtected") if slow else ("DataReady",)
        return "Secondary" if all(kind in conditions for kind in wanted) else "Unknown"

    def _final_sync(self, cluster: Cluster) -> bool:
        peers = [peer for peer in self.clusters.values() if peer is not cluster]
        if not all(peer.receives for peer in peers):
            return False
        for peer in peers:
            peer.data = max(peer.data, cluster.data)
        return True

    def sync(self) -> None:
        """The replication sends what every primary has. A new secondary gives up what only it has."""
        for cluster in self.clusters.values():
            peers = [peer for peer in self.clusters.values() if peer is not cluster]
            if cluster.sends and peers and all(peer.receives for peer in peers):
                for peer in peers:
                    peer.data = cluster.data
                assert cluster.vrg
                cluster.vrg = cluster.vrg | {"status": cluster.vrg["status"] | {"lastGroupSyncTime": samples.stamp(self.minutes)}}

    def write(self) -> None:
        self.writes += 1
        written = any(cluster.alive and cluster.running for cluster in self.clusters.values())
        for cluster in self.clusters.values():
            # Synchronous storage has one copy.
            if written if self.policy.synchronous else cluster.alive and cluster.running:
                cluster.data = self.writes

    def wait(self, minutes: float) -> None:
        self.minutes += minutes

    def ask(self, action: str, target: str, dry_run: bool = False) -> None:
        if not self.intent.deleting:
            wanted = samples.intent(action, target, dry_run=dry_run)
            self.intent = replace(wanted, generation=self.intent.generation + 1)

    def delete(self) -> None:
        """Long after the last request: nothing of it is on its way any more."""
        self.late.clear()
        self.intent = replace(self.intent, deleting=True)

    def fence(self, name: str, fenced: bool) -> None:
        members = tuple(replace(item, fenced=fenced, fencing=fenced) if item.name == name else item for item in self.policy.members)
        self.policy = replace(self.policy, members=members)

    # The end

    def check(self) -> None:
        broken = audit(self.history, synchronous=self.policy.synchronous)
        must(not broken, "; ".join(map(str, broken)))

    def heal(self) -> None:
        """Everything answers and works from now on."""
        for cluster in self.clusters.values():
            cluster.reachable = cluster.alive = True
        self.late.clear()

    def settle(self, rounds: int = 60) -> None:
        for _round in range(rounds):
            for _number in range(8):
                before, result = self.state, self.lead()
                if self.state == before and not result.actions:
                    break
            for name in self.clusters:
                self.run_pods(name)
                self.tick(name)
            self.wait(1)
            self.write()
            self.sync()
        self.check()

    @property
    def gates(self) -> list[str]:
        return [wait.gate for wait in self.last.waits] if self.last else []

    @property
    def primaries(self) -> list[str]:
        return [name for name, cluster in self.clusters.items() if (view := cluster.view) and view.claims_data]

    @property
    def running(self) -> list[str]:
        return [name for name, cluster in self.clusters.items() if cluster.running]


def controller(name: str, replicas: int) -> Object:
    return {"kind": "Deployment", "metadata": {"name": name, "namespace": "shop"}, "spec": {"replicas": replicas}}


def must(true: bool, message: str) -> None:
    if not true:
        raise Violation(message)


def _copy(value: Any) -> Any:
    return {key: _copy(item) for key, item in value.items()} if isinstance(value, dict) else value
