# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One reconcile of one DRPlacementControl: read, decide by the state machine, record, act, and show it.

The leader records each step under its epoch before it acts on it, and repeats this until there is nothing to do now. The others watch: they
show the recorded state on their own copy of the DRPlacementControl and change nothing else. A lost epoch ends a reconcile without an error:
the next leader continues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ..common.types import Object
from ..coordination.documents import DocumentStore, WorkloadRef
from ..coordination.lease import end_term, verify_epoch
from ..coordination.state import HISTORY_LIMIT, StateStore
from ..coordination.state import State as StateDocument
from ..kube.client import Kube
from ..s3.errors import Fenced, StaleRevision
from ..s3.store import ObjectStore
from .act import Acted, Actor, SupersededError, describe
from .copies import CONDITION, AcceptedRequest, accept, standing
from .drpc_status import release, show, status_of
from .machine.conditions import conditions
from .machine.context import Context
from .machine.rebuild import is_rebuilt
from .machine.step import step, sweep_leftovers
from .model import ConditionState, Intent, Observations, Policy, Step
from .modes import Access
from .observe import Observed, Observer, accepted_request, bare_policy
from .policies import validate
from .ramen_api import TRUE, Phase
from .read_results import Found
from .readers import read_ended_epoch, read_intent
from .settings import DIRECT
from .state import State

ROUNDS = 60
REFUSALS = ("RequestValid", "RequestInProgress", "TestInProgress")  # of a request that is not begun, while another one goes on
SECONDS = 60.0
ACTION_REFUSED = "ActionRefused"  # the reason of the condition Waiting if a cluster refuses an action


@dataclass(frozen=True)
class View:
    """What one round has read, and what the state machine makes of it."""

    document: StateDocument
    state: State
    recorded: AcceptedRequest
    accepted: AcceptedRequest
    own: Object | None
    drpc: Object | None  # the copy that the fields come from which are no request
    observed: Observed
    intent: Intent
    policy: Policy
    observations: Observations
    step: Step

    @property
    def is_changed(self) -> bool:
        return self.step.state != self.state or self.accepted != self.recorded

    def changes(self) -> Object:
        changes = self.step.state.to_changes()
        changes["intent"]["accepted_request"] = self.accepted.to_content()
        return changes

    @property
    def outdated(self) -> set[str]:
        """The uids of copies that have to go: of earlier protections, and of this one once it has ended."""
        ended = self.recorded.uids if self.state.is_deleted else set()
        return {*self.recorded.retired, *ended}

    @property
    def ended_epoch(self) -> int:
        """The epoch whose leaders a person has confirmed to be over, while this one waits for that; else 0."""
        (newest, _revision), _name = Context(self.intent, self.state, self.observations, self.policy).newest_stamp
        confirmed = max((read_ended_epoch(copy) for copy in self.observed.copies.values()), default=0)
        waits = any(wait.gate == "NoNewerStamp" for wait in self.step.waits)
        return newest if waits and is_rebuilt(self.state) and confirmed >= newest else 0

    @property
    def releases_own(self) -> bool:
        """Whether this cluster's copy has to go now."""
        return bool(self.own and self.own["metadata"]["uid"] in self.outdated and self.observed.own not in self.state.leftovers)


