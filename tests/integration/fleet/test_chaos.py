"""Clusters that come and go while every part of a fleet is killed at random moments: each ends where it should, and all counts match.

The seed of a failed run is in its message: OPENFLEET_CHAOS_SEED repeats its moments.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, QUOTA, QUOTA_NAME
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError

from ..support.fleet_api import Tenant
from ..support.fleet_chaos import ChaosFleet, chaos_fleet
from ..support.fleet_load import Life, Load, Watchman, differences, lives_of
from ..support.order_standin import OrderStandin

TENANTS, CLUSTERS = 3, 100
SECONDS = 25.0  # in which the tenants act, and each part is killed once
QUOTA_CLUSTERS, QUOTA_NODES = 25, 60  # of each tenant: fewer than it asks for at first, and more than it keeps
PAUSE_SECONDS = 2.0  # at most, until a killed part is started again
SETTLE_SECONDS = 400.0  # what a busy machine may need; less than the resync of the engine, which would hide a lost wake-up


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChaosFleet]:
    with chaos_fleet(tmp_path_factory.mktemp("chaos")) as made:
        yield made


@contextmanager
def tenants_of(fleet: ChaosFleet) -> Iterator[list[Tenant]]:
    with ExitStack() as stack:
        found = [stack.enter_context(fleet.api.tenant(fleet.facade)) for _number in range(TENANTS)]
        for tenant in found:
            metadata = {"name": QUOTA_NAME, "namespace": tenant.name}
            hard = {"clusters": QUOTA_CLUSTERS, "nodes": QUOTA_NODES}
            fleet.home.kube.apply({"apiVersion": API_VERSION, "kind": QUOTA, "metadata": metadata, "spec": {"hard": hard}})
        yield found


class Killer:
    """Kills each part once, at random moments, and starts it again. Not in a thread that ends: the parts would end with it."""

    def __init__(self, fleet: ChaosFleet, randomness: random.Random) -> None:
        self._parts = fleet.parts()
        names = randomness.sample(sorted(self._parts), len(self._parts))
        moments = sorted(randomness.uniform(0.5, SECONDS) for _name in names)
        self.plan = [(moment, name, randomness.uniform(0, PAUSE_SECONDS)) for moment, name in zip(moments, names, strict=True)]

    def run(self) -> None:
        began = time.monotonic()
        for moment, name, pause in self.plan:
            time.sleep(max(0.0, began + moment - time.monotonic()))
            kill, start = self._parts[name]
            kill()
            time.sleep(pause)
            start()


def test_every_cluster_ends_where_it_should_whatever_is_killed(fleet: ChaosFleet, soak: int) -> None:
    seed = int(os.environ.get("OPENFLEET_CHAOS_SEED") or secrets.randbits(32))
    randomness = random.Random(seed)  # noqa: S311 - keeps no secret
    with OrderStandin(fleet.hub, random.Random(seed)).running(), Watchman(fleet.home) as watchman:  # noqa: S311 - the same
        for number in range(soak):
            killer = Killer(fleet, randomness)
            try:
                _round(fleet, killer, randomness)
            except (AssertionError, UserError) as error:
                raise AssertionError(f"seed {seed}, round {number}, killed {killer.plan}; the logs are {fleet.logs()}: {error}") from error
    assert not watchman.violations, f"seed {seed}: {watchman.violations[:5]}"
    assert watchman.samples > 10


def _round(fleet: ChaosFleet, killer: Killer, randomness: random.Random) -> None:
    with tenants_of(fleet) as tenants:
        lives = lives_of(tenants, CLUSTERS, SECONDS, randomness)
        load = Load(fleet.home, lives)
        with ThreadPoolExecutor(1) as aside:
            lived = aside.submit(load.live)
            killer.run()
            lived.result()
        _settle(fleet, lives)
        load.delete_all()
        _settle(fleet, lives)


def _settle(fleet: ChaosFleet, lives: list[Life]) -> None:
    left: list[str] = ["nothing was compared"]

    def is_settled() -> bool:
        try:
            left[:] = differences(fleet.home, fleet.hub, lives)
        except KubeError as error:
            left[:] = [str(error)]
        return not left

    try:
        until(is_settled, "the fleet is as the tenants left it", SETTLE_SECONDS)
    except UserError as error:
        raise AssertionError("; ".join(left)) from error
