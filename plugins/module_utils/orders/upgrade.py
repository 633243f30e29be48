# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Moves a selection of orders to a release, wave by wave. It changes one parameter of orders and nothing else: the engine does the rest.

What moves next is decided by `upgrade_plan`. A call moves the wave that is due and returns; called again later, it continues.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ..infrastructure.site_settings import SiteSettings
from ..kube.client import Kube, retry_on_conflict
from ..kube.errors import KubeError
from ..lock.fenced_writer import Change
from ..templates.catalogue import Template, resolve
from ..templates.check import check
from ..templates.errors import COLLECTION, SecretsMissing, TemplateError
from ..templates.site_parameters import RELEASE_IMAGE, VERSION
from . import tenant
from .model import ClusterOrder, Names
from .selection import OrderName
from .upgrade_plan import Member, Plan, Release, member, parameters_of, plan

POLL_SECONDS = 2.0
EITHER = (RELEASE_IMAGE, VERSION)  # an order has one of them
SHOWN_REFUSALS = 5


class ReleaseRefused(KubeError):
    """A template or the site does not accept the release. Nothing was changed."""


class UpgradeStopped(KubeError):
    """An order of a wave has failed or is degraded. The orders after it were not changed."""


@dataclass(frozen=True)
class Selection:
    """The orders of an upgrade: those that meet all criteria. None means any. `phases` are those of orders that may move."""

    templates: Collection[str] | None = None
    label_selector: str = ""
    orders: Collection[OrderName] | None = None
    phases: Collection[str] = ("Ready",)


@dataclass(frozen=True)
class Waves:
    """How many orders move at once, and after how long a cluster that reports Degraded during its upgrade counts as failed."""

    canary: int
    max_unavailable: str
    degraded_after: timedelta


@dataclass
class Upgrade:
    """One call for one selection. In check mode it only plans."""

    kube: Kube
    names: Names
    templates: Mapping[str, Template]
    site: SiteSettings
    selection: Selection
    release: Release
    waves: Waves
    check_mode: bool = False
    changes: list[Change] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  # of orders that cannot be read

    def advance(self, wait_timeout: float = 0) -> Plan:
        """Move the wave that is due, and return the plan as it is after that.

        With a `wait_timeout` it goes on with the next waves, until all are upgraded, one has failed or the time is over.
        """
        deadline = time.monotonic() + wait_timeout
        current = self._plan()
        while not self.check_mode:
            if wave := current.next_wave:
                self._move(wave)
                current = self._plan()
            if current.is_stopped or current.is_complete or time.monotonic() >= deadline:
                break
            time.sleep(POLL_SECONDS)
            current = self._plan()
        return current

    def _plan(self) -> Plan:
        orders, self.problems = tenant.find_all(self.kube, self.names, None, None, self.selection.label_selector)
        now = self.kube.server_time() or datetime.now(UTC)
        members = [self._member(order, now) for order in orders if self._is_selected(order)]
        self._require_accepted([found for found in members if found.state == "pending"])
        return plan(members, self.release, self.waves.canary, self.waves.max_unavailable)

    def _is_selected(self, order: ClusterOrder) -> bool:
        templates, named = self.selection.templates, self.selection.orders
        if templates is not None and _full(order.template_id) not in {_full(each) for each in templates}:
            return False
        return named is None or OrderName(order.namespace, order.name) in named

    def _member(self, order: ClusterOrder, now: datetime) -> Member:
        try:
            declared = resolve(order.template_id, self.templates).parameters().members
        except TemplateError as error:
            return Member(order, "skipped", str(error))
        if self.release.parameter not in declared:
            return Member(order, "skipped", f"its template {order.template_id} has no parameter {self.release.parameter}")
        return member(order, self.release, self.selection.phases, now, self.waves.degraded_after)

    def _require_accepted(self, pending: list[Member]) -> None:
        """Refuse a release that the runs of these orders would refuse, before the first of them is changed."""
        refused = [f"{found.name}: {problem}" for found in pending if (problem := self._refusal(found.order))]
        if refused:
            which = "; ".join(refused[:SHOWN_REFUSALS]) + ("; and others" if len(refused) > SHOWN_REFUSALS else "")
            raise ReleaseRefused(
                f"{len(refused)} orders cannot have {self.release.parameter} {self.release.value}. {which}. "
                "Nothing was changed. Correct the release, allow it in the settings of the site, or select other orders."
            )

    def _refusal(self, order: ClusterOrder) -> str:
        """Why a run would refuse the order with the release."""
        try:
            template = resolve(order.template_id, self.templates)
            check(template, self._with_release(parameters_of(order) or {}), order.node_requests, site=self.site.values)
        except SecretsMissing:
            return ""  # they are not read here, and say nothing about the release
        except TemplateError as error:
            return str(error).rstrip(".")
        return ""

    def _with_release(self, parameters: Mapping[str, Any]) -> str:
        """The parameters with the release. An image takes the place of a version, and a version that of an image."""
        kept = {name: value for name, value in parameters.items() if self.release.parameter not in EITHER or name not in EITHER}
        return json.dumps({**kept, self.release.parameter: self.release.value})

    def _move(self, wave: Collection[Member]) -> None:
        for moved in self.kube.in_parallel(lambda found: self._set_release(found.order), wave):
            if isinstance(moved, KubeError):
                raise moved
            if moved:
                self.changes.append(moved)

    def _set_release(self, planned: ClusterOrder) -> Change | None:
        """Set the parameter, in the order as it is now. None for one that was deleted, or that no longer has parameters to change."""

        def attempt() -> Change | None:
            order = tenant.find(self.kube, self.names, planned.namespace, planned.name)
            parameters = parameters_of(order) if order else None
            if order is None or order.uid != planned.uid or order.is_deleting or parameters is None:
                return None
            spec = {"templateParameters": self._with_release(parameters)}
            return Change("changed", order.raw, self.kube.patch(order.raw, {"spec": spec}))

        return retry_on_conflict(attempt)


def stopped(current: Plan) -> UpgradeStopped:
    """Why the upgrade stopped, and what to do."""
    failed = current.of("failed")
    which = "; ".join(str(found) for found in failed[:5])
    return UpgradeStopped(
        f"The upgrade to {current.release.value} stopped, {current.summary()}. {which}. Correct the cluster or the order, or set its "
        f"{current.release.parameter} back; then run the upgrade again, and it continues with the pending orders."
    )


def _full(template_id: str) -> str:
    return template_id if "." in template_id else f"{COLLECTION}.{template_id}"
