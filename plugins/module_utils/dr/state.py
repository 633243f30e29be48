# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the bucket knows about a workload: its home, the request in progress, the decision. The only memory of the state machine.

`home` and `last_action` change when a move has its new home. A test failover does not change them, so they are also what a test failover
is reverted to.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from ..common.types import Object
from ..coordination.state import State as StateDocument
from .ramen_api import FAILOVER, RELOCATE, Phase, Progression
from .vrg import StorageTarget

# The kinds of requests besides FAILOVER and RELOCATE
DEPLOY, TEST, REVERT = "Deploy", "TestFailover", "RevertTestFailover"
SETTLED_PHASES = {"": Phase.DEPLOYED, FAILOVER: Phase.FAILED_OVER, RELOCATE: Phase.RELOCATED}


@dataclass(frozen=True)
class Request:
    """A request in progress, and how far it has come."""

    kind: str
    target: str
    stage: str
    origin: str = ""  # the cluster that may be primary when the request begins
    generation: int = 0  # of the DRPlacementControl that requests it
    started_at: str = ""
    demoted: bool = False  # from here on it cannot be taken back
    promoted: bool = False
    unanswered: tuple[str, ...] = ()  # clusters that did not answer when the demotion was recorded

    @property
    def action(self) -> str:
        """The action in the spec of a VolumeReplicationGroup."""
        return {FAILOVER: FAILOVER, TEST: FAILOVER, RELOCATE: RELOCATE}.get(self.kind, "")

    @property
    def is_test(self) -> bool:
        return self.kind == TEST

    def __str__(self) -> str:
        return f"{self.kind} to {self.target}"


@dataclass(frozen=True)
class Decision:
    """The cluster that has the workload; the cluster on which it is retained meanwhile; why."""

    cluster: str = ""
    retained: str = ""
    reason: str = ""


@dataclass(frozen=True)
class State:
    """The state of one workload at one revision of its document."""

    uid: str = ""  # of the DRPlacementControl that began this protection; empty: there is none
    phase: str = Phase.NONE
    progression: str = Progression.NONE
    home: str = ""
    last_action: str = ""
    request: Request | None = None
    decision: Decision = field(default_factory=Decision)
    peer_ready: bool = False
    moved_at: str = ""  # PeerReady needs a sync that is newer, on the clock of the new home
    started_at: str = ""
    duration: int = 0  # of the last request, in seconds
    storage: tuple[StorageTarget, ...] = ()  # of the home's volumes: a failover must not read it from a dead site
    leftovers: tuple[str, ...] = ()  # clusters that may still have objects of an earlier protection
    paused_generation: int = 0  # of the DRPlacementControl when the state could not be rebuilt
    waiting: tuple[tuple[str, str], ...] = ()  # gates and since when
    epoch: int = field(default=0, compare=False)
    revision: int = field(default=0, compare=False)

    @property
    def is_deleted(self) -> bool:
        return self.progression == Progression.DELETED

    @property
    def is_settled(self) -> bool:
        """Whether the workload has its home, and nothing is requested."""
        return bool(self.home) and self.request is None

    @property
    def in_progress(self) -> Request:
        """The request, for what is only done while there is one."""
        if self.request is None:
            raise ValueError("no request is in progress")
        return self.request

    @property
    def last_primary(self) -> str:
        """The cluster that was promoted last."""
        if not self.request:
            return self.home
        return self.request.target if self.request.promoted else self.request.origin

    @property
    def settled_phase(self) -> str:
        """The phase after the last action, for when nothing is in progress."""
        return SETTLED_PHASES[self.last_action]

    def since(self, gate: str) -> str:
        return dict(self.waiting).get(gate, "")

    def to_changes(self) -> dict[str, Any]:
        """The fields of the document that `StateStore.write` changes."""
        content = asdict(self)
        for name in ("epoch", "revision"):
            del content[name]
        return {"intent": _as_json(content), "decision": content.pop("decision"), "step": self.progression}

    @classmethod
    def from_document(cls, document: StateDocument) -> State:
        content = document.intent
        request = content.get("request")
        known = _known(cls, content)
        return replace(
            cls(**known),
            request=Request(**(_known(Request, request) | {"unanswered": tuple(request["unanswered"])})) if request else None,
            decision=Decision(**_known(Decision, document.decision)),
            storage=tuple(StorageTarget(**item) for item in content.get("storage", ())),
            leftovers=tuple(content.get("leftovers", ())),
            waiting=tuple((gate, since) for gate, since in content.get("waiting", ())),
            epoch=document.epoch,
            revision=document.revision,
        )


def _known(kind: type[Any], content: Object) -> Object:
    """The fields that this version knows: a newer leader may have written more."""
    names = {item.name for item in fields(kind)}
    return {name: value for name, value in content.items() if name in names}


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_json(item) for name, item in value.items() if name != "decision"}
    return [_as_json(item) for item in value] if isinstance(value, (list, tuple)) else value
