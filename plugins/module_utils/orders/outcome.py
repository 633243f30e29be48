# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is known of a run for an order: its job, its outcome, and that it was lost or did not begin. Plain data of the status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from ..common.text import shortened
from ..common.timestamps import format_time, parse_time
from ..common.types import Object
from ..lock.lease import LockState
from ..providers.model import ConditionState, NodeRequest
from .model import ClusterOrder, Failure, config_version

Action = Literal["provision", "post_install", "delete"]


@dataclass(frozen=True)
class Job:
    """The run that works on an order."""

    id: str
    url: str = ""
    started_at: datetime | None = None

    @classmethod
    def from_status(cls, job: Object) -> Job:
        return cls(job["id"], job.get("url", ""), parse_time(job.get("startedAt")))

    def to_status(self) -> Object:
        job: Object = {"id": shortened(self.id, 255)}
        if self.url:
            job["url"] = shortened(self.url, 2048)
        if self.started_at:
            job["startedAt"] = format_time(self.started_at)
        return job


@dataclass(frozen=True)
class PartReport:
    """What a role of a template reports of one part of the infrastructure, such as the hosts, and conditions that it shows."""

    ready: bool
    reason: str
    message: str = ""
    conditions: Mapping[str, ConditionState] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What a run reports of an order at its start and at its end, and the `job` that it is.

    `config_version` is that of the spec the run worked on: if the order has changed since, only the job counts. `finished` means that
    the step is complete, `template_applied` that no later step of the template remains. `accepted` is whether template and parameters
    are valid; False comes with a failure that says why. `node_requests` include the template's defaults. `provider` is the type of the
    provider that serves the cluster. `infrastructure` has the parts that the roles of the template reported, by name.
    """

    step: Action
    config_version: str
    accepted: bool | None = None
    finished: bool = False
    template_applied: bool = False
    node_requests: tuple[NodeRequest, ...] | None = None
    provider: str = ""
    failure: Failure | None = None
    job: Job | None = None
    infrastructure: Mapping[str, PartReport] | None = None

    def is_about(self, order: ClusterOrder) -> bool:
        return self.config_version == config_version(order) and (self.step == "delete") == order.is_deleting

    def __post_init__(self) -> None:
        if self.accepted is False and self.failure is None:
            raise ValueError("an order is rejected only with a failure that says why")


@dataclass(frozen=True)
class LostRun:
    """A run that was killed: it took the order's lock at `began`, and the lock expired at `at` without a release."""

    holder: str
    at: datetime
    began: datetime | None = None

    @classmethod
    def of(cls, lock: LockState | None, now: datetime | None) -> LostRun | None:
        """The run that an order's lock shows to be lost, if it does."""
        at = lock.expired_at(now) if lock else None
        return cls(lock.holder, at, parse_time(lock.acquired)) if lock and at else None

    def failure(self) -> Failure:
        return Failure(
            "RunLost",
            f"The run {self.holder} ended without a report, and its lock expired at {format_time(self.at)}. "
            "The next run continues from the state it left.",
        )

    def is_about(self, order: ClusterOrder) -> bool:
        """Whether it worked on this order, and not on an earlier one of the same name."""
        created = parse_time(order.raw.get("metadata", {}).get("creationTimestamp"))
        return created is None or self.began is None or created <= self.began


@dataclass(frozen=True)
class UnstartedRun:
    """A run that was launched by the event `event`, and has not locked the order in time. It counts as lost from `at` on."""

    uid: str
    event: str
    action: Action
    seconds: int
    at: datetime

    def failure(self) -> Failure:
        return Failure(
            "RunNotStarted",
            f"No run locked the order within {self.seconds} seconds after the event {self.event} launched {self.action}. "
            "Check the log of the rules engine. In Automation Platform check that the job template exists and prompts for variables and "
            f"limit, that the job with the label eda-event-uuid-{self.event} was not cancelled and did not fail, and that its credential "
            "is for this hub. A job that is pending may still start.",
        )

    def is_about(self, order: ClusterOrder) -> bool:
        return order.uid == self.uid
