"""What Cluster API is installed from: its own manifests, led from services of a cluster to webhooks on this machine."""

from __future__ import annotations

import base64
import copy
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.capi_manifests import cluster_class, led_to, of_in_memory
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

URL = "https://127.0.0.1:1234"
SERVICE = {"namespace": "system", "name": "webhook-service"}
LED = {"caBundle": base64.b64encode(b"authority").decode()}


def definition(plural: str, conversion: Object | None = None) -> Object:
    spec: Object = {"group": "example.test", "names": {"plural": plural}, "versions": []}
    return {
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.test"},
        "spec": spec | ({"conversion": conversion} if conversion else {}),
    }


def webhooks(*resources: str) -> Object:
    return {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "validating-webhook-configuration"},
        "webhooks": [
            {"name": f"{each}.test", "clientConfig": {"service": SERVICE | {"path": f"/{each}"}}, "rules": [{"resources": [each]}]}
            for each in resources
        ],
    }


BY_WEBHOOK = {"strategy": "Webhook", "webhook": {"clientConfig": {"service": SERVICE | {"path": "/convert"}}}}


def test_each_webhook_is_called_at_its_path_on_the_url() -> None:
    (configuration,) = led_to([webhooks("clusters", "machines")], "core", URL, b"authority")
    assert [each["clientConfig"] for each in configuration["webhooks"]] == [
        LED | {"url": f"{URL}/clusters"},
        LED | {"url": f"{URL}/machines"},
    ]


def test_configurations_of_two_managers_have_different_names() -> None:
    names = [led_to([webhooks("clusters")], manager, URL, b"")[0]["metadata"]["name"] for manager in ("core", "kubeadm")]
    assert names == ["core-validating-webhook-configuration", "kubeadm-validating-webhook-configuration"]


def test_conversion_is_led_to_the_url_and_a_definition_keeps_its_name() -> None:
    (crd,) = led_to([definition("clusters", BY_WEBHOOK)], "core", URL, b"authority")
    assert crd["spec"]["conversion"]["webhook"]["clientConfig"] == LED | {"url": f"{URL}/convert"}
    assert crd["metadata"]["name"] == "clusters.example.test"


def test_a_definition_without_conversion_stays_as_it_is() -> None:
    for conversion in (None, {"strategy": "None"}):
        plain = definition("clusters", conversion)
        assert led_to([plain], "core", URL, b"") == [plain]


def test_what_was_read_is_not_changed() -> None:
    read = [webhooks("clusters"), definition("clusters", BY_WEBHOOK)]
    before = copy.deepcopy(read)
    led_to(of_in_memory(read), "core", URL, b"authority")
    assert read == before


def test_nothing_about_containers_is_left_for_the_in_memory_provider() -> None:
    read = [definition("dockerclusters"), definition("devclusters"), webhooks("dockermachines", "devmachines")]
    assert of_in_memory(read) == [definition("devclusters"), webhooks("devmachines")]


def test_the_class_refers_only_to_templates_that_come_with_it() -> None:
    *templates, made = cluster_class("somewhere")
    assert {each["metadata"]["namespace"] for each in (*templates, made)} == {"somewhere"}
    there = {(each["apiVersion"], each["kind"], each["metadata"]["name"]) for each in templates}
    assert references(made) == there


def references(value: Any) -> set[tuple[str, str, str]]:
    """Every templateRef below the value."""
    if isinstance(value, list):
        return set().union(*map(references, value))
    if not isinstance(value, dict):
        return set()
    own = {(to["apiVersion"], to["kind"], to["name"])} if (to := value.get("templateRef")) else set()
    return own.union(*map(references, value.values()))
