"""The Events of orders on a real API server: kubectl shows them, a repeated one is counted, and none is needed."""

from __future__ import annotations

import logging

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.event_recorder import WARNING, Event, EventRecorder

from ..support.orders import Orders


def events(orders: Orders) -> dict[str, tuple[str, int]]:
    """Type and count of the Events about the order, by reason."""
    found = orders.kube.list_all("v1", "Event", orders.namespace, field_selector="involvedObject.name=demo")
    return {item["reason"]: (item["type"], item["count"]) for item in found}


def test_kubectl_describe_tells_the_story_of_an_order(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 1}, size=7)  # no such parameter
    for _attempt in range(2):
        orders.run("provision", "demo").complete()
    refused = orders.status()["failure"]["reason"]
    assert events(orders)[refused] == ("Warning", 2)
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    shown = orders.hub.kubectl("describe", orders.kind, "demo", "-n", orders.namespace).stdout.partition("Events:")[2]
    story = [refused, "(x2 over", "Retry", "Accepted", "NamespaceCreated", "ControlPlaneCreated", "TemplateApplied", "Ready"]
    assert [word for word in story if word not in shown] == []
    before = events(orders)
    orders.run("provision", "demo").complete()
    orders.sync("demo")
    assert events(orders) == before, "a run that changes nothing writes no Event"


def test_an_account_that_may_not_write_events_works_as_well(orders: Orders, caplog: pytest.LogCaptureFixture) -> None:
    orders.apply()
    tenant = Kube.connect({"kubeconfig": str(orders.hub.kubeconfig), "impersonate_user": "unprivileged"})
    with caplog.at_level(logging.WARNING):
        EventRecorder(tenant).record(orders.get(), [Event("Reason", "message", WARNING)])
    assert 'cannot create resource "events"' in caplog.text


def test_an_event_about_an_object_without_a_namespace_is_counted_too(orders: Orders) -> None:
    namespace = orders.kube.get("v1", "Namespace", orders.namespace)
    for _each in range(3):
        EventRecorder(orders.kube).record(namespace, [Event("Reason", "x" * 2000)])
    found = orders.kube.list_all("v1", "Event", "default", field_selector=f"involvedObject.name={orders.namespace}")
    assert [(item["count"], len(item["message"])) for item in found] == [(3, 1024)]
