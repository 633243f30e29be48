"""An order of each template to Ready and to nothing again, for a site with everything: a census of the hub before and after is equal.

The API server of the hub is also that of the clusters, as no further one starts. What is in a cluster is deleted with it; here the test
deletes it.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure import network_attachments
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.address_pools import API_VERSION, KIND, allocations_of
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import CONFIG_MAP
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.resources import INVENTORY, INVENTORY_NAMESPACE, OWNER

from ..support.agents import CLEANING, Agents, agents_on, hosts
from ..support.census import Census, lock_of
from ..support.inside import open_crd, serve_by_hub
from ..support.name_server import KEY_NAME, ZONE, NameServer, name_server
from ..support.ocm_site import standing_in
from ..support.ocm_standin import ADDONS, OFFLINE_TOKEN, TOKEN_PATH, OcmStandIn
from ..support.orders import HYPERSHIFT, Orders

ROLES = Path(__file__).resolve().parents[3] / "roles"
TEMPLATES = sorted(file.parents[1].name for file in ROLES.glob("*/meta/template.yml"))
OF_HYPERSHIFT = [name for name in TEMPLATES if name.startswith("ocp_")]
OLM = "operators.coreos.com"
CRDS = [
    open_crd(OLM, "v1alpha1", "Subscription", "subscriptions"),
    open_crd(OLM, "v1alpha1", "ClusterServiceVersion", "clusterserviceversions"),
    open_crd(OLM, "v1", "OperatorGroup", "operatorgroups"),
]
MULTUS = open_crd(network_attachments.GROUP, "v1", network_attachments.KIND, "network-attachment-definitions")
POOLS: dict[str, Object] = {
    "census-networks": {"type": "Network", "ranges": ["10.210.0.0/16"], "prefixLength": 24},
    "census-vlans": {"type": "VLAN", "ranges": ["400-410"]},
    "census-addresses": {"type": "Address", "ranges": ["198.51.100.1-198.51.100.9"]},
}
HOSTS = hosts(3) | hosts(1, "gpu-l40s", start="gpu")
# What an order of each template chooses, beside its defaults.
CHOSEN = {"operators": ["terminal"], "storage_class": "census-fast", "quota": "team", "backup_retention": "168h"}
NODE: Object = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "census-worker", "labels": {"node.kubernetes.io/instance-type": "m5.large"}},
    "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}]},
}
IDENTITY = {"idp_issuer": "https://login.example.com", "idp_client_id": "openshift"}


@dataclass(frozen=True)
class Site:
    """A hub with hosts, classes of machines, pools, DNS, and something for the inside of each cluster."""

    orders: Orders
    agents: Agents
    server: NameServer
    inside: str  # the namespace of the ingress and of MetalLB in a cluster

    def allocated(self) -> dict[str, int]:
        pools = {name: self.orders.kube.get(API_VERSION, KIND, name, SITE_NAMESPACE) for name in POOLS}
        return {name: sum(len(allocation.values) for allocation in allocations_of(pool).values()) for name, pool in pools.items()}

    def hosts(self) -> list[Object]:
        """The Agents as they are, but for the label that asks to clean a released one."""
        items = [(agent["metadata"], agent["spec"]) for agent in self.agents.all()]
        labels = [{key: value for key, value in metadata["labels"].items() if key != CLEANING} for metadata, _spec in items]
        return [
            {"name": metadata["name"], "labels": own, "annotations": metadata.get("annotations") or {}, "spec": spec}
            for (metadata, spec), own in zip(items, labels, strict=True)
        ]

    def settings(self) -> dict[str, Any]:
        return {
            "agent_namespace": self.agents.namespace,
            "storage_classes": {"census-fast": {"backend": "local"}, "census-slow": {"backend": "local"}},
            "infrastructure": {
                "network": {
                    "pool": "census-networks",
                    "vlan_pool": "census-vlans",
                    "adapter": "openfleet.clusters.network_kubevirt",
                    "settings": {"bridge": "br-census", "namespace": self.inside},
                },
                "ingress": {"pool": "census-addresses", "namespace": self.inside, "metallb_namespace": self.inside},
                "dns": {
                    "adapter": "openfleet.clusters.dns_rfc2136",
                    "zone": ZONE,
                    "server": "127.0.0.1",
                    "port": self.server.port,
                    "secret": "census-dns-key",
                },
                "identity": {"bindings": [{"role": "view", "groups": ["census-readers"]}], "admin_account": "census-admin"},
                "addons": {"operators": [{"name": "terminal", "namespace": self.inside}, {"name": "unused"}]},
                "quotas": {"team": {"hard": {"pods": "50"}, "namespace": self.inside}},
                "backup": {"retentions": ["168h", "720h"]},
            },
        }


@contextlib.contextmanager
def created(hub: Access, *items: Object) -> Iterator[None]:
    for item in items:
        hub.kube.create(item)
    try:
        yield
    finally:
        for item in items:
            hub.kube.delete(item)


@contextlib.contextmanager
def configured(hub: Access, settings: dict[str, Any]) -> Iterator[None]:
    before = hub.kube.get("v1", "ConfigMap", CONFIG_MAP, SITE_NAMESPACE)
    documents = {key: yaml.safe_dump(value) for key, value in settings.items()}
    hub.kube.patch(before, {"data": documents}, checked=False)
    try:
        yield
    finally:
        hub.kube.patch(before, {"data": {key: before["data"].get(key) for key in settings}}, checked=False)


@contextlib.contextmanager
def served(hub: Access, crds: list[Object]) -> Iterator[None]:
    for crd in crds:  # an earlier test's may still be in deletion
        named = (crd["apiVersion"], crd["kind"], crd["metadata"]["name"])
        until(lambda named=named: hub.kube.find(*named) is None, "the kind of an earlier test is deleted")
    with created(hub, *crds):
        for crd in crds:
            kind = (f"{crd['spec']['group']}/{crd['spec']['versions'][0]['name']}", crd["spec"]["names"]["kind"])
            until(
                lambda kind=kind: not isinstance(hub.kube.in_parallel(lambda each: hub.kube.list_all(*each), [kind])[0], Exception),
                "served",
            )
        yield


def of_site(name: str, **content: Any) -> Object:
    return {"metadata": {"name": name, "namespace": SITE_NAMESPACE}, **content}


@pytest.fixture
def site(orders: Orders, metallb_crds: list[Object], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    hub, crds = orders.hub, [*CRDS, MULTUS, *metallb_crds]
    pools = [of_site(name, apiVersion=API_VERSION, kind=KIND, spec=spec) for name, spec in POOLS.items()]
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(name_server(tmp_path_factory.mktemp("knot")))
        key = {name: base64.b64encode(value.encode()).decode() for name, value in {"name": KEY_NAME, "secret": server.key}.items()}
        stack.enter_context(created(hub, *pools, of_site("census-dns-key", apiVersion="v1", kind="Secret", data=key)))
        stack.enter_context(served(hub, crds))
        agents = stack.enter_context(agents_on(hub))
        made = Site(orders, agents, server, stack.enter_context(fresh_namespace(hub)))
        stack.enter_context(configured(hub, made.settings()))
        agents.discover(HOSTS)
        yield made


def install_operators(hub: Access) -> None:
    """What OLM does for each Subscription."""
    for item in hub.kube.list_all(f"{OLM}/v1alpha1", "Subscription", label_selector=OWNER):
        name, namespace = item["metadata"]["name"], item["metadata"]["namespace"]
        version = {
            "apiVersion": f"{OLM}/v1alpha1",
            "kind": "ClusterServiceVersion",
            "metadata": {"name": f"{name}.v1", "namespace": namespace, "labels": {OWNER: "operators"}},
        }
        hub.kube.apply(version | {"spec": {"version": "1.0.0"}, "status": {"phase": "Succeeded"}}, force=True)
        hub.kube.patch(item, {"status": {"installedCSV": f"{name}.v1", "state": "AtLatestKnown"}})


def end_inside(census: Census) -> None:
    """What the end of a cluster does to what is in it."""
    kube = census.hub.kube
    inventories = [item for item in kube.list_all("v1", "ConfigMap", INVENTORY_NAMESPACE) if item["metadata"]["name"].startswith(INVENTORY)]
    for item in [*census.objects(OWNER), *inventories]:
        kube.delete(item)


def remove(orders: Orders, **site: Any) -> None:
    """Delete the order as a person does who waits for that; a host may need one more run."""
    waiting = {"cluster_wait_timeout": 60}

    def is_gone() -> bool:
        orders.run("delete", "demo", site=site | waiting).complete(wait=60).successful()
        return orders.is_deleted()

    until(is_gone, "the order is deleted")


# What each template has made of the order, beside what all have.


def pools(orders: Orders) -> dict[str, Object]:
    found = orders.kube.list_all(HYPERSHIFT, "NodePool", orders.working())
    return {pool["metadata"]["name"].removeprefix("demo-"): pool["spec"] for pool in found}


def has_machines(site: Site) -> None:
    (pool,) = pools(site.orders).values()
    assert pool["platform"]["type"] == "KubeVirt" and pool["platform"]["kubevirt"]["compute"]["cores"] == 4
    (network,) = site.orders.kube.list_all(network_attachments.API_VERSION, network_attachments.KIND, site.inside)
    assert pool["platform"]["kubevirt"]["additionalNetworks"] == [{"name": f"{site.inside}/{network['metadata']['name']}"}]
    assert site.agents.claims() == {}


def has_gpus(site: Site) -> None:
    found = pools(site.orders)
    assert found["gpu-l40s"]["nodeLabels"] == {"openfleet.clusters/accelerator": "nvidia"}
    assert found["gpu-l40s"]["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    assert "taints" not in found["fc430"] and "nodeLabels" not in found["fc430"]
    assert {"nfd", "gpu-operator-certified"} < subscriptions(site)


def is_hardened(site: Site) -> None:
    spec = site.orders.hosted_cluster()["spec"]
    assert spec["fips"] is True and spec["secretEncryption"]["type"] == "aescbc"
    assert spec["configuration"]["apiServer"]["audit"]["profile"] == "WriteRequestBodies"
    assert spec["controllerAvailabilityPolicy"] == "HighlyAvailable"
    assert "compliance-operator" in subscriptions(site)


def subscriptions(site: Site) -> set[str]:
    return {item["metadata"]["name"] for item in site.orders.kube.list_all(f"{OLM}/v1alpha1", "Subscription", label_selector=OWNER)}


OWN: dict[str, Callable[[Site], None]] = {"ocp_4_20_virt": has_machines, "ocp_4_20_ai": has_gpus, "ocp_4_20_hardened": is_hardened}


def assert_complete(site: Site, template: str) -> None:
    """All that the site has is in use, and reported as ready."""
    orders, kube = site.orders, site.orders.kube
    ready = {part["part"]: part["ready"] for part in orders.status()["infrastructure"]}
    on_hosts = {} if template == "ocp_4_20_virt" else {"hosts": True}
    assert ready == dict.fromkeys(("network", "identity", "storage", "addons", "ingress", "dns"), True) | on_hosts
    assert site.allocated() == dict.fromkeys(POOLS, 1)
    assert {"api.demo", "api-int.demo", "*.apps.demo"} < {text.split()[0] for text in site.server.records()}
    assert orders.hosted_cluster()["spec"]["networking"]["machineNetwork"] == [{"cidr": "10.210.0.0/24"}]
    fast = kube.get("storage.k8s.io/v1", "StorageClass", "census-fast")
    assert fast["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true"
    assert kube.get("v1", "ResourceQuota", "openfleet", site.inside)["spec"]["hard"] == {"pods": "50"}
    assert "terminal" in subscriptions(site) and "unused" not in subscriptions(site)
    OWN.get(template, lambda _site: None)(site)


def to_ready(site: Site, template: str) -> None:
    orders = site.orders
    orders.run("provision", "demo").complete().successful()
    serve_by_hub(orders.hub, "demo", orders.working())
    orders.run("post_install", "demo").complete().successful()
    install_operators(orders.hub)
    until(lambda: len(site.agents.bound()) == len([name for names in site.agents.recorded().values() for name in names]), "hosts are bound")
    orders.run("post_install", "demo").complete().successful()
    orders.until_phase("Ready")
    assert_complete(site, template)
    for step in ("provision", "post_install") if template == "ocp_4_20_small" else ():
        assert orders.run(step, "demo").complete().successful().changed == 0, "a second run changes nothing"


@pytest.mark.metallb_crds
@pytest.mark.parametrize("template", OF_HYPERSHIFT)
def test_an_order_returns_everything_to_the_site(site: Site, template: str) -> None:
    orders, census = site.orders, Census(site.orders.hub)
    parameters: dict[str, Any] = dict(CHOSEN)
    orders.put_secret("idp", client="of-no-value")
    if template == "ocp_4_17_small_idp":
        parameters |= IDENTITY | {"idp_client_secret": {"secretRef": {"name": "idp", "key": "client"}}}
    before, hosts_before, records = census.take(), site.hosts(), site.server.records()
    orders.apply(template=template, **parameters)
    to_ready(site, template)
    end_inside(census)  # first, as namespaces take a while to end
    remove(orders)
    stays = lock_of(orders)
    if template != "ocp_4_20_virt":
        stays.add(f"ConfigMap {SITE_NAMESPACE} host-claims-agents-{site.agents.namespace}")  # without a claim
    census.assert_equal(before, stays, orders.namespace, site.agents.namespace, site.inside)
    assert site.hosts() == hosts_before and site.agents.recorded() == {}
    assert site.allocated() == dict.fromkeys(POOLS, 0)
    assert site.server.records() == records
    assert not orders.lease().get("holderIdentity")


def synchronize(hub: Access, service: OcmStandIn) -> None:
    """What OpenShift Cluster Manager does with the syncsets of a cluster."""
    (cluster,) = service.clusters
    for syncset in service.shelf(cluster, "syncsets").values():
        for item in syncset["resources"]:
            hub.kube.apply(item, force=True)


def test_an_order_of_a_managed_cluster_has_what_the_site_has_and_returns_everything(orders: Orders) -> None:
    """The cloud has its network, its hosts and its names. The hub is the inside of the cluster."""
    hub, census = orders.hub, Census(orders.hub)
    orders.put_secret("login", secret="of-no-value")  # noqa: S106 made up
    operators = [{"name": "terminal", "namespace": f"{orders.namespace}-inside"}, {"name": "unused"}]
    github = {"name": "github", "type": "GitHub", "settings": {"clientID": "me", "organizations": ["acme"]}}
    settings = {
        "storage_classes": {"census-fast": {"backend": "local"}, "census-slow": {"backend": "local"}},
        "infrastructure": {
            "identity": {
                "providers": [github | {"secret_refs": {"clientSecret": {"name": "login", "key": "secret"}}}],
                "bindings": [{"role": "view", "groups": ["census-readers"]}],
                "admin_account": "census-admin",
            },
            "addons": {"operators": operators, "of_provider": {ADDONS[0]: {}}},
            "quotas": {"team": {"hard": {"pods": "50"}}},
            "network": {"pool": "of-other-templates"},
        },
    }
    with served(hub, CRDS), configured(hub, settings), standing_in(hurried=True) as service:
        before = census.take()
        service.kubeconfig = hub.kubeconfig.read_text(encoding="utf-8")
        variables = {"osd_small_url": service.url, "osd_small_token_url": f"{service.url}{TOKEN_PATH}", "osd_small_token": OFFLINE_TOKEN}
        chosen = {"operators": ["terminal"], "addons": [*ADDONS], "storage_class": "census-fast", "quota": "team"}
        orders.apply(template="osd_small", nodes={"m5.xlarge": 2}, **chosen)
        orders.run("provision", "demo", site=variables).complete().successful()
        until(lambda: orders.sync("demo") and orders.condition("ControlPlaneAvailable")["status"] == "True", "the cluster is ready")
        orders.run("post_install", "demo", site=variables).complete().successful()
        assert orders.condition("InfrastructureReady")["status"] != "True", "the operator is not installed yet"
        synchronize(hub, service)
        install_operators(hub)
        orders.run("post_install", "demo", site=variables).complete().successful()
        orders.until_phase("Ready")
        assert {part["part"]: part["ready"] for part in orders.status()["infrastructure"]} == dict.fromkeys(
            ("identity", "storage", "addons"), True
        )
        (cluster,) = service.clusters
        assert {item["name"] for item in service.shelf(cluster, "identity_providers").values()} == {"github"}
        sets = {name: {item["metadata"]["name"] for item in each["resources"]} for name, each in service.shelf(cluster, "syncsets").items()}
        assert sets["quota"] == {"openfleet"} and sets["storage"] == {"census-fast"}
        assert "terminal" in sets["operators"] and "unused" not in sets["operators"] and "census-admin" in str(sets["access"])
        assert orders.run("post_install", "demo", site=variables).complete().successful().changed == 0, "a second run changes nothing"
        end_inside(census)
        remove(orders, **variables)
        assert service.clusters == {}
        census.assert_equal(before, lock_of(orders), orders.namespace)


def test_an_order_of_an_existing_cluster_returns_everything(orders: Orders) -> None:
    census = Census(orders.hub)
    orders.put_secret("existing", kubeconfig=orders.hub.kubeconfig.read_text(encoding="utf-8"))
    with created(orders.hub, NODE):
        before = census.take()
        orders.apply(template="existing_cluster", kubeconfig={"secretRef": {"name": "existing", "key": "kubeconfig"}})
        orders.provision(wait=30)
        remove(orders)
        census.assert_equal(before, lock_of(orders), orders.namespace)


def test_each_template_is_counted() -> None:
    """The order of `capi_small` is in the tests of its provider, which have Cluster API's managers."""
    assert sorted([*OF_HYPERSHIFT, "osd_small", "existing_cluster", "capi_small"]) == TEMPLATES