@dataclass
class Result:
    """What a reconcile came to. `ended` is one word: why it ended."""

    workload: WorkloadRef
    ended: str = ""
    message: str = ""
    changed: bool = False
    view: View | None = None
    recorded: list[str] = field(default_factory=list)  # the revisions, as phase and progression
    actions: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Reconciler:
    """Reconciles the DRPlacementControls of one cluster. `writer` names the process in the history of the state.

    `pause` is called between what is recorded and what is done: tests stop a process there.
    """

    def __init__(
        self,
        kube: Kube,
        access: Access,
        store: ObjectStore,
        writer: str,
        *,
        seconds: float = SECONDS,
        keep_history: int = HISTORY_LIMIT,
        pause: Callable[[], None] = lambda: None,
    ) -> None:
        self._kube = kube
        self._access = access
        self._store = store
        self._writer = writer
        self._seconds = seconds
        self._keep = keep_history
        self._pause = pause

    @property
    def differences(self) -> list[str]:
        """Where the other mode of access answered otherwise, if the settings ask to compare."""
        return self._access.differences

    def lead(self, workload: WorkloadRef, epoch: int, acting: Callable[[], bool] = lambda: True) -> Result:
        """Record and act under the epoch until there is nothing to do now, a gate is closed, or the time is over.

        `acting` says whether the term lasts: it is asked before each action, since a round may take longer than the rest of the term.
        """
        result, run = Result(workload), self._run(workload)
        run.acting = acting
        try:
            self._lead(run, epoch, result)
        except (Fenced, StaleRevision, SupersededError) as error:
            result.ended = "Superseded" if isinstance(error, SupersededError) else type(error).__name__
            result.message = str(error)
        return result

    def watch(self, workload: WorkloadRef) -> Result:
        """Show the recorded state on this cluster's copy."""
        result, run = Result(workload), self._run(workload)
        view = result.view = run.view()
        if view is None or not view.state.revision:
            result.ended, result.message = "NotStarted", f"No leader has begun with {workload}."
            return result
        if view.own and view.releases_own:
            result.changed = release(self._kube, view.own)
        else:
            context = Context(view.intent, view.state, view.observations, view.policy)
            result.changed = self._show(view, conditions(context, view.state, view.step.waits), [])
        result.ended = "Watched"
        return result

    def plan(self, workload: WorkloadRef, change: Callable[[Intent], Intent] = lambda intent: intent) -> tuple[View, list[Step]] | None:
        """The steps that a leader would take with this intent until it acts or waits. Nothing is written."""
        view = self._run(workload, write=False).view()
        if view is None:
            return None
        return view, plan_steps(change(view.intent), view.state, view.observations, view.policy)

    def _run(self, workload: WorkloadRef, *, write: bool = True) -> _Run:
        states = StateStore(DocumentStore(self._store, workload.identity()), workload, self._writer, self._keep)
        observer = Observer(self._kube, self._access, self._store, workload)
        return _Run(self._kube, self._access, states, observer, workload, write)

    def _lead(self, run: _Run, epoch: int, result: Result) -> None:
        deadline = time.monotonic() + self._seconds
        documents = DocumentStore(self._store, result.workload.identity())
        for _round in range(ROUNDS):
            verify_epoch(documents, result.workload, epoch)
            view = result.view = run.view()
            if view is None:
                result.ended, result.message = "NotFound", f"No cluster that answers has the DRPlacementControl {result.workload}."
                return
            if not view.document.revision or view.ended_epoch:
                # The state was deleted during this term, or is one that a bucket lost: the next term seals it, under a
                # later epoch.
                end_term(documents, result.workload, epoch, view.ended_epoch)
                result.ended, result.message = "TermEnded", f"The next leader of {result.workload} rebuilds its state."
                return
            if view.is_changed:
                run.states.write(epoch, view.changes(), view.document.revision)
                result.recorded.append(_position(view.step.state))
                result.changed = True
                self._pause()
                continue
            acted = self._act(run, view)
            result.actions += acted.changed
            result.problems = acted.problems
            result.changed |= bool(acted.changed)
            if not acted.changed and not acted.silent:
                break
            if time.monotonic() > deadline:
                result.ended = "DeadlineExceeded"
                break
        if result.view:
            self._conclude(result, result.view)

    def _act(self, run: _Run, view: View) -> Acted:
        actor = Actor(
            replace(self._access, deployer=self._access.deployer.during(run.acting)),
            run.states.workload,
            view.drpc or run.stub(),
            view.state,
            view.observed,
            lambda: bool(view.own) and release(self._kube, view.own or {}),
            run.acting,
        )
        parts = [actor.do(view.step.actions)]
        if view.outdated:
            parts.append(actor.delete_copies(view.outdated, view.state.leftovers))
            if view.own and view.releases_own and not view.state.is_deleted:
                parts.append(Acted(["delete the DRPlacementControl of an earlier protection"] if release(self._kube, view.own) else []))
        if view.state.uid and view.drpc and not view.accepted.deleting:
            parts.append(actor.spread(_spec(view, view.drpc), view.drpc["metadata"].get("labels") or {}))
        acted = Acted()
        for part in parts:
            acted.changed += part.changed
            acted.problems += part.problems
            acted.silent |= part.silent
        if acted.silent and not run.acting():
            # Whether a cluster answers was not found out: nothing is decided on it.
            raise Fenced(f"The term of epoch {view.state.epoch} of {run.states.workload} is over. Nothing more was written.")
        for name, why in acted.silent.items():
            run.observer.silence(name, why)
        return acted

    def _conclude(self, result: Result, view: View) -> None:
        result.changed |= self._show(view, view.step.conditions, result.problems)
        result.ended = result.ended or ("Waiting" if view.step.waits else "Settled" if not view.state.request else "Acting")

    def _show(self, view: View, shown: Mapping[str, ConditionState], problems: list[str]) -> bool:
        own = view.own
        if own is None or own["metadata"]["uid"] in view.outdated:
            return False
        wanted = dict(shown) | {CONDITION: standing(view.recorded, read_intent(own), view.document.leader)}
        if problems:
            gates = wanted["Waiting"]
            reason, why = (gates.reason, [gates.message, *problems]) if gates.status == TRUE else (ACTION_REFUSED, problems)
            wanted["Waiting"] = ConditionState(TRUE, reason, " ".join(why))
        answer = view.observations.vrgs.get(view.state.home)
        home = answer.item if isinstance(answer, Found) else None
        return show(self._kube, own, view.state, status_of(own, view.state, wanted, home, view.observations.now))


