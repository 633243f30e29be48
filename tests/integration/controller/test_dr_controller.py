"""The controllers of disaster recovery of two clusters, each in its own task: one leads, the other shows, and takes over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.model import REGISTRY
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.store import RegistryStore

from ..support.dr_controllers import running, until
from ..support.dr_run import Recovery, recovery
from ..support.links import Links
from ..support.replication import Protected


@pytest.fixture
def dr(application: Protected, bucket: dict[str, str]) -> Iterator[Recovery]:
    with recovery(application, bucket) as created:
        yield created


def test_one_leads_also_for_requests_on_the_other_cluster_which_shows_it_and_takes_over(dr: Recovery) -> None:
    dr.application.place("east")
    dr.application.place("west", replicas=0)
    dr.protect("east")
    store = urlsplit(dr.options["endpoint_url"])

    def shows(site: str, phase: str, progression: str) -> bool:
        status = dr.status(site)
        return (status.get("phase"), status.get("progression")) == (phase, progression)

    def phase(site: str) -> str:
        return str(dr.drpc(site)["status"]["phase"])

    def health(site: str) -> dict[str, str]:
        registry = RegistryStore(dr.sites[site].kube, REGISTRY).get(dr.namespace, "peers")
        return {name: found.reason for name, found in registry.health.items()}

    async def scenario() -> None:
        async with running(dr, "west", registry_namespace=dr.namespace) as seen:
            async with running(dr, "east", endpoint_url=f"http://127.0.0.1:{to_store.port}", registry_namespace=dr.namespace) as events:
                await until(lambda: shows("east", "Deployed", "Completed") and shows("west", "Deployed", "Completed"), "the deployment")
                await until(lambda: health("east") == health("west") == {"east": "Healthy", "west": "Healthy"}, "the check of the peers")
                assert any(event["type"] == "leader_acquired" and event["holder"] == "east" for event in events)
                assert any(event["type"] == "placement_reconciled" and "make east primary" in event["actions"] for event in events)
                if not any(event["type"] == "leader_acquired" for event in seen):
                    assert not any(event["type"] == "placement_reconciled" for event in seen), "a follower acts on nothing"
                await until(lambda: dr.conditions("east")["PeerReady"][0] == "True", "the first sync")
                to_store.cut(refuse=True)
                await until(lambda: dr.conditions("east")["Waiting"] == ("True", "BucketUnavailable"), "the outage of the bucket is shown")
                shown = next(item["message"] for item in dr.drpc("east")["status"]["conditions"] if item["type"] == "Waiting")
                assert shown.startswith("Since 20") and "Restore it or the access to it." in shown
                to_store.heal()
                await until(lambda: dr.conditions("east")["Waiting"][1] != "BucketUnavailable", "the state is shown again")
                for site in dr.sites:
                    dr.application.fault(site, "no-sync")  # otherwise each sync causes a reconcile
                dr.ask("west", action="Failover", failoverCluster="west")
                await until(lambda: phase("west") == "FailedOver", "the leader's failover for a request on the other cluster")
                for site in dr.sites:
                    dr.application.fault(site, "")
            dr.ask("west", action="Relocate", preferredCluster="east")
            await until(lambda: shows("west", "Relocated", "Completed"), "the relocation by the next leader")
            assert any(event["type"] == "leader_acquired" and event["holder"] == "west" for event in seen)

    with Links().running() as links:
        to_store = links.add(lambda: (str(store.hostname), int(store.port or 0)))
        asyncio.run(scenario())
    dr.application.until_running("east")
