# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Does the actions of a step, each fenced by the stamp of the revision that names its reason. It decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from ..common.types import Object
from ..coordination.documents import WorkloadRef
from ..s3.errors import Fenced
from .interfaces import BadPlacement, Deployed, ObjectRef, Outcome, Refused, Stamp, Superseded
from .kinds import DRPC, RAMEN
from .kinds import VRG as VRG_KIND
from .model import Action, DeleteVRG, DeployVRG, ReleaseDRPC, SetPlacement, StartWorkload, StopWorkload
from .modes import Access
from .observe import Observed
from .ramen_api import DRPC_UID
from .read_results import Unknown
from .state import State
from .workloads import REPLICAS, Write, starts, stops


class SupersededError(Exception):
    """An object has a newer stamp: a later leader acts."""


def describe(action: Action) -> str:
    """An action for people to read."""
    match action:
        case DeployVRG(cluster, spec):
            flags = [name for name in ("dryRun", "prepareForFinalSync", "runFinalSync") if spec.get(name)]
            role = f"{spec['replicationState']} ({', '.join(flags)})" if flags else spec["replicationState"]
            return f"make {cluster} {role}"
        case DeleteVRG(cluster):
            return f"delete the VolumeReplicationGroup of {cluster}"
        case SetPlacement(cluster, retained):
            kept = f", retained on {retained}" if retained else ""
            return f"place the workload on {cluster or 'no cluster'}{kept}"
        case StartWorkload(cluster):
            return f"start the workload on {cluster}"
        case StopWorkload(cluster):
            return f"stop the workload on {cluster}"
    return "release the DRPlacementControl"


def cluster_of(action: Action) -> str:
    return "" if isinstance(action, (SetPlacement, ReleaseDRPC)) else action.cluster


@dataclass
class Acted:
    """What the actions of a round came to."""

    changed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    silent: dict[str, Unknown] = field(default_factory=dict)


