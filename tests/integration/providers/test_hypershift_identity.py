"""Identity providers of a HostedCluster: those that the cluster is asked for with, those added one by one, and those of other people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import FencedWriter
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import acquire
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import ClusterRef
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import checked
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.hypershift import ClusterProvider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.hypershift.node_pools import API_VERSION
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import (
    ClusterRequest,
    IdentityProvider,
    NodeRequest,
    ObservedCluster,
)

from ..support.orders import PULL_SECRET, RELEASE

NOTHING = ObservedCluster()


def google(name: str) -> Object:
    return {"name": name, "mappingMethod": "claim", "type": "Google", "google": {"clientID": "x", "clientSecret": {"name": "y"}}}


class Site:
    """One cluster, which we and others work on. Each of our calls has a provider of its own, as each task has."""

    def __init__(self, hub: Access, namespace: str) -> None:
        self.kube = Kube.connect({"kubeconfig": str(hub.kubeconfig)})
        self.namespace = namespace
        self._hub = hub
        self._lock = acquire(self.kube, namespace, "demo", "the tests", duration=3600)

    def provider(self, kube: Kube | None = None) -> ClusterProvider:
        used = kube or self.kube
        writer = FencedWriter(used, self._lock, "example.com/lock-token")
        return ClusterProvider(ClusterRef(used, "demo", self.namespace, {"example.com/cluster": "demo"}, writer=writer))

    def ask(self, *configured: str, kube: Kube | None = None, nodes: int = 1, **oauth: Any) -> bool:
        """Make or change the cluster with these identity providers in its configuration; whether that changed anything."""
        configuration = {"oauth": {**oauth, **({"identityProviders": [*map(google, configured)]} if configured else {})}}
        request = ClusterRequest(
            RELEASE,
            [NodeRequest("fc430", nodes)],
            settings={"configuration": configuration if configuration["oauth"] else {}},
            secrets={"pull_secret": PULL_SECRET},
        )
        provider, wanted = self.provider(kube), checked(ClusterProvider, request)
        there = provider.status(NOTHING)
        if there.exists:
            provider.update(there, wanted)
        else:
            provider.create(wanted)
        return any(change.changed for change in provider.changes)

    def cluster(self) -> Object:
        return self.kube.get(API_VERSION, "HostedCluster", "demo", self.namespace)

    def oauth(self) -> Object | None:
        found: Object | None = (self.cluster()["spec"].get("configuration") or {}).get("oauth")
        return found

    def names(self) -> list[str]:
        return [item["name"] for item in (self.oauth() or {}).get("identityProviders", [])]

    def by_hand(self, *names: str) -> None:
        """Set the identity providers with another field manager, as `kubectl edit` does."""
        changes = {"spec": {"configuration": {"oauth": {"identityProviders": [*map(google, names)]}}}}
        cluster = ("hostedcluster", "demo", "-n", self.namespace)
        self._hub.kubectl("patch", *cluster, "--type=merge", "--field-manager=an-editor", "-p", json.dumps(changes))


@pytest.fixture
def site(quick_hub: Access) -> Iterator[Site]:
    with fresh_namespace(quick_hub) as namespace:
        yield Site(quick_hub, namespace)


def test_what_others_have_added_stays_when_the_cluster_is_changed(site: Site) -> None:
    site.ask("own")
    site.by_hand("own", "hand")
    assert not site.ask("own"), "nothing else is asked for than before"
    site.ask("own", nodes=2)
    assert site.names() == ["own", "hand"]
    site.ask("own", "second")
    assert site.names() == ["own", "second", "hand"]
    assert not site.ask("own", "second")


def test_what_is_no_longer_asked_for_is_removed_and_nothing_else(site: Site) -> None:
    site.ask("own", "old")
    site.provider().add_identity_provider(NOTHING, IdentityProvider("added", "Google", {"clientID": "x"}))
    site.by_hand(*site.names(), "hand")
    site.ask("own")
    assert site.names() == ["own", "added", "hand"]
    site.ask("new")
    assert site.names() == ["new", "added", "hand"]
    site.ask()
    assert site.names() == ["added", "hand"]
    assert not site.ask()
    site.ask(nodes=2)
    assert site.names() == ["added", "hand"]


def test_what_others_have_added_to_a_cluster_without_any_stays(site: Site) -> None:
    site.ask()
    site.by_hand("hand")
    site.ask(nodes=2)
    assert site.names() == ["hand"]
    site.ask("own", nodes=2)
    assert site.names() == ["own", "hand"]


def test_what_another_manager_adds_while_the_cluster_is_being_changed_stays(site: Site) -> None:
    class Meanwhile(Kube):
        done = False

        def apply(self, item: Object, *, force: bool = False, dry_run: bool = False) -> Object:
            if item["kind"] == "HostedCluster" and not self.done:
                self.done = True
                site.by_hand("own", "hand")
            return super().apply(item, force=force, dry_run=dry_run)

    site.ask("own")
    kube = Meanwhile(site.kube.target)
    site.ask("own", "second", kube=kube)
    assert kube.done
    assert site.names() == ["own", "second", "hand"]


@pytest.mark.parametrize("written_by_others_since", [False, True])
def test_the_last_one_leaves_no_configuration_behind(site: Site, written_by_others_since: bool) -> None:
    """With one, though an empty one, HyperShift would not let in the first administrator either."""
    site.ask("own")
    if written_by_others_since:
        site.by_hand("own", "hand")
        site.by_hand("own")
    site.ask()
    assert site.oauth() is None
    assert not site.ask()
    site.provider().add_identity_provider(NOTHING, IdentityProvider("added", "Google", {"clientID": "x"}))
    site.provider().remove_identity_provider(NOTHING, "added")
    assert site.oauth() is None
    again = site.provider()
    again.remove_identity_provider(NOTHING, "added")
    assert not any(change.changed for change in again.changes)


def test_other_settings_of_the_login_stay_when_the_last_one_is_removed(site: Site) -> None:
    tokens = {"tokenConfig": {"accessTokenMaxAgeSeconds": 600}}
    site.ask("own", **tokens)
    site.ask(**tokens)
    assert site.oauth() == tokens
    site.provider().add_identity_provider(NOTHING, IdentityProvider("added", "Google", {"clientID": "x"}))
    site.provider().remove_identity_provider(NOTHING, "added")
    assert site.oauth() == tokens
