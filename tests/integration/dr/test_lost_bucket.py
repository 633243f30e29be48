"""A bucket that was lost with its locks, or restored from a backup: nothing is done by mistake, and a person gets out of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.ramen_api import ENDED_EPOCH
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.stamps import position

from ..support.dr_run import Recovery, recovery
from ..support.replication import Protected


@pytest.fixture
def dr(application: Protected, bucket: dict[str, str]) -> Iterator[Recovery]:
    """The application runs on east and is protected by west."""
    with recovery(application, bucket) as created:
        application.place("east")
        application.place("west", replicas=0)
        created.protect("east")
        created.lead_until("east", created.acquire("east"), "Deployed", "Completed")
        yield created


def stored(dr: Recovery) -> dict[str, bytes]:
    """All objects of the workload in the bucket."""
    found = {key: dr.store.get(key) for key in dr.store.keys(dr.workload.key(""))}
    return {key: item.body for key, item in found.items() if item}


def lose(dr: Recovery) -> None:
    for key in stored(dr):
        dr.store.delete(key)


def waiting(dr: Recovery, site: str) -> str:
    return next(item["message"] for item in dr.drpc(site)["status"]["conditions"] if item["type"] == "Waiting")


def groups(dr: Recovery) -> dict[str, tuple[tuple[int, int], str]]:
    """Stamp and role of each VolumeReplicationGroup."""
    items = {site: dr.application.get(site) for site in dr.sites}
    return {site: (position(item), item["spec"]["replicationState"]) for site, item in items.items()}


def confirm(dr: Recovery, site: str, epoch: str) -> None:
    dr.sites[site].kube.patch(dr.drpc(site), {"metadata": {"annotations": {ENDED_EPOCH: epoch}}}, checked=False)


def test_lost_bucket_is_shown_and_its_state_is_rebuilt_once_a_person_confirms(dr: Recovery) -> None:
    lose(dr)
    epoch = dr.acquire("west")
    assert epoch == 1, "epochs begin again"
    confirm(dr, "west", "0")
    before = groups(dr)
    result = dr.lead("west", epoch)
    assert (result.ended, result.actions) == ("Waiting", [])
    assert dr.conditions("west")["Waiting"] == ("True", "NoNewerStamp")
    assert waiting(dr, "west").startswith("Since 20") and f"annotate this DRPlacementControl with {ENDED_EPOCH}=1" in waiting(dr, "west")
    dr.watch("east")
    assert dr.conditions("east")["Waiting"] == ("True", "NoNewerStamp")
    assert groups(dr) == before

    confirm(dr, "east", "1")
    assert dr.lead("west", epoch).ended == "TermEnded"
    assert dr.lead("west", epoch).ended == "Fenced"
    later = dr.acquire("west")
    assert later == 2
    dr.lead_until("west", later, "Deployed", "Completed")
    assert dr.state().intent["home"] == "east" and dr.application.app.runs(dr.sites["east"].kube)
    assert {site: role for site, (_stamp, role) in groups(dr).items()} == {"east": "primary", "west": "secondary"}


def test_failover_that_one_copy_shows_is_not_begun_before_a_person_asks_for_it_again(dr: Recovery) -> None:
    """Nothing says whether it was asked for today or long ago."""
    for part in ("state", "history/"):
        for key in dr.store.keys(dr.workload.key(part)):
            dr.store.delete(key)
    dr.ask("west", action="Failover", failoverCluster="west")
    epoch = dr.acquire("west")
    for _number in range(2):
        assert dr.lead("west", epoch).ended == "Waiting"
    assert dr.conditions("west")["Waiting"] == ("True", "StateKnown") and "request different things" in waiting(dr, "west")
    assert dr.application.get("east")["spec"]["replicationState"] == "primary"

    dr.ask("west", action=None)
    dr.lead_until("west", epoch, "Deployed", "Completed")
    dr.ask("west", action="Failover")
    dr.lead_until("west", epoch, "FailedOver", "Completed")


def test_bucket_restored_from_a_backup_reverts_nothing_and_is_rebuilt_without_its_state(dr: Recovery) -> None:
    epoch = dr.acquire("west")
    backup = stored(dr)
    dr.ask("west", action="Failover", failoverCluster="west")
    dr.lead_until("west", epoch, "FailedOver", "Completed")
    lose(dr)
    for key, body in backup.items():
        dr.store.create(key, body)
    before = groups(dr)
    result = dr.lead("west", epoch)
    assert (result.ended, result.recorded, result.actions) == ("Waiting", ["Deployed/Completed"], [])
    assert dr.conditions("west")["Waiting"] == ("True", "NoNewerStamp") and "delete the state of this workload" in waiting(dr, "west")
    confirm(dr, "west", "9")
    assert dr.lead("west", epoch).ended == "Waiting", "a state that is known is not replaced"
    assert groups(dr) == before

    dr.store.delete(dr.workload.key("state"))
    assert dr.lead("west", epoch).ended == "TermEnded"
    dr.lead_until("west", dr.acquire("west"), "FailedOver", "Completed")
    assert dr.state().intent["home"] == "west" and groups(dr)["west"][1] == "primary"