@dataclass
class _Run:
    """The reads of one reconcile."""

    kube: Kube
    access: Access
    states: StateStore
    observer: Observer
    workload: WorkloadRef
    write: bool
    acting: Callable[[], bool] = lambda: True

    def stub(self) -> Object:
        return {"metadata": {"namespace": self.workload.namespace, "name": self.workload.name}}

    def view(self) -> View | None:
        """None if no cluster that answers has the DRPlacementControl, and none is needed any more."""
        document = self.states.read()
        state, recorded = State.from_document(document), accepted_request(document.intent)
        own = self.observer.own_copy()
        base = self._base(own, state, recorded)
        policy = self.policy(base, state) if base else bare_policy(recorded, state)
        observed = self.observer.members(policy.clusters, own, read_intent(base) if base else None, recorded)
        accepted = accept(recorded, observed.intents, ended=state.is_deleted)
        if base is None and not (state.is_deleted or state.phase == Phase.DELETING):
            return None
        shown = read_intent(base) if base else Intent(self.workload.namespace, self.workload.name, state.uid, accepted.number)
        intent = accepted.apply_to(shown)
        observations = self.observer.observations(observed, base or self.stub(), intent, state, policy)
        # What a member had left is deleted before the copy that still stands for it.
        left = state.is_deleted and accepted == recorded and (own is None or observed.own in state.leftovers)
        decide = sweep_leftovers if left else step
        return View(
            document,
            state,
            recorded,
            accepted,
            own,
            base,
            observed,
            intent,
            policy,
            observations,
            decide(intent, state, observations, policy),
        )

    def _base(self, own: Object | None, state: State, recorded: AcceptedRequest) -> Object | None:
        """This cluster's copy, else that of another member. After the end of a protection, one of the next protection first."""
        outdated = {*recorded.retired, *(recorded.uids if state.is_deleted else ())}
        if own and own["metadata"]["uid"] not in outdated:
            return own
        found = self.observer.find_copies(self.observer.registered()) if self.access.mode == DIRECT else []
        fresh = [item for item in found if item["metadata"]["uid"] not in outdated]
        left = [item for item in [own, *found] if item and item["metadata"]["uid"] not in recorded.retired]
        return next(iter([*fresh, *left]), None)

    def policy(self, drpc: Object, state: State) -> Policy:
        registered = self.observer.registered()
        # A plan goes on to what is decided on a fence.
        recent = state.is_settled and self.write
        return self.observer.policy(
            drpc, lambda item, clusters: validate(self.kube, item, clusters, registered, write=self.write), recent=recent
        )


def _spec(view: View, drpc: Object) -> Object:
    """The spec of a new copy: with the request that counts."""
    spec = view.accepted.spec
    request = {"action": spec.action, "preferredCluster": spec.preferred, "failoverCluster": spec.failover, "dryRun": spec.dry_run}
    others = {name: value for name, value in drpc["spec"].items() if name not in request}
    return others | {name: value for name, value in request.items() if value}


def _position(state: State) -> str:
    return f"{state.phase or 'no phase'}/{state.progression or 'no progression'}"


def plan_steps(intent: Intent, state: State, observations: Observations, policy: Policy) -> list[Step]:
    """The steps until one acts or waits, as if each were recorded."""
    steps = []
    for _round in range(ROUNDS):
        taken = step(intent, state, observations, policy)
        steps.append(taken)
        if taken.state == state:
            break
        state = replace(taken.state, epoch=state.epoch, revision=state.revision + 1)
    return steps


def would_do(steps: list[Step]) -> tuple[list[str], list[str], list[str]]:
    """What a plan says: the phases and progressions it passes, the first actions, and what blocks it."""
    passed = list(dict.fromkeys(_position(taken.state) for taken in steps))
    last = steps[-1]
    # A gate that the first actions open is no obstacle.
    blocked_by = [wait for wait in last.waits if not last.actions or wait.gate in REFUSALS]
    return passed, [describe(action) for action in last.actions], [str(wait) for wait in blocked_by]
