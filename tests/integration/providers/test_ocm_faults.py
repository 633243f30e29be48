"""OpenShift Cluster Manager fails in the middle of a call: that is said, may be tried again, nothing is lost, the next run finishes."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import rest_session
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import TRIES, Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError, ServerError, TooManyRequests, Unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import (
    Addon,
    IdentityProvider,
    ObservedCluster,
    ResourceSet,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm.provider import ClusterProvider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.resources import OWNER

from ..support.ocm_site import Runs, standing_in
from ..support.ocm_standin import TOKEN_PATH, Fault, OcmStandIn

CONFIG: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
LABELLED = CONFIG | {"metadata": {**CONFIG["metadata"], "labels": {OWNER: "set"}}}
PEOPLE = IdentityProvider("file", "HTPasswd", {}, {"htpasswd": "ann:$1$a\nbob:$1$b"})
GOOGLE = IdentityProvider("google", "Google", {"clientID": "me"}, {"clientSecret": "pssst"})
READS = [TOKEN_PATH, "/clusters/[^/]+$", "/machine_pools$"]
ALWAYS = 99
ERRORS = {
    "broken": (ServerError, "not now .*request operation-500"),
    "failed": (ServerError, "it broke after it was done .*request operation-500"),
    "lost": (Unreachable, "does not answer"),
    "cut": (Unreachable, "does not answer"),
    "busy": (TooManyRequests, "try again later"),
    "hang": (Unreachable, "does not answer .*timed out"),
}


@dataclass(frozen=True)
class Call:
    """A call of the interface, the request in it that meets the fault, and what is there once it is done: exactly once."""

    method: str
    path: str
    make: Callable[[Runs, ClusterProvider, ObservedCluster], object]
    result: Callable[[OcmStandIn, str], object]
    wanted: object
    before: Callable[[Runs, ClusterProvider, ObservedCluster], object] | None = None


def on_shelf(name: str, *keys: str) -> Callable[[OcmStandIn, str], object]:
    return lambda service, cluster: [tuple(item.get(key) for key in keys) for item in service.shelf(cluster, name).values()]


def users(service: OcmStandIn, cluster: str) -> object:
    return [[user["username"] for user in shelf.items.values()] for name, shelf in service.shelves[cluster].items() if "users" in name]


CALLS = {
    "new pool": Call(
        "POST",
        "/machine_pools$",
        lambda runs, provider, spec: provider.update(spec, runs.request(("m5.xlarge", 2), ("r5.xlarge", 1))),
        on_shelf("machine_pools", "id", "replicas"),
        [("worker", 2), ("r5-xlarge", 1)],
    ),
    "pool": Call(
        "PATCH",
        "/machine_pools/worker$",
        lambda _runs, provider, spec: provider.scale(spec, "m5.xlarge", 7),
        on_shelf("machine_pools", "id", "replicas"),
        [("worker", 7)],
    ),
    "no pool": Call(
        "DELETE",
        "/machine_pools/r5-xlarge$",
        lambda _runs, provider, spec: provider.scale(spec, "r5.xlarge", 0),
        on_shelf("machine_pools", "id"),
        [("worker",)],
        lambda _runs, provider, spec: provider.scale(spec, "r5.xlarge", 1),
    ),
    "properties": Call(
        "PATCH",
        "/clusters/[^/]+$",
        lambda runs, provider, spec: provider.update(spec, runs.request(settings={"properties": {"a": "b"}})),
        lambda service, cluster: service.clusters[cluster]["properties"]["a"],
        "b",
    ),
    "upgrade": Call(
        "POST",
        "/upgrade_policies$",
        lambda runs, provider, spec: provider.update(spec, runs.request(version="4.18.2")),
        on_shelf("upgrade_policies", "version"),
        [("4.18.2",)],
    ),
    "identity provider": Call(
        "POST",
        "/identity_providers$",
        lambda _runs, provider, spec: provider.add_identity_provider(spec, GOOGLE),
        on_shelf("identity_providers", "name"),
        [("google",)],
    ),
    "users": Call(
        "POST",
        "/htpasswd_users$",
        lambda _runs, provider, spec: provider.add_identity_provider(spec, PEOPLE),
        users,
        [["ann", "bob"]],
    ),
    "resources": Call(
        "POST",
        "/syncsets$",
        lambda _runs, provider, spec: provider.apply_resources(spec, ResourceSet("set", [CONFIG])),
        on_shelf("syncsets", "id", "resources"),
        [("set", [LABELLED])],
    ),
    "other resources": Call(
        "PATCH",
        "/syncsets/set$",
        lambda _runs, provider, spec: provider.apply_resources(spec, ResourceSet("set", [CONFIG])),
        on_shelf("syncsets", "id", "resources"),
        [("set", [LABELLED])],
        lambda _runs, provider, spec: provider.apply_resources(spec, ResourceSet("set", [CONFIG, CONFIG])),
    ),
    "no resources": Call(
        "DELETE",
        "/syncsets/set$",
        lambda _runs, provider, spec: provider.remove_resources(spec, "set"),
        on_shelf("syncsets", "id"),
        [],
        lambda _runs, provider, spec: provider.apply_resources(spec, ResourceSet("set", [CONFIG])),
    ),
    "add-on": Call(
        "POST",
        "/addons$",
        lambda _runs, provider, spec: provider.install_addon(spec, Addon("logging-operator", {"a": "b"})),
        on_shelf("addons", "id"),
        [("logging-operator",)],
    ),
    "deletion": Call(
        "DELETE",
        "/clusters/[^/]+$",
        lambda _runs, provider, spec: provider.delete(spec),
        lambda service, cluster: service.clusters[cluster]["state"],
        "uninstalling",
    ),
}


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the client would have slept. It continues at once instead."""
    slept: list[float] = []
    monkeypatch.setattr(rest_session, "time", SimpleNamespace(sleep=slept.append, monotonic=time.monotonic))
    return slept


