"""Reconciles on two real API servers with stand-in replication between them: deploy, failover, relocate, delete."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..support.dr_run import Recovery, recovery
from ..support.replication import Protected


@pytest.fixture
def dr(application: Protected, bucket: dict[str, str]) -> Iterator[Recovery]:
    with recovery(application, bucket) as created:
        yield created


def test_deployment_is_recorded_before_it_is_done_and_shown_as_ramen_shows_it(dr: Recovery) -> None:
    dr.application.place("east")
    dr.application.place("west", replicas=0)
    dr.protect("west")
    epoch = dr.acquire("east")
    dr.lead_until("east", epoch, "Deployed", "Completed")
    print(dr.drpc("east"))
