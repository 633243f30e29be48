"""Clusters that exist already: what the provider reports, what it refuses, and how a playbook adopts and releases one."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.api_proxy import ApiProxy
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_backend import NONE, kubeconfig_for
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import connections, transport
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.allowed_addresses import AllowedAddresses
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import AddressNotAllowed, BadCredentials, Invalid, NotFound
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import NoSuchCluster, NotSupported, ProviderError
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import (
    AVAILABLE,
    DEGRADED,
    ClusterRequest,
    NodeRequest,
    NodeSet,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.standalone import CLUSTER_ID, ClusterProvider

from ..support.playbooks import Task, play, task
from .test_conformance_standalone import LOST, NEXT_TOKEN, TOKEN, Standalone

CONFIGURATION: dict[str, tuple[str, Object]] = {
    "Infrastructure": (
        "cluster",
        {"status": {"apiServerURL": "https://api.demo.example.com:6443", "platformStatus": {"type": "AWS", "aws": {"region": "eu-1"}}}},
    ),
    "ClusterVersion": (
        "version",
        {"status": {"history": [{"state": "Partial", "version": "4.17.2"}, {"state": "Completed", "version": "4.17.1"}]}},
    ),
    "Console": ("cluster", {"status": {"consoleURL": "https://console.apps.demo.example.com"}}),
    "DNS": ("cluster", {"spec": {"baseDomain": "demo.example.com"}}),
    "Ingress": ("cluster", {"spec": {"domain": "apps.demo.example.com"}}),
}
PLURALS = {
    "Infrastructure": "infrastructures",
    "ClusterVersion": "clusterversions",
    "Console": "consoles",
    "DNS": "dnses",
    "Ingress": "ingresses",
}


@pytest.fixture
def backend(hub: Access, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standalone]:
    monkeypatch.setattr(transport, "FIRST_WAIT", 0.001)
    with ApiProxy(hub.kubeconfig, tmp_path).open() as proxy:
        made = Standalone(hub, namespace, proxy)
        with made.undo:
            yield made


@pytest.fixture
def openshift(backend: Standalone) -> Iterator[None]:
    """OpenShift's configuration, in CRDs that let everything through."""
    kube, definitions = backend.kube, []
    for kind, plural in PLURALS.items():
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        spec = {
            "group": "config.openshift.io",
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        }
        metadata = {"name": f"{plural}.config.openshift.io"}
        crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec}
        definitions.append(kube.create(crd))

    def filled() -> bool:
        try:
            for kind, (name, content) in CONFIGURATION.items():
                kube.apply({"apiVersion": "config.openshift.io/v1", "kind": kind, "metadata": {"name": name}, **content})
        except NotFound:
            return False
        return True

    until(filled, "OpenShift's kinds are served")
    yield
    for definition in definitions:
        kube.delete(definition)


def label_node(backend: Standalone, labels: dict[str, str], provider_id: str = "") -> None:
    spec = {"spec": {"providerID": provider_id}} if provider_id else {}
    backend.kube.patch(backend.node, {"metadata": {"labels": labels}, **spec}, checked=False)


# What is reported


def test_cloud_region_and_classes_are_read_from_the_nodes(backend: Standalone) -> None:
    second = backend.kube.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"{backend.namespace}-2"}})
    backend.undo.callback(backend.kube.delete, second)
    label_node(backend, {"topology.kubernetes.io/region": "eu-1", "topology.kubernetes.io/zone": "a"}, "aws:///eu-1/i-1")
    zone = {"topology.kubernetes.io/zone": "b", "node.kubernetes.io/instance-type": "m5.large"}
    backend.kube.patch(second, {"metadata": {"labels": zone}}, checked=False)
    backend.create()
    label_node(backend, {"openfleet.clusters/resource-class": "fc430"})
    backend.advance("demo")
    observed = backend.provider().status(NONE)
    assert (observed.cloud_provider, observed.region, observed.multi_az) == ("aws", "eu-1", True)
    expected = (NodeSet("fc430", "fc430", 1, 1, preexisting=True), NodeSet("m5.large", "m5.large", 1, 0, preexisting=True))
    assert observed.node_sets == expected
    assert (observed.status, observed.api_url) == ("cluster_provisioned", backend.server)
    assert observed.status_details == f"1 of 2 nodes are ready: {backend.namespace}-2 is not (no reason reported)"
    assert observed.version.startswith("v1.")
    assert observed.external_id == backend.kube.get("v1", "Namespace", "kube-system")["metadata"]["uid"]
    assert backend.provider().node_sets(NONE) == observed.node_sets
    with pytest.raises(ProviderError, match=r"demo does not report the domain of its applications"):
        backend.provider().dns(NONE)


