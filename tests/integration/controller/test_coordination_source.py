"""The event source s3_coordination on a real API server and S3: leases follow DRPlacementControls, and health is kept current."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.upstream import ramen_crds
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import leader_election
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.coordination_source import CoordinationSource
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.registry_health import RegistryHealth
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.events import Event
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.settings import Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import DRPC, RAMEN
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.model import REGISTRY
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.store import RegistryStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect

from ..support.dr_kinds import installed
from ..support.kubeconfigs import kubeconfig, put_kubeconfig, with_user
from ..support.links import Link, Links

WAIT_SECONDS = 120
WRONG = "hunter2"
SECONDS = 30.0  # what a busy machine may need


@pytest.fixture(scope="module")
def hub(quick_hub: Access) -> Iterator[Access]:
    with installed(quick_hub, [crd for crd in ramen_crds() if crd["spec"]["names"]["kind"] == DRPC]):
        yield quick_hub


@asynccontextmanager
async def running(bucket: dict[str, str], hub: Access, **arguments: Any) -> AsyncIterator[list[Event]]:
    """A source in this event loop, and the events it has emitted so far."""
    given = {"cluster": "east", "kubernetes": {"kubeconfig": str(hub.kubeconfig)}, "poll_interval": 0.2}
    settings = Settings.from_arguments(bucket | given | arguments)
    events: list[Event] = []

    async def put(event: Event) -> None:
        events.append(event)

    task = asyncio.create_task(CoordinationSource(connect(bucket), settings).run(put))
    try:
        yield events
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen"
        await asyncio.sleep(0.05)


def drpc(namespace: str, name: str) -> Object:
    spec = {"placementRef": {"name": "none"}, "drPolicyRef": {"name": "none"}, "pvcSelector": {}}
    return {"apiVersion": RAMEN, "kind": DRPC, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def test_leases_follow_the_placement_controls_that_exist(hub: Access, namespace: str, bucket: dict[str, str]) -> None:
    hub.kube.create(drpc(namespace, "first"))

    async def scenario() -> None:
        async with running(bucket, hub) as events:

            def led(kind: str, name: str) -> bool:
                return any((event["type"], event.get("namespace"), event.get("name")) == (kind, namespace, name) for event in events)

            await until(lambda: led("leader_acquired", "first"), "the lease of the first")
            await asyncio.to_thread(hub.kube.create, drpc(namespace, "second"))
            await until(lambda: led("leader_acquired", "second"), "the lease of the second")
            await asyncio.to_thread(hub.kube.delete, drpc(namespace, "first"))
            await until(lambda: led("leader_lost", "first"), "the release of the first")
            assert not led("leader_lost", "second")

    asyncio.run(scenario())


def test_leases_are_released_while_the_api_server_of_their_holder_is_away(hub: Access, namespace: str, bucket: dict[str, str]) -> None:
    hub.kube.create(drpc(namespace, "kept"))
    content = kubeconfig(hub)
    server = urlsplit(content["clusters"][0]["cluster"]["server"])

    async def scenario(link: Link) -> None:
        content["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{link.port}"
        async with running(bucket, hub, ttl=6, kubernetes={"kubeconfig": content}) as events:

            def leads() -> bool:
                """A machine that stalls may lose the lease, and acquires it again."""
                kinds = [event["type"] for event in events if event.get("name") == "kept"]
                return kinds.count("leader_acquired") > kinds.count("leader_lost")

            await until(leads, "the lease")
            link.cut(refuse=True)
            await until(lambda: not leads(), "the release of the lease")
            async with running(bucket, hub, holder="west") as others:
                await until(lambda: any(event["type"] == "leader_acquired" for event in others), "another leader")
            link.heal()
            await until(leads, "the lease after the API server is back")

    with Links().running() as links:
        asyncio.run(scenario(links.add(lambda: (str(server.hostname), int(server.port or 0)))))


def health_of(kube: Kube, namespace: str) -> dict[str, str]:
    registry = RegistryStore(kube, REGISTRY).get(namespace, "peers")
    return {name: health.reason for name, health in registry.health.items()}


def test_health_of_registered_clusters_is_kept_current(hub: Access, namespace: str, bucket: dict[str, str]) -> None:
    put_kubeconfig(hub.kube, namespace, "east-kubeconfig", kubeconfig(hub))
    RegistryStore(hub.kube, REGISTRY).register(namespace, "peers", [{"name": "east"}])

    async def scenario() -> None:
        async with running(bucket, hub, workloads=["shop/none"], registry_namespace=namespace, registry_interval=1):
            await until(lambda: health_of(hub.kube, namespace) == {"east": "Healthy"}, "the first check")
            await asyncio.to_thread(put_kubeconfig, hub.kube, namespace, "east-kubeconfig", with_user(hub, token=WRONG))
            await until(lambda: health_of(hub.kube, namespace) == {"east": "Unauthorized"}, "the next check")

    asyncio.run(scenario())


def test_check_that_changes_nothing_writes_nothing(hub: Access, namespace: str) -> None:
    put_kubeconfig(hub.kube, namespace, "east-kubeconfig", kubeconfig(hub))
    store = RegistryStore(hub.kube, REGISTRY)
    store.register(namespace, "peers", [{"name": "east"}, {"name": "west"}])
    checker = RegistryHealth(hub.kube, namespace, 60, SECONDS)
    checker.check()
    assert health_of(hub.kube, namespace) == {"east": "Healthy", "west": "SecretNotFound"}
    version = store.get(namespace, "peers").raw["metadata"]["resourceVersion"]
    for _each in range(3):
        checker.check()
    assert store.get(namespace, "peers").raw["metadata"]["resourceVersion"] == version


def test_invalid_registry_and_unreadable_secret_hide_no_other_registry(
    hub: Access, namespace: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put_kubeconfig(hub.kube, namespace, "east-kubeconfig", kubeconfig(hub))
    store = RegistryStore(hub.kube, REGISTRY)
    store.register(namespace, "broken", [{"name": "west"}])
    store.register(namespace, "peers", [{"name": "east"}])
    kube = Kube.connect({"kubeconfig": str(hub.kubeconfig)})
    get = kube.get

    def fail(api_version: str, kind: str, name: str, where: str | None = None) -> Object:
        if name == "west-kubeconfig":
            raise ValueError("not JSON")
        return get(api_version, kind, name, where)

    monkeypatch.setattr(kube, "get", fail)
    checker = RegistryHealth(kube, namespace, 60, SECONDS)
    for _each in range(2):
        checker.check()
    assert health_of(hub.kube, namespace) == {"east": "Healthy"}
    assert len([record for record in caplog.records if "broken" in record.getMessage()]) == 1


def test_of_two_sources_one_checks(hub: Access, namespace: str, bucket: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    put_kubeconfig(hub.kube, namespace, "east-kubeconfig", kubeconfig(hub))
    RegistryStore(hub.kube, REGISTRY).register(namespace, "peers", [{"name": "east"}])
    arguments = {"workloads": ["shop/none"], "registry_namespace": namespace, "registry_interval": 1}
    monkeypatch.setattr(leader_election, "DURATION_SECONDS", 600)  # however long the machine stalls
    checks: list[RegistryHealth] = []
    check = RegistryHealth.check

    def recorded(checker: RegistryHealth) -> None:
        checks.append(checker)
        check(checker)

    monkeypatch.setattr(RegistryHealth, "check", recorded)

    async def scenario() -> None:
        async with running(bucket, hub, **arguments), running(bucket, hub, **arguments, holder="second"):
            await until(lambda: len(checks) >= 3, "three checks")
            assert len(set(checks)) == 1

    asyncio.run(scenario())
    assert health_of(hub.kube, namespace) == {"east": "Healthy"}
