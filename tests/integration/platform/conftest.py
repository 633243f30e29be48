"""A stand-in for Automation Platform for each test, and runs against it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.platform.standin import Platform

from ..support.platform_runs import Runs, poll_quickly


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    poll_quickly(monkeypatch)


@pytest.fixture(params=[False, True], ids=["awx", "aap"])
def either(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """A platform without and with a gateway."""
    platform = Platform(gateway=request.param)
    with platform.serving() as url:
        yield Runs(platform, url)


@pytest.fixture
def runs() -> Iterator[Runs]:
    platform = Platform(gateway=True)
    with platform.serving() as url:
        yield Runs(platform, url)