@pytest.mark.usefixtures("openshift")
def test_openshift_configuration_wins_over_the_nodes(backend: Standalone) -> None:
    observed = backend.ready()
    assert (observed.cloud_provider, observed.region, observed.version) == ("aws", "eu-1", "4.17.1")
    assert (observed.api_url, observed.console_url) == ("https://api.demo.example.com:6443", "https://console.apps.demo.example.com")
    assert backend.provider().dns(observed) == "apps.demo.example.com"
    backend.kube.delete({"apiVersion": "config.openshift.io/v1", "kind": "Ingress", "metadata": {"name": "cluster"}})
    assert backend.provider().dns(observed) == "demo.example.com"


def test_lost_node_degrades_the_cluster_and_its_return_makes_it_ready(backend: Standalone) -> None:
    backend.ready()
    backend.fail("demo")
    backend.advance("demo")
    observed = backend.provider().status(NONE)
    assert observed.is_true(AVAILABLE)
    assert observed.is_true(DEGRADED)
    assert LOST in observed.conditions[DEGRADED].message
    backend.failed = False
    backend.advance("demo")
    observed = backend.provider().status(NONE)
    assert (observed.status, observed.is_true(DEGRADED)) == ("ready", False)


def test_cluster_that_is_down_is_unavailable_and_one_that_refuses_us_is_not_called_so(backend: Standalone) -> None:
    made = backend.ready()
    _replace_kubeconfig(backend, kubeconfig_for(f"http://127.0.0.1:{free_port()}", token=TOKEN))
    down = backend.provider().status(made)
    assert (down.status, down.conditions[AVAILABLE].status, down.retryable, down.installed) == ("cluster_provisioning", "False", True, True)
    assert "does not answer" in down.status_details
    _provider, request = backend.refused()
    _replace_kubeconfig(backend, yaml.safe_load(request.secrets["kubeconfig"]))
    refused = backend.provider().status(made)
    assert (refused.status, refused.conditions[AVAILABLE].status, refused.retryable) == ("failed", "Unknown", False)
    assert "does not accept the credentials" in refused.status_details
    assert down.external_id == refused.external_id == made.external_id


def test_kubeconfig_is_replaced_and_its_version_changes(backend: Standalone) -> None:
    backend.create()
    first = backend.provider().kubeconfig(NONE)
    backend.provider().update(NONE, backend.changed_request())
    second = backend.provider().kubeconfig(NONE)
    assert first.version != second.version
    assert TOKEN in json.dumps(first.content)
    assert NEXT_TOKEN in json.dumps(second.content)


# What is refused


def test_without_a_kubeconfig_nothing_is_done_and_it_is_said_what_to_do(backend: Standalone) -> None:
    with pytest.raises(ProviderError, match=r"creates no clusters, it adopts existing ones: set secrets.kubeconfig"):
        backend.provider().create(backend.asked(ClusterRequest()))
    for call in ("kubeconfig", "dns"):
        with pytest.raises(NoSuchCluster, match=rf"There is no kubeconfig of demo, no Secret {backend.namespace}/demo-kubeconfig"):
            getattr(backend.provider(), call)(NONE)
    with pytest.raises(NoSuchCluster):
        backend.provider().update(NONE, backend.request())
    with pytest.raises(NoSuchCluster):
        backend.provider().remove_resources(NONE, "base")


