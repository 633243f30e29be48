"""Resource sets in a real cluster: what is applied, what is skipped, and what is deleted."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.allowed_addresses import AllowedAddresses
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid, NotFound
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import FencedWriter
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import LockLost
from ansible_collections.openfleet.clusters.plugins.module_utils.providers import resources
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import ClusterRef, Provider, ProviderError
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import ProviderFactory
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ResourceSet

HELD = ["example.com/held"]
_numbers = itertools.count(1)


def config_map(namespace: str | None, name: str = "settings", **data: str) -> Object:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def custom_kind(name: str, group: str = "example.com", scope: str = "Namespaced") -> Object:
    plural = name.lower() + "s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": name, "plural": plural},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


@pytest.fixture
def kube(hub: Access) -> Kube:
    """The client of another manager, which reads and creates objects."""
    return Kube.connect({"kubeconfig": str(hub.kubeconfig)})


@pytest.fixture
def at(kube: Kube, hub: Access, namespace: str) -> Callable[..., Provider]:
    """A provider with a lock. That the cluster is the hub itself, by another connection, makes no difference."""
    first = lease.acquire(kube, namespace, "demo", "test", duration=3600)

    def make(check_mode: bool = False, lock: lease.Lock = first) -> Provider:
        own = Kube.connect({"kubeconfig": str(hub.kubeconfig)})
        writer = FencedWriter(own, lock, "example.com/lock-token", check_mode)
        allowed = AllowedAddresses.of(["127.0.0.1"])
        ref = ClusterRef(own, "demo", namespace, writer=writer, check_mode=check_mode, allowed_addresses=allowed)
        return ProviderFactory.for_cluster("standalone", ref)

    return make


class Set:
    """One resource set of the cluster, applied and removed by a new provider each time."""

    def __init__(self, name: str, kube: Kube, at: Callable[..., Provider]) -> None:
        self.name = name
        self._kube = kube
        self._at = at

    def apply(self, *items: Object, check_mode: bool = False, **metadata: Any) -> list[str]:
        provider = self._at(check_mode)
        resources.apply(provider, self._kube, ResourceSet(self.name, [_with(item, metadata) for item in items]))
        return self._done(provider)

    def remove(self, check_mode: bool = False) -> tuple[bool, list[str]]:
        provider = self._at(check_mode)
        return resources.remove(provider, self._kube, self.name), self._done(provider)

    def _done(self, provider: Provider) -> list[str]:
        return [f"{change.action} {change.item['metadata']['name']}" for change in provider.changes if change.changed]

    @property
    def inventory(self) -> Object | None:
        return self._kube.find("v1", "ConfigMap", f"{resources.INVENTORY}-{self.name}", resources.INVENTORY_NAMESPACE)


def _with(item: Object, metadata: Any) -> Object:
    return item | {"metadata": item["metadata"] | metadata}


@pytest.fixture
def base(hub: Access, at: Callable[..., Provider], namespace: str) -> Iterator[Set]:
    made = Set(namespace, Kube.connect({"kubeconfig": str(hub.kubeconfig)}), at)
    yield made
    if made.inventory:
        hub.kubectl("delete", "configmap", f"{resources.INVENTORY}-{made.name}", "-n", resources.INVENTORY_NAMESPACE)


@pytest.fixture
def other(hub: Access, at: Callable[..., Provider], namespace: str) -> Iterator[Set]:
    made = Set(f"{namespace}-other", Kube.connect({"kubeconfig": str(hub.kubeconfig)}), at)
    yield made
    made.remove()


# What is applied


def test_what_others_need_is_applied_first_however_it_is_listed(base: Set, kube: Kube, namespace: str) -> None:
    kind = f"Widget{next(_numbers)}"
    inner = f"{namespace}-inner"
    widget = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "one", "namespace": inner}, "spec": {"size": 1}}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inner}}
    items = [widget, config_map(inner), custom_kind(kind), space]
    everything = ["created one", f"created {inner}", f"created {kind.lower()}s.example.com", "created settings"]
    assert sorted(base.apply(*items, check_mode=True)) == sorted(everything)
    assert kube.find("v1", "Namespace", inner) is None
    assert base.inventory is None
    assert sorted(base.apply(*items)) == sorted(everything)
    assert kube.get("example.com/v1", kind, "one", inner)["spec"] == {"size": 1}
    assert base.apply(*items) == []
    complete, deleted = base.remove()
    assert not complete, "a namespace takes its time"
    assert len(deleted) == 4
    until(lambda: base.remove()[0], "the set is deleted")
    assert (kube.find("v1", "Namespace", inner), base.inventory) == (None, None)


def test_kind_that_is_called_as_one_of_the_hub_is_not_taken_for_that(base: Set, kube: Kube) -> None:
    """Karpenter's NodePools are in no namespace, HyperShift's are."""
    definition = custom_kind("NodePool", "karpenter.sh", "Cluster")
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "spot"}, "spec": {"weight": 10}}
    assert base.apply(pool, definition) == ["created nodepools.karpenter.sh", "created spot"]
    assert kube.get("karpenter.sh/v1", "NodePool", "spot")["spec"] == {"weight": 10}
    assert base.apply(pool, definition) == []
    until(lambda: base.remove()[0], "the set is deleted")


def test_what_the_server_only_writes_in_another_way_is_no_change(base: Set, namespace: str) -> None:
    limits = {"limits.cpu": "2000m", "limits.memory": "1024Mi"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "quota", "namespace": namespace}, "spec": {"hard": limits}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": namespace}, "stringData": {"user": "me"}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "none", "namespace": namespace}, "rules": []}
    items = [quota, secret, role, config_map(namespace) | {"data": {}}]
    assert len(base.apply(*items)) == 4
    assert base.apply(*items) == []
    assert base.apply(*items, check_mode=True) == []
    quota["spec"] = {"hard": {**limits, "limits.cpu": "3"}}
    assert base.apply(*items, check_mode=True) == ["changed quota"]
    assert base.apply(*items) == ["changed quota"]


def test_what_the_set_says_no_longer_of_an_object_is_taken_out_of_it(base: Set, kube: Kube, namespace: str) -> None:
    base.apply(config_map(namespace, a="1", b="2"), labels={"team": "blue"}, annotations={"cost": "low"})
    kube.patch(config_map(namespace), {"data": {"theirs": "3"}}, checked=False)
    assert base.apply(config_map(namespace, a="1"), labels={"team": "blue"}, annotations={"cost": "low"}) == ["changed settings"]
    assert kube.get("v1", "ConfigMap", "settings", namespace)["data"] == {"a": "1", "theirs": "3"}
    assert base.apply(config_map(namespace, a="1"), labels={"team": "blue"}) == ["changed settings"]
    assert "cost" not in kube.get("v1", "ConfigMap", "settings", namespace)["metadata"]["annotations"]
    assert base.apply(config_map(namespace, a="1")) == ["changed settings"]
    assert "team" not in kube.get("v1", "ConfigMap", "settings", namespace)["metadata"]["labels"]


def test_object_without_a_namespace_is_applied_in_that_of_the_kubeconfig(base: Set, kube: Kube, namespace: str) -> None:
    base._kube.target.namespace = namespace  # noqa: SLF001 - as a context of the kubeconfig would say
    assert base.apply(config_map(None)) == ["created settings"]
    assert base.apply(config_map(None)) == []
    assert kube.get("v1", "ConfigMap", "settings", namespace)["metadata"]["labels"] == {resources.OWNER: base.name}


# What is deleted, and what is not


def test_what_was_there_before_is_changed_and_never_deleted(base: Set, kube: Kube, namespace: str) -> None:
    kube.create(config_map(namespace, theirs="1"))
    assert base.apply(config_map(namespace, ours="2")) == ["changed settings"]
    found = kube.get("v1", "ConfigMap", "settings", namespace)
    assert found["data"] == {"theirs": "1", "ours": "2"}
    assert resources.OWNER not in found["metadata"].get("labels", {})
    assert base.apply(config_map(namespace, ours="2")) == []
    assert base.apply(config_map(namespace, "another")) == ["created another"]
    assert base.remove() == (True, ["deleted another"])
    assert kube.find("v1", "ConfigMap", "settings", namespace)


def test_object_that_another_manager_has_taken_over_is_skipped(base: Set, kube: Kube, namespace: str) -> None:
    base.apply(config_map(namespace))
    kube.patch(config_map(namespace), {"metadata": {"labels": {resources.OWNER: None}}}, checked=False)
    assert base.remove() == (True, [])
    assert kube.find("v1", "ConfigMap", "settings", namespace)


def test_object_of_another_set_is_refused(base: Set, other: Set, kube: Kube, namespace: str) -> None:
    other.apply(config_map(namespace, a="1"))
    with pytest.raises(ProviderError, match=rf"ConfigMap {namespace}/settings belongs to the resource set {other.name}; take it out"):
        base.apply(config_map(namespace, a="2"))
    assert kube.get("v1", "ConfigMap", "settings", namespace)["data"] == {"a": "1"}
    assert base.remove() == (True, [])
    assert kube.find("v1", "ConfigMap", "settings", namespace)


def test_object_with_a_finalizer_is_checked_until_it_is_deleted(base: Set, kube: Kube, namespace: str) -> None:
    one, two = config_map(namespace, "one"), config_map(namespace, "two")
    base.apply(one, two, finalizers=HELD)
    assert base.apply(one, finalizers=HELD) == ["deleted two"]
    assert base.apply(one, finalizers=HELD) == [], "it is being deleted"
    assert base.remove(check_mode=True) == (False, ["deleted one"])
    assert base.remove() == (False, ["deleted one"])
    assert base.remove() == (False, [])
    for item in (one, two):
        kube.patch(item, {"metadata": {"finalizers": None}}, checked=False)
    assert base.remove() == (True, [])
    assert base.remove() == (True, [])


def test_objects_of_a_deleted_kind_count_as_deleted(base: Set, kube: Kube, namespace: str) -> None:
    kind = f"Widget{next(_numbers)}"
    definition = custom_kind(kind)
    kube.create(definition)
    widget = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "one", "namespace": namespace}}
    until(lambda: _serves(kube, kind), "the kind is served")
    base.apply(widget)
    kube.delete(definition)
    until(lambda: kube.find("apiextensions.k8s.io/v1", definition["kind"], definition["metadata"]["name"]) is None, "the kind is deleted")
    until(lambda: base.remove()[0], "the set is deleted")


def _serves(kube: Kube, kind: str) -> bool:
    try:
        return kube.namespaced("example.com/v1", kind)
    except NotFound:
        return False


# What is refused


def test_all_mistakes_of_a_set_are_reported_before_anything_is_written(base: Set, namespace: str) -> None:
    nameless = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}
    with pytest.raises(Invalid, match=r"object 1 has no apiVersion, kind and metadata.name; .*/settings is in it twice") as caught:
        base.apply(nameless, config_map(namespace), config_map(namespace))
    assert not caught.value.retryable
    assert base.inventory is None


@pytest.mark.parametrize("name", ["", "Base", "a/b", "a" * 41, "-a"])
def test_name_that_cannot_be_a_label_is_refused(name: str, at: Callable[..., Provider], kube: Kube) -> None:
    with pytest.raises(Invalid, match=r"cannot be the name of a resource set"):
        resources.apply(at(), kube, ResourceSet(name))
    with pytest.raises(Invalid, match=r"cannot be the name of a resource set"):
        resources.remove(at(), kube, name)


def test_unknown_kind_is_an_error_and_what_the_set_had_stays(base: Set, kube: Kube, namespace: str) -> None:
    base.apply(config_map(namespace))
    with pytest.raises(NotFound, match=r"does not serve the kind Gadget in example.com/v1"):
        base.apply({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "one"}})
    assert kube.find("v1", "ConfigMap", "settings", namespace)


def test_inventory_that_is_spoiled_says_what_to_do(base: Set, kube: Kube, namespace: str) -> None:
    base.apply(config_map(namespace))
    assert base.inventory
    kube.patch(base.inventory, {"data": {"objects": "[{}"}})
    with pytest.raises(ProviderError, match=r"does not list objects any more. Delete it"):
        base.apply(config_map(namespace))


def test_only_tokens_of_the_same_order_are_compared(hub: Access, kube: Kube, namespace: str, at: Callable[..., Provider]) -> None:
    """Another order that adopts the cluster later goes on with its sets; a run of the same order that lost its lock does not."""
    cluster = Kube.connect({"kubeconfig": str(hub.kubeconfig)})
    earlier = at()
    assert lease.release_held(kube, namespace, "demo", "test")

    def apply(provider: Provider, value: str) -> list[str]:
        resources.apply(provider, cluster, ResourceSet(namespace, [config_map(namespace, value=value)]))
        return [change.action for change in provider.changes]

    assert apply(at(lock=lease.acquire(kube, namespace, "demo", "next")), "1") == ["created"]
    with pytest.raises(LockLost, match=r"was written by a later run"):
        apply(earlier, "0")
    assert kube.get("v1", "ConfigMap", "settings", namespace)["data"] == {"value": "1"}
    other = lease.acquire(kube, namespace, "other", "test")
    assert other.token < int(kube.get("v1", "ConfigMap", "settings", namespace)["metadata"]["annotations"]["example.com/lock-token"])
    assert apply(at(lock=other), "2") == ["changed"]
    assert apply(at(lock=other), "2") == ["unchanged"]
    assert resources.remove(at(lock=other), cluster, namespace)


def test_a_holder_that_lost_the_lock_writes_nothing(base: Set, hub: Access, kube: Kube, namespace: str) -> None:
    patch = '{"spec": {"holderIdentity": "another", "leaseTransitions": 9}}'
    hub.kubectl("patch", "lease", lease.lease_name(namespace, "demo"), "-n", lease.SITE_NAMESPACE, "--type=merge", "-p", patch)
    with pytest.raises(LockLost):
        base.apply(config_map(namespace))
    assert kube.find("v1", "ConfigMap", "settings", namespace) is None
    assert base.inventory is None
