"""The provider of OpenShift Cluster Manager, on a real hub, against a stand-in that the service's own description judges."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Forbidden, Invalid, Unauthorized
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import diff
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import LockLost
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import create_or_update
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import (
    ClusterRef,
    NoSuchCluster,
    NotReadyYet,
    NotSupported,
    ProviderError,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import ProviderFactory
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import (
    Addon,
    IdentityProvider,
    NodeSet,
    ObservedCluster,
    Region,
    ResourceSet,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm.account import OtherAccount
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm.model import OWNER
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm.provider import ClusterProvider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm.secret import FINALIZER
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm.service_cluster import ServiceCluster
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.resources import OWNER as RESOURCE_SET

from ..support.ocm_site import LABELS, Runs, standing_in
from ..support.ocm_standin import ACCOUNTS, COLLEAGUES_TOKEN, OFFLINE_TOKEN, STRANGERS_TOKEN, OcmStandIn, Refused

NOTHING = ObservedCluster()
CONFIG: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"a": "1"}}
SECRET: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "stringData": {"k": "hush-hush"}}
OPENID = IdentityProvider(
    "corp",
    "OpenID",
    {"clientID": "me", "issuer": "https://id.example.com", "claims": {"preferredUsername": ["u"]}},
    {"clientSecret": "pssst"},
)


@pytest.fixture
def service() -> Iterator[OcmStandIn]:
    with standing_in() as service:
        yield service


@pytest.fixture(scope="module")
def kube_namespace(hub: Access) -> Iterator[tuple[Kube, str]]:
    with fresh_namespace(hub) as namespace:
        yield Kube.connect({"kubeconfig": str(hub.kubeconfig)}), namespace


@pytest.fixture
def runs(kube_namespace: tuple[Kube, str], service: OcmStandIn) -> Iterator[Runs]:
    runs = Runs(*kube_namespace, service)
    yield runs
    runs.clean_up()


def put_secret(runs: Runs) -> None:
    """As a site does it."""
    where = runs.request().settings
    content = {"token": OFFLINE_TOKEN + "\n", "url": where["url"], "token_url": where["token_url"]}
    runs.kube.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{runs.name}-ocm", "namespace": runs.namespace},
            "stringData": content,
        }
    )


# From nothing to a cluster, and back


def test_cluster_is_created_observed_and_deleted(runs: Runs, service: OcmStandIn) -> None:
    provider = runs.provider()
    spec = provider.create(runs.request(multi_az=True, settings={"properties": {"team": "blue"}}))
    assert (spec.status, spec.internal_id, spec.multi_az) == ("cluster_accepted", "id2", True)
    assert [(change.action, change.item["kind"]) for change in provider.changes] == [("created", "Secret"), ("created", "Cluster")]
    made = service.clusters["id2"]
    assert made["properties"] == {"team": "blue", OWNER: f"{runs.kube.cluster_id()}/{runs.namespace}/{runs.name}"}
    assert made["version"] == {"id": "openshift-v4.18.1", "channel_group": "stable"}
    stored = ObservedCluster.from_stored(spec.to_stored())
    observed = []
    for _step in range(3):
        observed.append(runs.provider(read_only=True).status(stored).status)
        service.advance()
    assert observed == ["cluster_accepted", "cluster_provisioning", "ready"]
    ready = runs.provider(read_only=True).status(stored)
    assert ready.api_url.startswith("https://api.demo-")
    assert (ready.version, ready.region, ready.cloud_provider) == ("4.18.1", "us-east-1", "aws")
    assert service.shelf("id2", "machine_pools")["worker"]["replicas"] == 3, "two nodes would not fill three zones"
    assert ready.node_sets == (NodeSet("worker", "m5.xlarge", 2, 2),)
    assert runs.provider().delete(stored) is False
    assert runs.provider().status(stored).status == "deprovisioning"
    assert runs.provider().delete(stored) is False
    assert len([write for write in service.writes() if write.startswith("DELETE")]) == 1, "it is asked for once"
    service.advance()
    assert runs.secret() is not None, "kept until the cluster is deleted"
    assert runs.provider().status(stored).status == "cleanup"
    assert runs.provider().delete(stored) is True
    assert runs.secret() is None
    assert runs.provider().delete(stored) is True, "also after it was deleted"
    assert runs.provider().status(stored).is_absent


def test_a_cluster_that_never_existed_is_deleted_without_a_token(runs: Runs, service: OcmStandIn) -> None:
    assert runs.provider().delete(NOTHING) is True
    assert runs.provider().status(NOTHING).is_absent
    assert service.requests == []


def test_second_create_finds_the_first_and_writes_nothing(runs: Runs, service: OcmStandIn) -> None:
    first = runs.provider().create(runs.request())
    again = runs.provider()
    assert again.create(runs.request()).internal_id == first.internal_id
    assert not any(change.changed for change in again.changes)
    assert len(service.writes()) == 1


def test_run_that_was_killed_before_anything_was_kept_is_found_again(runs: Runs) -> None:
    made = runs.provider().create(runs.request())
    assert runs.provider().status(NOTHING).internal_id == made.internal_id
    assert runs.provider().delete(NOTHING) is False


def test_two_creates_at_once_make_one_cluster(runs: Runs, service: OcmStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    both_searched = threading.Barrier(2)
    create = ServiceCluster.create

    def create_late(cluster: ServiceCluster, body: Object) -> Object:
        both_searched.wait(30)
        return create(cluster, body)

    monkeypatch.setattr(ServiceCluster, "create", create_late)
    specs: list[ObservedCluster] = []
    threads = [threading.Thread(target=lambda: specs.append(runs.provider().create(runs.request()))) for _run in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(service.clusters) == 1
    assert [spec.internal_id for spec in specs] == [*service.clusters] * 2


def test_id_of_an_earlier_cluster_does_not_hide_the_one_that_is_there(runs: Runs) -> None:
    made = runs.provider().create(runs.request())
    assert runs.provider().status(ObservedCluster(internal_id="long-deleted")).internal_id == made.internal_id


def test_cluster_of_another_owner_is_skipped(runs: Runs, service: OcmStandIn) -> None:
    runs.provider().create(runs.request())
    next(iter(service.clusters.values()))["properties"] = {}
    for call in (lambda: runs.provider().create(runs.request()), lambda: runs.provider().delete(NOTHING)):
        with pytest.raises(ProviderError, match=r"was not created for .* skipped"):
            call()
    assert len(service.writes()) == 1


def test_cluster_whose_secret_was_removed_is_not_taken_for_a_new_one_of_its_name(runs: Runs, service: OcmStandIn) -> None:
    first = runs.provider().create(runs.request())
    found = runs.kube.get("v1", "Secret", f"{runs.name}-ocm", runs.namespace)
    runs.kube.patch(found, {"metadata": {"finalizers": []}}, checked=False)
    runs.kube.delete(found)
    for check_mode in (True, False):
        with pytest.raises(
            ProviderError, match=rf"the Secret {runs.namespace}/{runs.name}-ocm of .* does not exist: .* Delete .* adopt it"
        ):
            runs.provider(check_mode=check_mode).create(runs.request())
    assert runs.secret() is None and len(service.writes()) == 1
    # Who can write the Secret says that the cluster is the order's.
    put_secret(runs)
    assert runs.provider().create(runs.request(secrets={"token": None})).internal_id == first.internal_id


def test_run_that_began_before_the_secret_was_written_uses_the_cluster_of_the_other(runs: Runs, service: OcmStandIn) -> None:
    late = runs.provider()
    late.use_credentials_of(runs.request())  # reads that there is no Secret
    first = runs.provider().create(runs.request())
    assert late.create(runs.request()).internal_id == first.internal_id
    assert len(service.clusters) == 1


def test_hubs_of_one_organization_have_a_cluster_each_for_the_same_reference(runs: Runs, service: OcmStandIn, quick_hub: Access) -> None:
    first = runs.provider().create(runs.request())
    quick_hub.kubectl("create", "namespace", runs.namespace)
    other = Runs(Kube.connect({"kubeconfig": str(quick_hub.kubeconfig)}), runs.namespace, service, runs.name)
    try:
        second = other.provider().create(other.request())
        assert first.internal_id != second.internal_id
        assert len({cluster["name"] for cluster in service.clusters.values()}) == 2
        for there, made in ((runs, first), (other, second)):
            assert there.provider().status(NOTHING).internal_id == made.internal_id
        assert other.provider().delete(NOTHING) is False
        assert runs.provider().status(NOTHING).status == "cluster_accepted"
        service.advance()
        assert other.provider().delete(NOTHING) is True
        assert [*service.clusters] == [first.internal_id]
    finally:
        other.clean_up()
        quick_hub.kubectl("delete", "namespace", runs.namespace, "--wait=false")


def test_cluster_that_is_known_by_its_id_is_adopted_by_another_hub(runs: Runs, service: OcmStandIn) -> None:
    spec = runs.ready()
    noted = service.clusters[spec.internal_id]["properties"]
    service.clusters[spec.internal_id] |= {"name": "demo-of-old", "properties": {**noted, OWNER: "the-old-hub/a/b"}}
    assert runs.provider().status(spec).status == "ready"
    runs.provider().update(spec, runs.request())
    assert service.clusters[spec.internal_id]["properties"] == noted
    assert len(service.clusters) == 1


def test_which_hub_it_is_costs_one_request_a_connection(runs: Runs) -> None:
    spec = runs.ready()
    kube = Kube(runs.kube.target)
    sent = []
    for _call in range(3):
        before = kube.requests
        ClusterProvider(ClusterRef(kube, runs.name, runs.namespace)).status(spec)
        sent.append(kube.requests - before)
    assert sent == [2, 1, 1]


def test_factory_knows_it() -> None:
    assert ProviderFactory.get("ocm") is ClusterProvider


# The Secret


def test_secret_holds_what_later_calls_need_and_no_more(runs: Runs, service: OcmStandIn) -> None:
    keys = {"aws_access_key_id": "AKIA-made-up", "aws_secret_access_key": "key-made-up"}
    runs.provider().create(runs.request(settings={"ccs": True, "aws_account_id": "123"}, secrets=keys))
    secret = runs.secret()
    assert secret is not None
    assert set(secret) == {"token", "url", "token_url", "client_id", "nodes", "account", "account-token"}
    assert (secret["token"], secret["url"]) == (OFFLINE_TOKEN, service.url)
    found = runs.kube.get("v1", "Secret", f"{runs.name}-ocm", runs.namespace)
    assert found["metadata"]["labels"] == LABELS
    assert service.clusters["id2"]["aws"] == {
        "account_id": "123",
        "access_key_id": keys["aws_access_key_id"],
        "secret_access_key": keys["aws_secret_access_key"],
    }
    assert service.clusters["id2"]["ccs"] == {"enabled": True}


def test_secret_that_is_deleted_by_hand_stays_until_the_cluster_is_deleted(runs: Runs, service: OcmStandIn) -> None:
    spec = runs.provider().create(runs.request())
    found = runs.kube.get("v1", "Secret", f"{runs.name}-ocm", runs.namespace)
    assert found["metadata"]["finalizers"] == [FINALIZER]
    runs.kube.delete(found)
    assert runs.provider().status(spec).exists
    assert runs.provider().delete(spec) is False
    service.advance()
    assert runs.provider().delete(spec) is True
    assert runs.secret() is None


def test_missing_secret_is_one_clear_error(runs: Runs) -> None:
    calls = [
        lambda provider: provider.kubeconfig(NOTHING),
        lambda provider: provider.regions("aws"),
        lambda provider: provider.scale(NOTHING, "m5.xlarge", 2),
        lambda provider: provider.update(NOTHING, runs.request(secrets={"token": None})),
    ]
    for call in calls:
        with pytest.raises(NoSuchCluster, match=rf"The Secret .*/{runs.name}-ocm .* does not exist; create the cluster with secrets.token"):
            call(runs.provider())


def test_token_that_a_site_has_put_there_is_used(runs: Runs, service: OcmStandIn) -> None:
    put_secret(runs)
    assert runs.provider(read_only=True).cloud_providers() == ["aws", "gcp"]
    assert runs.provider().create(runs.request(secrets={"token": None})).status == "cluster_accepted"
    assert len(service.clusters) == 1


# Who may, and who may not


def test_wrong_token_changes_nothing(runs: Runs, service: OcmStandIn) -> None:
    with pytest.raises(Unauthorized, match=r"does not accept the offline token \(Invalid refresh token .*load a new one") as caught:
        runs.provider().create(runs.request(secrets={"token": "wrong-token"}))
    assert not caught.value.retryable
    assert "wrong-token" not in str(caught.value)
    assert service.writes() == []
    assert runs.secret() is None


def test_run_that_lost_its_lock_writes_nothing_to_the_service(runs: Runs, service: OcmStandIn) -> None:
    spec = runs.ready()
    late = runs.provider()
    lease.release(runs.kube, runs.lock)
    other = lease.acquire(runs.kube, runs.namespace, runs.name, "another run")
    before = service.writes()
    for call in (
        lambda: late.delete(spec),
        lambda: late.scale(spec, "m5.xlarge", 5),
        lambda: late.apply_resources(spec, ResourceSet("set", [CONFIG])),
        lambda: late.update(spec, runs.request(("m5.xlarge", 5))),
    ):
        with pytest.raises(LockLost):
            call()
    assert service.writes() == before
    runs.lock = other


def test_a_provider_that_only_observes_cannot_write(runs: Runs, service: OcmStandIn) -> None:
    for call in (lambda provider: provider.create(runs.request()), lambda provider: provider.delete(NOTHING)):
        with pytest.raises(ProviderError, match=r"observes .* without its lock"):
            call(runs.provider(read_only=True))
    assert service.writes() == []


# Check mode


def test_check_mode_asks_the_service_and_changes_nothing(runs: Runs, service: OcmStandIn) -> None:
    provider = runs.provider(check_mode=True)
    assert provider.create(runs.request()).status == "cluster_accepted"
    assert [(change.action, change.item["kind"]) for change in provider.changes] == [("created", "Secret"), ("created", "Cluster")]
    assert [write.rpartition("/")[2] for write in service.writes()] == ["clusters?dryRun=true"]
    assert service.clusters == {}
    assert runs.secret() is None
    with pytest.raises(Invalid, match=r"Region 'mars-1' is not supported .*\(CLUSTERS-MGMT-400, request operation-400\)"):
        runs.provider(check_mode=True).create(runs.request(region="mars-1"))
    spec = runs.ready()
    before = service.writes()
    checking = runs.provider(check_mode=True)
    checking.update(spec, runs.request(("m5.xlarge", 5), ("r5.xlarge", 1), version="4.18.2", settings={"properties": {"a": "b"}}))
    checking.apply_resources(spec, ResourceSet("set", [CONFIG]))
    checking.add_identity_provider(spec, OPENID)
    checking.install_addon(spec, Addon("logging-operator"))
    assert [change.item["kind"] for change in checking.changes if change.changed] == [
        *("Secret", "Cluster", "MachinePool", "MachinePool", "UpgradePolicy", "Syncset", "IdentityProvider", "Secret", "AddOnInstallation")
    ]
    assert service.writes() == before
    assert runs.provider(check_mode=True).delete(spec) is False
    assert [write.rpartition("/")[2] for write in service.writes()[len(before) :]] == [f"{spec.internal_id}?dry_run=true"]
    assert service.clusters[spec.internal_id]["state"] == "ready"


# Changes


def test_update_changes_only_what_differs(runs: Runs, service: OcmStandIn) -> None:
    spec = runs.ready()
    first = runs.provider()
    wanted = runs.request(("m5.xlarge", 4), ("r5.xlarge", 2), settings={"properties": {"team": "red"}})
    now = first.update(spec, wanted)
    assert now.node_sets == (NodeSet("worker", "m5.xlarge", 4, 4), NodeSet("r5-xlarge", "r5.xlarge", 2, 2))
    done = [(change.action, change.item["kind"], change.item["metadata"]["name"]) for change in first.changes if change.changed]
    name = service.clusters[spec.internal_id]["name"]
    assert done == [
        ("changed", "Secret", f"{runs.name}-ocm"),  # the number of nodes that are asked for
        ("changed", "Cluster", name),
        ("changed", "MachinePool", "worker"),
        ("created", "MachinePool", "r5-xlarge"),
    ]
    assert '"replicas": 2' in diff(first.changes)[2]["before"]
    assert '"replicas": 4' in diff(first.changes)[2]["after"]
    before = service.writes()
    again = runs.provider()
    assert again.update(spec, wanted).node_sets == now.node_sets
    assert not any(change.changed for change in again.changes)
    assert service.writes() == before
    assert runs.provider().update(spec, runs.request(("r5.xlarge", 3))).node_sets == (NodeSet("r5-xlarge", "r5.xlarge", 3, 3),)


def test_pool_that_a_person_made_stays(runs: Runs, service: OcmStandIn) -> None:
    spec = runs.ready()
    service.shelf(spec.internal_id, "machine_pools")["mine"] = {"id": "mine", "instance_type": "c5.xlarge", "replicas": 1}
    assert len(runs.provider().update(spec, runs.request()).node_sets) == 1
    assert "mine" in service.shelf(spec.internal_id, "machine_pools")


def test_autoscaler_decides_where_it_is_asked_to(runs: Runs, service: OcmStandIn) -> None:
    scaled = {"autoscaling": [{"resource_class": "m5.xlarge", "min_replicas": 2, "max_replicas": 4}]}
    spec = runs.ready(multi_az=True, settings=scaled)
    assert service.clusters[spec.internal_id]["nodes"]["autoscale_compute"] == {"min_replicas": 3, "max_replicas": 6}
    assert spec.node_sets == (NodeSet("worker", "m5.xlarge", None, 3),)
    before = service.writes()
    runs.provider().update(spec, runs.request(multi_az=True, settings=scaled))
    assert service.writes() == before
    fixed = runs.provider().update(spec, runs.request(multi_az=True))
    assert fixed.node_sets == (NodeSet("worker", "m5.xlarge", 2, 2),)


def test_scale_adds_changes_and_removes(runs: Runs, service: OcmStandIn) -> None:
    spec = runs.ready(multi_az=True)
    pools = service.shelf(spec.internal_id, "machine_pools")
    for asked, made in ((1, 3), (5, 6)):
        assert runs.provider().scale(spec, "r5.xlarge", asked).node_sets[1] == NodeSet("r5-xlarge", "r5.xlarge", asked, asked)
        assert pools["r5-xlarge"]["replicas"] == made
    unchanged = runs.provider()
    unchanged.scale(spec, "r5.xlarge", 5)
    assert not any(change.changed for change in unchanged.changes)
    for _time in range(2):
        assert [node_set.name for node_set in runs.provider().scale(spec, "r5.xlarge", 0).node_sets] == ["worker"]
    assert list(pools) == ["worker"]


def test_another_version_is_an_upgrade_that_is_asked_for_once(runs: Runs, service: OcmStandIn) -> None:
    spec = runs.ready()
    runs.provider().update(spec, runs.request(version="4.18.2"))
    again = runs.provider()
    now = again.update(spec, runs.request(version="4.18.2"))
    assert (now.status, now.version, now.updating) == ("ready", "4.18.2", True)
    assert not any(change.changed for change in again.changes)
    assert len(service.shelf(spec.internal_id, "upgrade_policies")) == 1


@pytest.mark.parametrize("change", [{"region": "eu-west-1"}, {"cloud_provider": "gcp", "region": "us-east1"}, {"multi_az": True}])
def test_what_cannot_be_changed_is_said(change: Object, runs: Runs, service: OcmStandIn) -> None:
    spec = runs.ready()
    before = service.writes()
    with pytest.raises(Invalid, match=r"cannot be changed like that: .* Create another one"):
        runs.provider().update(spec, runs.request(**change))
    assert service.writes() == before


def test_update_before_it_is_ready_does_what_can_be_done(runs: Runs, service: OcmStandIn) -> None:
    spec = runs.provider().create(runs.request())
    wanted = runs.request(("m5.xlarge", 2), ("r5.xlarge", 2), settings={"properties": {"a": "b"}})
    later = NodeSet("r5-xlarge", "r5.xlarge", 2, 0)
    assert runs.provider().update(spec, wanted).node_sets[1] == later
    assert runs.provider(read_only=True).status(spec).node_sets[1] == later, "asked for, and so not missing yet"
    assert service.clusters[spec.internal_id]["properties"]["a"] == "b"
    for change in (runs.request(version="4.18.2"), runs.request(("m5.xlarge", 3))):
        with pytest.raises(NotReadyYet, match="is in the state pending, and is changed when it is ready"):
            runs.provider().update(spec, change)
    runs.provider().update(spec, wanted)
    service.advance()
    service.advance()
    assert len(runs.provider(read_only=True).status(spec).node_sets) == 1, "now it is missing, and to be made"
    assert len(runs.provider().update(spec, wanted).node_sets) == 2


def test_token_that_has_expired_is_replaced_by_that_of_the_request(runs: Runs) -> None:
    spec = runs.ready()
    found = runs.kube.get("v1", "Secret", f"{runs.name}-ocm", runs.namespace)
    runs.kube.patch(found, {"stringData": {"token": "expired"}})
    with pytest.raises(Unauthorized):
        runs.provider().status(spec)
    assert create_or_update(runs.provider(), spec, runs.request()).status == "ready"
    assert runs.provider().status(spec).status == "ready"


def test_update_of_nothing_is_an_error(runs: Runs) -> None:
    with pytest.raises(NoSuchCluster):
        runs.provider().update(NOTHING, runs.request())


# Failures


@pytest.mark.parametrize(("code", "retryable"), [("OCM5011", True), ("OCM5003", False)])
def test_failed_installation_says_why(code: str, retryable: bool, runs: Runs, service: OcmStandIn) -> None:
    spec = runs.provider().create(runs.request())
    service.fail_installation(code, "no luck")
    failed = runs.provider().status(spec)
    assert (failed.status, failed.status_details, failed.retryable) == ("failed", f"{code}: no luck", retryable)
    assert runs.provider().create(runs.request()).status == "failed", "found, and left as it is"
    with pytest.raises(NoSuchCluster, match="state error"):
        runs.provider().dns(spec)
    assert runs.provider().delete(spec) is False


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"region": ""}, "region is required"),
        ({"cloud_provider": "", "region": ""}, "cloud_provider is required; region is required"),
        ({"settings": {"ccs": True}}, "settings.aws_account_id, secrets.aws_access_key_id and secrets.aws_secret_access_key are required"),
        ({"cloud_provider": "gcp", "region": "us-east1", "settings": {"ccs": True}}, "secrets.gcp_service_account is required"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_sent(changes: Object, message: str, runs: Runs, service: OcmStandIn) -> None:
    with pytest.raises(Invalid, match=message):
        runs.provider().create(runs.request(**changes))
    assert service.requests == []


def test_secrets_are_in_no_error_no_change_and_no_diff(runs: Runs) -> None:
    keys = {"aws_access_key_id": "AKIA-made-up", "aws_secret_access_key": "bad-key-made-up"}
    request = runs.request(settings={"ccs": True, "aws_account_id": "123"}, secrets=keys)
    with pytest.raises(Invalid, match=r"The AWS key \(hidden\) is not valid") as caught:
        runs.provider().create(request)
    good = runs.request(settings={"ccs": True, "aws_account_id": "123"}, secrets=keys | {"aws_secret_access_key": "good-key-made-up"})
    provider = runs.provider()
    spec = provider.create(good)
    runs.service.advance()
    runs.service.advance()
    provider.add_identity_provider(spec, OPENID)
    users = IdentityProvider("file", "HTPasswd", {}, {"htpasswd": "ann:$2y$hash-of-ann\n"})
    provider.add_identity_provider(spec, users)
    provider.apply_resources(spec, ResourceSet("set", [SECRET]))
    provider.install_addon(spec, Addon("logging-operator", {"key": "addon-secret"}))
    noted = [change for change in provider.changes if change.item["kind"] != "Secret"]
    shown = f"{caught.value!r} {request!r} {spec!r} {diff(provider.changes)} {noted}"
    for secret in (OFFLINE_TOKEN, "made-up", "pssst", "hash-of-ann", "hush-hush", "addon-secret", "access-token"):
        assert secret not in shown


# What is in a cluster


def test_nothing_is_done_in_a_cluster_that_is_not_ready(runs: Runs) -> None:
    spec = runs.provider().create(runs.request())
    calls = [
        lambda provider: provider.dns(spec),
        lambda provider: provider.kubeconfig(spec),
        lambda provider: provider.scale(spec, "m5.xlarge", 3),
        lambda provider: provider.apply_resources(spec, ResourceSet("set", [CONFIG])),
        lambda provider: provider.install_addon(spec, Addon("logging-operator")),
        lambda provider: provider.add_identity_provider(spec, OPENID),
    ]
    for call in calls:
        with pytest.raises(NotReadyYet, match="state pending; try again when it is ready") as caught:
            call(runs.provider())
        assert caught.value.retryable


def test_cluster_reports_its_domain_and_kubeconfig(runs: Runs) -> None:
    spec = runs.ready()
    name = spec.additional_info["name"]
    assert runs.provider(read_only=True).dns(spec) == f"apps.{name}.example.com"
    kubeconfig = runs.provider(read_only=True).kubeconfig(spec)
    assert kubeconfig.content["clusters"] == [{"name": name}]
    assert kubeconfig.version == runs.provider().kubeconfig(spec).version


def test_clouds_and_regions(runs: Runs) -> None:
    runs.provider().create(runs.request())
    assert runs.provider(read_only=True).cloud_providers() == ["aws", "gcp"]
    assert runs.provider(read_only=True).regions("aws") == [Region("us-east-1", "US-EAST-1", True), Region("eu-west-1", "EU-WEST-1", False)]


def test_resources_are_applied_changed_and_deleted(runs: Runs, service: OcmStandIn) -> None:
    spec = runs.ready()
    runs.provider().apply_resources(spec, ResourceSet("set", [CONFIG, SECRET]))
    labelled = [item | {"metadata": item["metadata"] | {"labels": {RESOURCE_SET: "set"}}} for item in (CONFIG, SECRET)]
    assert service.shelf(spec.internal_id, "syncsets")["set"]["resources"] == labelled
    again = runs.provider()
    again.apply_resources(spec, ResourceSet("set", [CONFIG, SECRET]))
    assert again.changes == []
    runs.provider().apply_resources(spec, ResourceSet("set", [CONFIG]))
    assert service.shelf(spec.internal_id, "syncsets")["set"]["resources"] == labelled[:1]
    runs.provider().apply_resources(spec, ResourceSet("of-nothing", []))
    assert list(service.shelf(spec.internal_id, "syncsets")) == ["set"], "a set without objects is none"
    assert runs.provider().remove_resources(spec, "set") is False
    assert runs.provider().remove_resources(spec, "set") is True
    assert runs.provider().remove_resources(ObservedCluster(internal_id="no"), "set") is True


def test_identity_provider_is_found_by_its_name_and_changed_with_its_secret(runs: Runs, service: OcmStandIn) -> None:
    spec = runs.ready()
    runs.provider().add_identity_provider(spec, OPENID)
    (found,) = service.shelf(spec.internal_id, "identity_providers").values()
    assert found["open_id"] == {
        "client_id": "me",
        "issuer": "https://id.example.com",
        "claims": {"preferred_username": ["u"]},
        "client_secret": "pssst",
    }
    again = runs.provider()
    again.add_identity_provider(spec, OPENID)
    assert again.changes == []
    changed = IdentityProvider("corp", "OpenID", OPENID.settings, {"clientSecret": "another"})
    runs.provider().add_identity_provider(spec, changed)
    (found,) = service.shelf(spec.internal_id, "identity_providers").values()
    assert found["open_id"]["client_secret"] == changed.secrets["clientSecret"]
    found["open_id"]["issuer"] = "https://changed-by-hand.example.com"
    runs.provider().add_identity_provider(spec, changed)
    assert found["open_id"]["issuer"] == "https://id.example.com"
    with pytest.raises(Invalid, match="of another type"):
        runs.provider().add_identity_provider(spec, IdentityProvider("corp", "Google", {"clientID": "x"}))
    with pytest.raises(NotSupported, match="ocm does not support identity providers of the type Keystone"):
        runs.provider().add_identity_provider(spec, IdentityProvider("k", "Keystone"))
    runs.provider().remove_identity_provider(spec, "corp")
    assert service.shelf(spec.internal_id, "identity_providers") == {}
    runs.provider().remove_identity_provider(spec, "corp")


def test_users_of_an_htpasswd_file_are_exactly_those_in_it(runs: Runs, service: OcmStandIn) -> None:
    spec = runs.ready()

    def users() -> dict[str, str]:
        shelf = next(name for name in service.shelves[spec.internal_id] if name.startswith("users of "))
        return {user["username"]: user["hashed_password"] for user in service.shelf(spec.internal_id, shelf).values()}

    def bring(text: str) -> None:
        runs.provider().add_identity_provider(spec, IdentityProvider("file", "HTPasswd", {}, {"htpasswd": text}))

    bring("ann:$1$a\nbob:$1$b\n")
    assert users() == {"ann": "$1$a", "bob": "$1$b"}
    bring("# who may\nann:$1$c\ncat:$1$d\n")
    assert users() == {"ann": "$1$c", "cat": "$1$d"}
    with pytest.raises(Invalid, match="Line 1 of the htpasswd file of file is not <user>:<hashed password>"):
        bring("nonsense")


def test_addon_is_installed_with_its_parameters_and_becomes_ready(runs: Runs, service: OcmStandIn) -> None:
    spec = runs.ready()
    addon = Addon("logging-operator", {"size": "small"})
    assert runs.provider().install_addon(spec, addon) is False
    assert runs.provider().install_addon(spec, addon) is False
    service.advance()
    service.advance()
    ready = runs.provider()
    assert ready.install_addon(spec, addon) is True
    assert ready.changes == []
    assert runs.provider().install_addon(spec, Addon("logging-operator", {"size": "large"})) is False
    installed = service.shelf(spec.internal_id, "addons")["logging-operator"]
    assert installed["parameters"] == [{"id": "size", "value": "large"}]
    installed |= {"state": "failed", "state_description": "no storage"}
    with pytest.raises(ProviderError, match=r"logging-operator of .* failed: no storage"):
        runs.provider().install_addon(spec, Addon("logging-operator", {"size": "large"}))


def test_forbidden_is_not_retryable(runs: Runs, service: OcmStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise Refused(403, "Account 11009103 is not authorized")

    monkeypatch.setattr(service, "handle", refuse)
    with pytest.raises(Forbidden, match=r"not authorized \(CLUSTERS-MGMT-403, request operation-403\); the account of the token") as caught:
        runs.provider().create(runs.request())
    assert not caught.value.retryable
    monkeypatch.undo()


# Tokens of other accounts


def token_in_secret(runs: Runs, token: str) -> None:
    """Replace the token in the Secret by hand."""
    secret = runs.kube.get("v1", "Secret", f"{runs.name}-ocm", runs.namespace)
    runs.kube.patch(secret, {"stringData": {"token": token}})


def test_a_cluster_is_not_created_again_with_the_token_of_another_account(runs: Runs) -> None:
    spec = runs.provider().create(runs.request())
    other = runs.request(secrets={"token": STRANGERS_TOKEN})
    for recorded in (spec, NOTHING):  # also after a run that was killed before the id was recorded
        with pytest.raises(OtherAccount, match="the account account-3, and it was created or last read by the account account-1"):
            create_or_update(runs.provider(), recorded, other)
    with pytest.raises(OtherAccount):
        runs.provider().create(other)
    assert len(runs.service.clusters) == 1
    assert (runs.secret() or {})["token"] == OFFLINE_TOKEN


def test_a_cluster_is_not_forgotten_because_the_token_is_of_another_account(runs: Runs) -> None:
    spec = runs.ready()
    token_in_secret(runs, STRANGERS_TOKEN)
    calls = {"delete": runs.provider().delete, "status": runs.provider(read_only=True).status}
    for call, recorded in itertools.product(calls.values(), (spec, NOTHING)):
        with pytest.raises(OtherAccount, match="Put a token of that account into the Secret") as caught:
            call(recorded)
        assert f"{runs.namespace}/{runs.name}-ocm" in str(caught.value)
        assert STRANGERS_TOKEN not in str(caught.value)
    assert runs.secret() and runs.service.clusters
    token_in_secret(runs, OFFLINE_TOKEN)
    assert runs.provider(read_only=True).status(spec).status == "ready"


def test_the_token_of_another_account_that_sees_the_cluster_takes_over(runs: Runs) -> None:
    spec = runs.ready()
    token_in_secret(runs, COLLEAGUES_TOKEN)
    assert runs.provider(read_only=True).status(spec).status == "ready"
    assert not runs.provider().delete(spec)
    assert (runs.secret() or {})["account"] == "account-2"
    runs.service.advance()
    assert runs.provider().delete(spec)
    assert runs.secret() is None


def test_a_new_token_of_the_same_account_and_a_secret_without_an_account_work(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = runs.ready()
    monkeypatch.setitem(ACCOUNTS, "rotated", ACCOUNTS[OFFLINE_TOKEN])
    token_in_secret(runs, "rotated")
    runs.service.clusters.clear()
    assert runs.provider(read_only=True).status(spec).status == "cleanup", "by this account it is gone"
    token_in_secret(runs, STRANGERS_TOKEN)
    secret = runs.kube.get("v1", "Secret", f"{runs.name}-ocm", runs.namespace)
    runs.kube.patch(secret, {"data": {"account": None}})  # as the message says, and as earlier versions left it
    assert runs.provider().delete(spec)
