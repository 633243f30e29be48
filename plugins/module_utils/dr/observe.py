# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads what a step is computed from: the objects of this cluster, and those of all members at once. It decides nothing.

A member that does not answer is waited for once in a reconcile, not once in each round of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..common.types import Object
from ..coordination.documents import WorkloadRef
from ..kube.client import Kube
from ..kube.errors import NotFound
from ..s3.store import ObjectStore
from .copies import AcceptedRequest
from .interfaces import Decision, ObjectRef
from .kinds import DR_CLUSTER, DR_POLICY, DRPC, RAMEN
from .kinds import VRG as VRG_KIND
from .model import GroupMember, Intent, Member, Observations, Placed, Policy
from .modes import Access
from .neighbors import find_neighbors, recorded_state
from .ramen_api import GROUP_LABEL, Phase
from .read_results import Found, Listed, ListResult, ReadResult, Unauthorized, Unknown, Unreachable
from .readers import read_intent, read_policy, read_workload, with_fences
from .s3_vrgs import newest_primary
from .settings import DIRECT
from .stamps import stamps_of
from .state import State
from .vrg import VRG
from .workloads import APPS, KINDS, belongs, protected_claims

OWN = ""  # the copy of this cluster, if this cluster is not a member


@dataclass(frozen=True)
class Observed:
    """What was read in one round."""

    copies: Mapping[str, Object]  # of the DRPlacementControl, by cluster, this cluster's first
    missing: tuple[str, ...]  # members that answered and have no copy
    vrgs: Mapping[str, ReadResult]
    controllers: Mapping[str, tuple[Object, ...]]  # Deployments and StatefulSets of members that answered
    own: str = OWN  # the name of this cluster among the members

    @property
    def intents(self) -> dict[str, Intent]:
        return {name: read_intent(item) for name, item in self.copies.items()}


