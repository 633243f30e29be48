"""The roles for networks, ingress and DNS, as a template includes them: on a real hub, with a real DNS server."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox import upstream
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.address_pools import API_VERSION, KIND, allocations_of
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE

from ..support.name_server import KEY_NAME, ZONE, NameServer, name_server
from ..support.playbooks import COLLECTION, Played, Task, play

ADAPTER = """
- name: Configure the switches
  ansible.builtin.set_fact:
    cluster_network_adapter:
      ready: "{{ cluster_network_request.settings.done }}"
      reason: SwitchesConfigured
      message: "VLAN {{ cluster_network_request.vlan }} has {{ cluster_network_request.cidr }}"
      bridge: "br{{ cluster_network_request.vlan }}"
"""
PARTS = {"name": "Parts", "ansible.builtin.debug": {"msg": "{{ cluster_infrastructure }}"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServer]:
    with name_server(tmp_path_factory.mktemp("knot")) as running:
        yield running


class Cluster:
    """A cluster without an order, which is the hub itself, and the pools and credentials of its site."""

    def __init__(self, hub: Access, namespace: str, folder: Path, server: NameServer) -> None:
        self.hub, self.namespace, self._folder, self._port = hub, namespace, folder, server.port
        kubeconfig = {"kubeconfig": hub.kubeconfig.read_text(encoding="utf-8")}
        self._made = [
            self._secret("lab-kubeconfig", namespace, kubeconfig),
            self._secret("dns-key", SITE_NAMESPACE, {"name": KEY_NAME, "secret": server.key}),
            self._pool("role-networks", type="Network", ranges=["10.200.0.0/16"], prefixLength=24),
            self._pool("role-vlans", type="VLAN", ranges=["300-310"]),
            self._pool("role-addresses", type="Address", ranges=["203.0.113.1-203.0.113.9"]),
        ]
        role = folder / "roles" / "switches" / "tasks"
        role.mkdir(parents=True)
        (role / "main.yml").write_text(ADAPTER, encoding="utf-8")

    def _create(self, item: Object) -> Object:
        return self.hub.kube.create(item)

    def _secret(self, name: str, namespace: str, data: dict[str, str]) -> Object:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        return self._create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": encoded})

    def _pool(self, name: str, **spec: Any) -> Object:
        return self._create(
            {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name, "namespace": SITE_NAMESPACE}, "spec": spec}
        )

    def allocated(self, name: str) -> list[str]:
        pool = self.hub.kube.get(API_VERSION, KIND, name, SITE_NAMESPACE)
        return [value for allocation in allocations_of(pool).values() for value in allocation.values]

    def play(self, *tasks: Task, **variables: Any) -> Played:
        site = {
            "infrastructure": {
                "network": {"pool": "role-networks", "vlan_pool": "role-vlans"},
                "ingress": {"pool": "role-addresses", "namespace": self.namespace, "metallb_namespace": self.namespace},
                "dns": {
                    "adapter": f"{COLLECTION}.dns_rfc2136",
                    "zone": ZONE,
                    "server": "127.0.0.1",
                    "port": self._port,
                    "secret": "dns-key",
                    "api": ["192.0.2.1"],
                },
            }
        }
        defaults = {"kubeconfig": str(self.hub.kubeconfig)}
        cluster = {"name": "lab", "namespace": self.namespace, "provider": "standalone", "allowed_addresses": ["127.0.0.1"]}
        block: Task = {"name": "Roles", "module_defaults": {f"group/{COLLECTION}.cluster": cluster}, "block": list(tasks)}
        played = play(self._folder, [block], defaults=defaults, cluster_site=site, **variables)
        assert played.code == 0, played.output
        return played

    def delete(self) -> None:
        for item in self._made:
            self.hub.kube.delete(item)


@pytest.fixture
def cluster(hub: Access, namespace: str, tmp_path: Path, server: NameServer) -> Iterator[Cluster]:
    made = Cluster(hub, namespace, tmp_path, server)
    yield made
    made.delete()


@pytest.fixture
def metallb(hub: Access, metallb_crds: list[Object]) -> Iterator[None]:
    """MetalLB's kinds and OpenShift's Route."""
    crds = [*metallb_crds, upstream.route_crd()]
    hub.install_crds(*crds)
    yield
    hub.kubectl("delete", "crd", *(crd["metadata"]["name"] for crd in crds))


def role(name: str, **variables: Any) -> Task:
    return {"name": f"Include {name}", "ansible.builtin.include_role": {"name": name}, "vars": variables}


def parts(played: Played) -> Any:
    return played["Parts"].result["msg"]


ALL = [
    role(f"{COLLECTION}.cluster_network", cluster_network_disjoint_from=["10.200.0.0/24"]),
    role(f"{COLLECTION}.metallb_ingress", metallb_ingress_wildcard_route={"domain": "apps.lab.example.com", "service": "welcome"}),
    role(f"{COLLECTION}.external_access", external_access_addresses={"ingress": "{{ metallb_ingress_result.addresses }}"}),
    PARTS,
]


@pytest.mark.metallb_crds
@pytest.mark.usefixtures("metallb")
def test_a_cluster_has_network_ingress_and_names_and_returns_them(cluster: Cluster, server: NameServer) -> None:
    network = {"name": "Network", "ansible.builtin.debug": {"msg": "{{ cluster_network_result }}"}}
    played = cluster.play(*ALL, network)
    assert {name: (part["ready"], part["reason"]) for name, part in parts(played).items()} == {
        "network": (True, "NetworkAllocated"),
        "ingress": (True, "IngressConfigured"),
        "dns": (True, "RecordsVisible"),
    }
    assert played["Network"].result["msg"]["cidr"] == "10.200.1.0/24" and str(played["Network"].result["msg"]["vlan"]) == "300"
    kube, namespace = cluster.hub.kube, cluster.namespace
    assert kube.get("metallb.io/v1beta1", "IPAddressPool", "ingress", namespace)["spec"]["addresses"] == ["203.0.113.1-203.0.113.1"]
    assert kube.get("metallb.io/v1beta1", "L2Advertisement", "ingress", namespace)["spec"]["ipAddressPools"] == ["ingress"]
    service = kube.get("v1", "Service", "metallb-ingress", namespace)
    assert service["spec"]["type"] == "LoadBalancer" and service["metadata"]["annotations"]["metallb.io/loadBalancerIPs"] == "203.0.113.1"
    assert kube.get("route.openshift.io/v1", "Route", "ingress-wildcard", "default")["spec"]["wildcardPolicy"] == "Subdomain"
    assert server.values("api.lab.example.com") == server.values("api-int.lab.example.com") == {"192.0.2.1"}
    assert server.values("console.apps.lab.example.com") == {"203.0.113.1"}

    again = cluster.play(*ALL)
    assert [name for name, answer in again.answers.items() if answer.changed] == []
    assert server.key not in played.output + again.output

    absent = {f"{name}_state": "absent" for name in ("cluster_network", "metallb_ingress", "external_access")}
    release = {"name": "Release the rest", f"{COLLECTION}.cluster_addresses": {"state": "absent"}}
    cluster.play(*(item | {"vars": absent} for item in reversed(ALL[:3])), release)
    assert [cluster.allocated(f"role-{kind}") for kind in ("networks", "vlans", "addresses")] == [[], [], []]
    assert (
        kube.list_all("metallb.io/v1beta1", "IPAddressPool", namespace) == []
        and kube.find("v1", "Service", "metallb-ingress", namespace) is None
    )
    assert server.values("api.lab.example.com") == server.values("console.apps.lab.example.com") == set()


def test_what_is_not_ready_is_reported_and_not_waited_for(cluster: Cluster, server: NameServer) -> None:
    """An adapter of the site, a cluster without MetalLB, an address that is not known, and DNS that is managed otherwise."""
    network, ingress, access = (f"{COLLECTION}.{name}" for name in ("cluster_network", "metallb_ingress", "external_access"))
    played = cluster.play(
        role(network, cluster_network_settings={"adapter": "switches", "settings": {"done": False}}),
        {"name": "Network", "ansible.builtin.debug": {"msg": "{{ cluster_network_result }}"}},
        PARTS | {"name": "Parts of the network"},
        role(ingress),
        role(access),
        PARTS,
        role(access, external_access_state="absent"),
        role(access, external_access_settings={"adapter": f"{COLLECTION}.dns_none", "ingress": ["192.0.2.2"]}),
        PARTS | {"name": "Parts without DNS"},
        role(network, cluster_network_state="absent", cluster_network_settings={"adapter": "switches", "settings": {"done": False}}),
        PARTS | {"name": "Parts of a removal"},
        {"name": "Keep", f"{COLLECTION}.cluster_addresses": {"pools": [{"name": "role-vlans"}]}},
        {"name": "Release", f"{COLLECTION}.cluster_addresses": {"state": "absent"}},
    )
    assert played["Network"].result["msg"]["bridge"] == "br300"
    configured = {"ready": False, "reason": "SwitchesConfigured", "message": "VLAN 300 has 10.200.0.0/24"}
    assert played["Parts of the network"].result["msg"] == {"network": configured}
    assert parts(played)["ingress"]["reason"] == "MetalLBNotInstalled" and not parts(played)["ingress"]["ready"]
    assert parts(played)["dns"] == {"ready": False, "reason": "AddressesUnknown", "message": "The addresses of *.apps are not known yet"}
    assert played["Parts without DNS"].result["msg"]["dns"]["reason"] == "NotManaged"
    assert played["Parts of a removal"].result["msg"]["network"] == configured, "the adapter knows what it has to remove"
    assert played["Keep"].result["addresses"] == {"role-vlans": ["300"]} and not played["Keep"].changed
    assert server.values("api.lab.example.com") == set() and cluster.allocated("role-addresses") == []