@pytest.mark.parametrize(
    ("requested", "called"),
    [
        ({"version": "4.17"}, "a choice of the version"),
        ({"node_requests": [NodeRequest("fc430", 2)]}, "a change of the number of nodes"),
        ({"cloud_provider": "aws"}, "a choice of the cloud provider"),
        ({"region": "eu-1"}, "a choice of the region"),
        ({"multi_az": True}, "a choice of availability zones"),
    ],
)
def test_request_to_change_an_adopted_cluster_is_not_supported(backend: Standalone, requested: dict[str, Any], called: str) -> None:
    request = ClusterRequest(**requested, secrets=backend.request().secrets)
    with pytest.raises(NotSupported, match=rf"The provider standalone does not support {called}"):
        backend.provider().create(request)
    assert backend.provider().status(NONE).is_absent
    backend.create()
    with pytest.raises(NotSupported, match=called):
        backend.provider().update(NONE, request)


@pytest.mark.parametrize("given", ["", "hunter2: [", "hunter2", ["hunter2"], {"users": "hunter2"}, {"clusters": "hunter2"}])
def test_what_is_no_kubeconfig_is_refused_and_not_shown(backend: Standalone, given: Any) -> None:
    with pytest.raises(BadCredentials) as caught:
        backend.provider().create(ClusterRequest(secrets={"kubeconfig": given}))
    assert "hunter2" not in str(caught.value)
    assert backend.provider().status(NONE).is_absent


def test_kubeconfig_that_would_run_a_program_here_is_refused(backend: Standalone, tmp_path: Path) -> None:
    plugin = {"command": "touch", "args": [str(tmp_path / "ran")]}
    with pytest.raises(BadCredentials, match=r"runs a command to log in, which is refused"):
        backend.provider().create(ClusterRequest(secrets={"kubeconfig": kubeconfig_for(backend.server, exec=plugin)}))
    backend.create()
    _replace_kubeconfig(backend, kubeconfig_for(backend.server, exec=plugin))
    assert "runs a command" in backend.provider().status(NONE).status_details
    assert not (tmp_path / "ran").exists()


def test_kubeconfig_of_another_cluster_is_refused(backend: Standalone) -> None:
    backend.create()
    secret = backend.kube.get("v1", "Secret", "demo-kubeconfig", backend.namespace)
    backend.kube.patch(secret, {"metadata": {"annotations": {CLUSTER_ID: "4711"}}})
    with pytest.raises(ProviderError, match=r"is of another cluster .* than demo \(id 4711\).*only its kubeconfig is deleted"):
        backend.provider().update(NONE, backend.changed_request())
    assert not backend.has_changed("demo")


def test_secret_that_was_spoiled_says_what_to_do(backend: Standalone) -> None:
    backend.create()
    for data, said in (({"kubeconfig": "aHVudGVyMg=="}, "has no kubeconfig in the key"), ({"kubeconfig": None}, "has no key kubeconfig")):
        backend.kube.patch(backend.kube.get("v1", "Secret", "demo-kubeconfig", backend.namespace), {"data": data})
        observed = backend.provider().status(NONE)
        assert (observed.status, observed.retryable) == ("failed", False)
        assert said in observed.status_details
        with pytest.raises(BadCredentials, match=said):
            backend.provider().kubeconfig(NONE)
    backend.provider().update(NONE, backend.request())
    assert backend.ready().status == "ready"


def test_unknown_secret_is_refused(backend: Standalone) -> None:
    with pytest.raises(Invalid, match=r"kubconfig.*did you mean kubeconfig"):
        backend.asked(ClusterRequest(secrets={"kubconfig": {}}))


def _replace_kubeconfig(backend: Standalone, content: Object) -> None:
    secret = backend.kube.get("v1", "Secret", "demo-kubeconfig", backend.namespace)
    backend.kube.patch(secret, {"data": {"kubeconfig": base64.b64encode(json.dumps(content).encode()).decode()}})


# Addresses that a tenant names


def test_cluster_at_an_address_that_the_site_does_not_list_is_neither_asked_nor_shown(backend: Standalone) -> None:
    backend.create()
    provider = ClusterProvider(replace(backend.provider().ref, allowed_addresses=AllowedAddresses()))
    with pytest.raises(AddressNotAllowed, match=r"does not allow connections to 127\.0\.0\.1: ask its operator to add it"):
        provider.update(NONE, backend.changed_request())
    assert not backend.has_changed("demo")
    observed = provider.status(NONE)
    assert (observed.status, observed.retryable, observed.conditions[AVAILABLE].reason) == ("failed", False, "AddressNotAllowed")
    for use in (provider.kubeconfig, provider.dns, lambda spec: provider.remove_resources(spec, "a")):
        with pytest.raises(AddressNotAllowed):
            use(NONE)


