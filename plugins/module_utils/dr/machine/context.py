# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What one step is computed from, with the questions that all subjects ask about it; and what a subject answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ...common.timestamps import format_time
from ..model import Action, Intent, Observations, Policy, Wait, Workload
from ..read_results import Absent, Found
from ..state import Request, State
from ..vrg import VRG


@dataclass(frozen=True)
class Context:
    """The four inputs of a step."""

    intent: Intent
    state: State
    observations: Observations
    policy: Policy

    @property
    def now(self) -> str:
        return format_time(self.observations.now)

    @property
    def request(self) -> Request:
        return self.state.in_progress

    @property
    def target(self) -> str:
        """The cluster that has the workload, or is to have it."""
        return self.state.request.target if self.state.request else self.state.home

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(name for name in self.policy.clusters if name != self.target)

    @property
    def action(self) -> str:
        """The action in the spec of the VolumeReplicationGroups."""
        return (self.state.request.action if self.state.request else "") or self.state.last_action

    @cached_property
    def vrgs(self) -> dict[str, VRG]:
        """All that were found, those of earlier protections too."""
        answers = {name: self.observations.answer(name) for name in self.policy.clusters}
        return {name: VRG.from_object(answer.item) for name, answer in answers.items() if isinstance(answer, Found)}

    @property
    def newest_stamp(self) -> tuple[tuple[int, int], str]:
        """The latest epoch and revision that any object of the workload was written under, and the object."""
        groups = {f"The VolumeReplicationGroup of {name}": vrg.stamp for name, vrg in self.vrgs.items()}
        found = groups | dict(self.observations.stamps)
        return max(((stamp, name) for name, stamp in found.items()), default=((0, 0), ""))

    def own(self, cluster: str) -> VRG | None:
        """The VolumeReplicationGroup of this protection. One of an earlier protection, or one in deletion, is none."""
        found = self.vrgs.get(cluster)
        return found if found and self.is_owned(found) and not found.deleting else None

    def is_owned(self, vrg: VRG) -> bool:
        return bool(self.state.uid) and vrg.owner == self.state.uid

    def is_absent(self, cluster: str) -> bool:
        return isinstance(self.observations.answer(cluster), Absent)

    def answered(self, cluster: str) -> bool:
        return self.observations.answered(cluster)

    def unanswered(self, clusters: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in clusters if not self.answered(name))

    def workload(self, cluster: str) -> Workload | None:
        return self.observations.workload(cluster)

    def explain(self, clusters: Iterable[str]) -> str:
        """Clusters that did not answer, each with the reason."""
        return ", ".join(f"{name} ({getattr(self.observations.answer(name), 'why', '')})" for name in clusters)


@dataclass(frozen=True)
class Outcome:
    """What a subject decides: a state to record, actions to do, or gates to wait for."""

    state: State | None = None
    actions: tuple[Action, ...] = ()
    waits: tuple[Wait, ...] = ()