class Actor:
    """Acts for one workload at one revision of its state. `release` removes what keeps this cluster's copy from deletion.

    Nothing is begun after the term, as `acting` reports it: an object that the next leader has not written yet would accept it.
    """

    def __init__(
        self,
        access: Access,
        workload: WorkloadRef,
        drpc: Object,
        state: State,
        observed: Observed,
        release: Callable[[], bool],
        acting: Callable[[], bool],
    ) -> None:
        self._access = access
        self._workload = workload
        self._drpc = drpc
        self._observed = observed
        self._release = release
        self._acting = acting
        self._stamp = Stamp(state.uid, state.epoch, state.revision)
        self._leftovers = state.leftovers
        self._ref = ObjectRef(RAMEN, VRG_KIND, workload.namespace, workload.name)

    def do(self, actions: tuple[Action, ...]) -> Acted:
        """All actions in order. A cluster that stops answering is skipped; SupersededError if a later leader acts."""
        acted = Acted()
        for action in actions:
            if cluster_of(action) not in acted.silent:
                self._check_term()
                self._note(acted, cluster_of(action), describe(action), self._outcome(action))
        return acted

    def spread(self, spec: Object, labels: Object) -> Acted:
        """Give each member that lacks one a copy of the DRPlacementControl, so that it can be changed where a person is."""
        acted = Acted()
        metadata = {"name": self._workload.name, "namespace": self._workload.namespace, "labels": labels}
        for name in self._observed.missing:
            item = {"apiVersion": RAMEN, "kind": DRPC, "metadata": metadata, "spec": spec}
            self._check_term()
            self._note(acted, name, f"create the DRPlacementControl on {name}", self._access.deployer.apply(name, item, self._stamp))
        return acted

    def delete_copies(self, uids: set[str], kept: Collection[str]) -> Acted:
        """Begin the deletion of copies on other members, by uid, but for those on `kept`. Their own processes remove the finalizers."""
        acted = Acted()
        for name, copy in self._observed.copies.items():
            metadata = copy["metadata"]
            if name in ("", self._observed.own, *kept) or metadata["uid"] not in uids or "deletionTimestamp" in metadata:
                continue
            stamp = replace(self._stamp, adopts=frozenset({_owner(copy)}))
            self._check_term()
            outcome = self._access.deployer.delete(name, ObjectRef(RAMEN, DRPC, metadata["namespace"], metadata["name"]), stamp)
            self._note(acted, name, f"delete the DRPlacementControl of {name}", outcome)
        return acted

    def _check_term(self) -> None:
        if not self._acting():
            raise Fenced(f"The term of epoch {self._stamp.epoch} of {self._workload} is over. Nothing more was written.")

    def _note(self, acted: Acted, cluster: str, what: str, outcome: Outcome) -> None:
        match outcome:
            case Deployed(changed):
                acted.changed += [what] if changed else []
            case Superseded():
                raise SupersededError(outcome.why)
            case Refused(why):
                acted.problems.append(f"Cannot {what}: {why}")
            case _:
                acted.silent[cluster] = outcome
                acted.problems.append(f"Cannot {what}: {outcome.why}")

    def _outcome(self, action: Action) -> Outcome:
        match action:
            case DeployVRG(cluster, spec, owner, adopts):
                return self._deploy(cluster, spec, replace(_adopting(self._stamp, adopts), drpc_uid=owner))
            case DeleteVRG(cluster, adopts):
                return self._access.deployer.delete(cluster, self._ref, _adopting(self._stamp, adopts))
            case SetPlacement(cluster, retained):
                return self._place(cluster, retained)
            case StartWorkload(cluster):
                return self._scale(cluster, starts, f"or set its annotation {REPLICAS} to 0 to leave it stopped")
            case StopWorkload(cluster):
                return self._scale(cluster, stops, "or scale it to 0")
        return self._end()

    def _deploy(self, cluster: str, spec: Object, stamp: Stamp) -> Outcome:
        metadata = {"name": self._workload.name, "namespace": self._workload.namespace}
        return self._access.deployer.apply(cluster, {"apiVersion": RAMEN, "kind": VRG_KIND, "metadata": metadata, "spec": spec}, stamp)

    def _end(self) -> Outcome:
        """Nothing is read any more. What a member that does not answer has left is deleted when it returns."""
        for name in self._leftovers:
            self._access.deployer.delete_later(name, self._ref, self._stamp)
        self._access.reader.forget(tuple(self._observed.vrgs), self._ref)
        return Deployed(self._release())

    def _place(self, cluster: str, retained: str) -> Outcome:
        try:
            self._change_placement(cluster, retained)
        except BadPlacement as error:
            return Refused(str(error))
        return Deployed(changed=True)

    def _change_placement(self, cluster: str, retained: str) -> None:
        placement, before = self._access.placement, self._access.placement.read(self._drpc)
        gone = [name for name in (before.cluster, *before.retained) if name and name not in (cluster, retained)]
        for name in gone:
            placement.clear(self._drpc, name, self._stamp)
        if retained:
            placement.retain(self._drpc, retained, self._stamp)
        if cluster:
            placement.set(self._drpc, cluster, self._stamp)

    def _scale(self, cluster: str, scaling: Callable[[Iterable[Object]], list[list[Write]]], otherwise: str) -> Outcome:
        """The writes in order. One that is refused holds up what comes after all of its kind, but not the others of its kind."""
        changed = False
        for writes in scaling(self._observed.controllers.get(cluster, ())):
            refused = []
            for item, wanted in writes:
                stamp = replace(self._stamp, adopts=frozenset({_owner(item)}))
                outcome = self._access.deployer.apply(cluster, wanted, stamp)
                if isinstance(outcome, Refused):
                    refused.append(f"{item['kind']} {item['metadata']['name']}: {outcome.why} Correct that, {otherwise}.")
                elif isinstance(outcome, Deployed):
                    changed |= outcome.changed
                else:
                    return outcome
            if refused:
                return Refused(" ".join(refused))
        return Deployed(changed)


def _adopting(stamp: Stamp, owner: str) -> Stamp:
    return replace(stamp, adopts=frozenset({owner} - {""}))


def _owner(item: Object) -> str:
    return str((item["metadata"].get("annotations") or {}).get(DRPC_UID, ""))