def test_kubeconfig_for_a_template_has_the_address_that_was_checked(backend: Standalone, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client of the template asks the tenant's DNS again, and by then the name may have an address inside of the site."""
    backend.create()
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])
    monkeypatch.setattr(connections, "resolve", lambda host, *_: next(answers) if host == "api.tenant.example" else [host])
    _replace_kubeconfig(backend, kubeconfig_for("https://api.tenant.example:6443", token=TOKEN))
    [entry] = backend.provider().kubeconfig(NONE).content["clusters"]
    assert (entry["cluster"]["server"], entry["cluster"]["tls-server-name"]) == ("https://127.0.0.1:6443", "api.tenant.example")
    with pytest.raises(AddressNotAllowed):
        backend.provider().kubeconfig(NONE)


def test_what_a_server_calls_its_things_is_shown_only_if_it_is_a_name(backend: Standalone) -> None:
    backend.advance("demo")
    ready = {"type": "Ready", "status": "False", "reason": "hunter2 <b>"}
    backend.kube.patch(backend.node, {"status": {"conditions": [ready]}}, subresource="status", checked=False)
    backend.create()
    assert "(no reason reported)" in backend.provider().status(NONE).status_details


# By playbooks


def test_playbook_adopts_equips_and_releases_a_cluster(backend: Standalone, hub: Access, namespace: str, tmp_path: Path) -> None:
    backend.advance("demo")
    quota = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "motd", "namespace": namespace}, "data": {"text": "Welcome"}}

    def on(module: str, called: str, /, *, check: bool = False, **arguments: Any) -> Task:
        return task(module, called, check=check, name="demo", namespace=namespace, provider="standalone", **arguments)

    given: dict[str, Any] = {"secrets": {"kubeconfig": "{{ its_kubeconfig }}"}}
    wanted: dict[str, Any] = {"resource_set": namespace, "resources": [quota]}
    tasks = [
        on("cluster", "without a kubeconfig"),
        on("cluster_info", "no kubeconfig, no cluster", with_kubeconfig=True),
        on("cluster", "predict", check=True, **given),
        on("cluster", "adopt", wait=True, wait_timeout=60, **given),
        on("cluster", "adopt again", **given),
        on("cluster_info", "see"),
        on("cluster_resources", "predict the objects", check=True, **wanted),
        on("cluster_resources", "equip", **wanted),
        on("cluster_resources", "equip again", **wanted),
        on("cluster_node_set", "scale", resource_class="fc430", nodes=3),
        on("cluster_resources", "delete the objects", state="absent", resource_set=namespace),
        on("cluster", "release", state="absent"),
        on("cluster", "release again", state="absent"),
    ]
    secrets = {"its_kubeconfig": yaml.safe_dump(backend.request().secrets["kubeconfig"])}
    played = play(tmp_path, tasks, defaults={"kubeconfig": str(hub.kubeconfig), "allowed_addresses": ["127.0.0.1"]}, secrets=secrets)
    assert "it adopts existing ones" in played["without a kubeconfig"].message
    assert "There is no kubeconfig of demo" in played["no kubeconfig, no cluster"].message
    assert "standalone does not support a change of the number of nodes" in played["scale"].message
    changed = {name: answer.changed for name, answer in played.answers.items() if not answer.failed}
    assert [name for name, is_changed in changed.items() if is_changed] == [
        "predict",
        "adopt",
        "predict the objects",
        "equip",
        "delete the objects",
        "release",
    ]
    assert played["see"].result["cluster"]["status"] == "ready"
    assert played["equip"].result["objects"] == [{"kind": "ConfigMap", "name": "motd", "action": "created"}]
    assert played["delete the objects"].result["deleted"]
    assert played["release"].result["deleted"]
    assert TOKEN not in played.output
    assert backend.kube.find("v1", "Node", namespace), "the cluster itself stays"