class Observer:
    """Reads for one reconcile of one workload."""

    def __init__(self, kube: Kube, access: Access, store: ObjectStore, workload: WorkloadRef) -> None:
        self._kube = kube
        self._access = access
        self._store = store
        self._workload = workload
        self._silent: dict[str, Unknown] = {}

    def find_copies(self, clusters: Sequence[str]) -> list[Object]:
        """The copies of the DRPlacementControl on these clusters."""
        (answers,) = self._read_all(clusters, [lambda names: self._access.reader.get(names, self._ref(DRPC))])
        return [answer.item for answer in answers.values() if isinstance(answer, Found)]

    def own_copy(self) -> Object | None:
        return self._kube.find(RAMEN, DRPC, self._workload.name, self._workload.namespace)

    def registered(self) -> list[str]:
        """The names of all clusters that are known."""
        return [cluster.name for cluster in self._access.read_cache.get("clusters", self._access.directory.clusters)]

    def policy(self, drpc: Object, validate: Callable[[Object, Collection[str]], Object], *, recent: bool) -> Policy:
        """The policy of a DRPlacementControl and its DRClusters, as this cluster has them. `validate` gets it and their names.

        One that is `recent` is enough where nothing is decided on a fence.
        """
        name = drpc["spec"]["drPolicyRef"]["name"]
        policy, clusters = self._access.read_cache.get((DR_POLICY, name), lambda: self._policy(name)) if recent else self._policy(name)
        found = read_policy(validate(policy, {cluster["metadata"]["name"] for cluster in clusters}), clusters)
        return found if recent or not found.synchronous else with_fences(found, self._fences(found.clusters))

    def members(self, clusters: Sequence[str], own: Object | None, intent: Intent | None, recorded: AcceptedRequest) -> Observed:
        """Everything of all members, at once. `recorded` says which of them this cluster was."""
        reader, direct = self._access.reader, self._access.mode == DIRECT
        namespaces = intent.namespaces if intent else (self._workload.namespace,)
        reads: list[Callable[[Sequence[str]], Mapping[str, Any]]] = [
            lambda names: reader.get(names, self._ref(VRG_KIND)),
            lambda names: reader.get(names if direct else (), self._ref(DRPC)),
        ]
        # A hub starts and stops workloads by their placement, and its views are of single objects.
        for namespace in namespaces if direct else ():
            reads += [lambda names, kind=kind, space=namespace: reader.list(names, APPS, kind, space) for kind in KINDS]  # type: ignore[misc]
        vrgs, copies, *lists = self._read_all(clusters, reads)
        silent = {name: vrgs[name] for name in clusters if name in self._silent}
        found = {name: answer.item for name, answer in copies.items() if isinstance(answer, Found)}
        name = _own_name(own, found, silent, recorded)
        first = {name: own} if own else {}
        return Observed(
            copies=first | {each: item for each, item in found.items() if each != name},
            missing=tuple(each for each in clusters if direct and each not in found and each not in silent),
            vrgs=vrgs,
            controllers=_controllers(clusters, lists, intent, vrgs),
            own=name,
        )

    def observations(self, observed: Observed, drpc: Object, intent: Intent, state: State, policy: Policy) -> Observations:
        # Once the DRPlacementControl is gone, so is the reference to its placement.
        decision = self._access.placement.read(drpc) if "spec" in drpc else Decision()
        # The stores are read only while the state is rebuilt: later one of them may be that of a dead site.
        stored, where = self._newest(policy) if state.phase in (Phase.NONE, Phase.WAIT_FOR_USER) else (None, "")
        member, ops = policy.member(observed.own), self._access.settings.ops_namespace
        return Observations(
            now=self._kube.server_time() or datetime.now(UTC),
            vrgs=observed.vrgs,
            workloads={name: read_workload(items) for name, items in observed.controllers.items()},
            placed=Placed(decision.cluster, next(iter(decision.retained), "")),
            stored=stored,
            stored_cluster=where,
            group=self._group(intent),
            region=member.region if member else "",
            ops_namespace=ops,
            stamps=stamps_of(observed.controllers),
            neighbors=() if state.home or state.request else find_neighbors(self._kube, self._store, intent, policy, ops),
        )

    def silence(self, cluster: str, why: Unknown) -> None:
        """Send the cluster no more requests in this reconcile."""
        self._silent[cluster] = why

    def _policy(self, name: str) -> tuple[Object, list[Object]]:
        policy = self._kube.find(RAMEN, DR_POLICY, name)
        if policy is None:
            raise NotFound(f"The DRPolicy {name} does not exist on this cluster: create it here too.")
        return policy, [found for member in policy["spec"]["drClusters"] if (found := self._kube.find(RAMEN, DR_CLUSTER, member))]

    def _fences(self, clusters: Sequence[str]) -> list[Object]:
        """The copies of the DRClusters that the members have: a person fences a cluster on any of its peers."""
        if self._access.mode != DIRECT:
            return []
        reader, refs = self._access.reader, [ObjectRef(RAMEN, DR_CLUSTER, "", name) for name in clusters]
        answers = self._read_all(clusters, [lambda names, ref=ref: reader.get(names, ref) for ref in refs])  # type: ignore[misc]
        return [answer.item for each in answers for answer in each.values() if isinstance(answer, Found)]

    def _newest(self, policy: Policy) -> tuple[VRG | None, str]:
        profiles = [member.s3_profile for member in policy.members if member.s3_profile]
        return newest_primary(self._kube, self._workload, profiles, self._access.settings.timeout)

    def _group(self, intent: Intent) -> tuple[GroupMember, ...]:
        """The others of the group, with the request that counts for each."""
        if not intent.group:
            return ()
        found = [read_intent(item) for item in self._kube.list_all(RAMEN, DRPC, label_selector=f"{GROUP_LABEL}={intent.group}")]
        others = [item for item in found if (item.namespace, item.name) != (intent.namespace, intent.name)]
        return tuple(GroupMember(f"{other.namespace}/{other.name}", other.action, other.target) for other in map(self._in_effect, others))

    def _in_effect(self, intent: Intent) -> Intent:
        """The intent with the request in effect instead of that of this copy."""
        accepted = accepted_request(recorded_state(self._store, intent).intent)
        return accepted.apply_to(intent) if accepted.number else intent

    def _read_all(self, clusters: Sequence[str], reads: Iterable[Callable[[Sequence[str]], Mapping[str, Any]]]) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(8) as threads:
            results = list(threads.map(lambda read: self._read(clusters, read), reads))
        # What one of the reads did not get counts for all: the cluster is not known as a whole.
        for answers in results:
            self._silent |= {name: answer for name, answer in answers.items() if isinstance(answer, (Unreachable, Unauthorized))}
        return [answers | {name: why for name, why in self._silent.items() if name in clusters} for answers in results]

    def _read(self, clusters: Sequence[str], read: Callable[[Sequence[str]], Mapping[str, Any]]) -> dict[str, Any]:
        reachable = [name for name in clusters if name not in self._silent]
        return {**{name: self._silent[name] for name in clusters if name in self._silent}, **(read(reachable) if reachable else {})}

    def _ref(self, kind: str) -> ObjectRef:
        return ObjectRef(RAMEN, kind, self._workload.namespace, self._workload.name)


def _own_name(own: Object | None, found: Mapping[str, Object], silent: Collection[str], recorded: AcceptedRequest) -> str:
    """The member that is this cluster: its copy is the same. One that does not answer is the one that it was before."""
    if not own:
        return OWN
    uid = own["metadata"]["uid"]
    known = recorded.cluster_of(uid)
    return next((name for name, item in found.items() if item["metadata"]["uid"] == uid), known if known in silent else OWN)


def accepted_request(intent: Mapping[str, Any]) -> AcceptedRequest:
    """The request in the content of a state."""
    return AcceptedRequest.from_content(intent.get("accepted_request") or {})


def bare_policy(accepted: AcceptedRequest, state: State) -> Policy:
    """The members of a protection whose DRPlacementControl is gone, as far as they matter to its end."""
    names = sorted({name for name in accepted.observed_copies if name} | set(state.leftovers))
    return Policy("", tuple(Member(name) for name in names))


def _controllers(
    clusters: Sequence[str], lists: Sequence[Mapping[str, ListResult]], intent: Intent | None, vrgs: Mapping[str, ReadResult]
) -> dict[str, tuple[Object, ...]]:
    if intent is None:
        return {}
    claims = protected_claims(VRG.from_object(answer.item) for answer in vrgs.values() if isinstance(answer, Found))
    result = {}
    for name in clusters:
        answers = [answers.get(name, Unreachable("no request was sent")) for answers in lists]
        items = [item for answer in answers if isinstance(answer, Listed) for item in answer.items]
        if all(isinstance(answer, Listed) for answer in answers):
            result[name] = tuple(item for item in items if belongs(item, intent.pvc_selector, claims))
    return result