@pytest.fixture
def impatient(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only with a service that hangs: a slow machine is no fault."""
    if how == "hang":
        monkeypatch.setattr(rest_session, "READ_SECONDS", 2)


@pytest.fixture(scope="module")
def kube_namespace(hub: Access) -> Iterator[tuple[Kube, str]]:
    with fresh_namespace(hub) as namespace:
        yield Kube.connect({"kubeconfig": str(hub.kubeconfig)}), namespace


@pytest.fixture
def runs(kube_namespace: tuple[Kube, str]) -> Iterator[Runs]:
    with standing_in() as service:
        runs = Runs(*kube_namespace, service)
        yield runs
        service.over.set()
        runs.clean_up()


def sent(how: str, method: str) -> int:
    """How often a request is sent that always meets the fault."""
    return 1 if method == "POST" and how != "busy" else TRIES


@pytest.mark.parametrize("how", [how for how in ERRORS if how != "hang"])
@pytest.mark.parametrize("name", CALLS)
def test_fault_in_the_middle_is_retryable_and_the_next_run_finishes(name: str, how: str, runs: Runs, waits: list[float]) -> None:
    call, spec = CALLS[name], runs.ready()
    if call.before:
        call.before(runs, runs.provider(), spec)
    fault = Fault(how, call.method, call.path, ALWAYS)
    runs.service.faults.append(fault)
    kind, text = ERRORS[how]
    with pytest.raises(kind, match=text) as caught:
        call.make(runs, runs.provider(), spec)
    assert caught.value.retryable
    assert fault.met == sent(how, call.method)
    assert len(waits) == fault.met - 1
    runs.service.faults.clear()
    call.make(runs, runs.provider(), spec)
    assert call.result(runs.service, spec.internal_id) == call.wanted
    writes = len(runs.service.writes())
    call.make(runs, runs.provider(), spec)
    assert len(runs.service.writes()) == writes, "it is done, and a third run writes nothing"


@pytest.mark.parametrize("how", ERRORS)
@pytest.mark.usefixtures("impatient")
def test_cluster_whose_request_was_lost_is_asked_for_once(how: str, runs: Runs) -> None:
    fault = Fault(how, "POST", "/clusters$", ALWAYS)
    runs.service.faults.append(fault)
    kind, text = ERRORS[how]
    with pytest.raises(kind, match=f"create Cluster demo-.*{text}") as caught:
        runs.provider().create(runs.request())
    assert caught.value.retryable
    assert fault.met == sent(how, "POST")
    assert len(runs.service.clusters) == (how in ("failed", "lost", "cut"))
    runs.service.faults.clear()
    assert runs.provider().create(runs.request()).status == "cluster_accepted"
    assert len(runs.service.clusters) == 1


@pytest.mark.parametrize(
    ("path", "how"),
    # Each that hangs is waited for, and it is the same for all paths.
    [case for case in itertools.product(READS, ERRORS) if case[1] != "hang" or case[0] == TOKEN_PATH],
)
@pytest.mark.usefixtures("impatient")
def test_read_that_fails_is_retried_and_fails_in_the_end(path: str, how: str, runs: Runs, waits: list[float]) -> None:
    if how == "failed":
        how = "broken"
    spec = runs.provider().create(runs.request())
    passing = Fault(how, path=path, times=TRIES - 1)
    runs.service.faults.append(passing)
    assert runs.provider().status(spec).status == "cluster_accepted"
    assert len(waits) == passing.met == TRIES - 1
    assert waits == sorted(waits), "it waits longer each time"
    runs.service.faults.append(Fault(how, path=path, times=ALWAYS))
    with pytest.raises(KubeError) as caught:
        runs.provider().status(spec)
    assert caught.value.retryable


@pytest.mark.parametrize("how", ["busy", "put-off"])
def test_new_cluster_that_is_put_off_is_asked_for_as_late_as_the_service_wants(how: str, runs: Runs, waits: list[float]) -> None:
    runs.service.faults.append(Fault(how, "POST", "/clusters$", 2))
    assert runs.provider().create(runs.request()).status == "cluster_accepted"
    assert waits == [1.0, 1.0], "Retry-After is longer than ours"
    assert len(runs.service.clusters) == 1


def test_token_that_is_withdrawn_is_renewed_once(runs: Runs) -> None:
    spec = runs.ready()
    provider = runs.provider()
    provider.status(spec)
    runs.service.faults.append(Fault("stale", "PATCH", "/worker$", 1))
    assert provider.scale(spec, "m5.xlarge", 4).node_sets[0].requested == 4
    runs.service.faults.append(Fault("stale", "GET", "/clusters/[^/]+$", ALWAYS))
    asked = len(runs.service.requests)
    with pytest.raises(KubeError, match=r"Bearer token is expired \(CLUSTERS-MGMT-401, request operation-401\); the token is not accepted"):
        provider.status(spec)
    assert [request.partition("?")[0].rpartition("/")[2] for request in runs.service.requests[asked:]] == [
        spec.internal_id,
        "token",
        spec.internal_id,
    ]


def test_service_that_is_not_there_is_named(runs: Runs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(Unreachable, match=rf"http://127.0.0.1:{port} does not answer \(.*refused\); check the address") as caught:
        runs.provider().create(runs.request(settings={"token_url": f"http://127.0.0.1:{port}/token"}))
    assert caught.value.retryable
    assert runs.secret() is None
    assert runs.provider().create(runs.request()).exists
