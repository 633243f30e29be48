"""Orders that cannot be reconciled, and steps that fail: one message for people, from the run and on the order, and nothing half-made."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import prepare
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.status_writer import StatusWriter

from ..support.in_process import act
from ..support.orders import GROUP, Orders

LONG = "x" * 200_000
BAD: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "unknown template": ({"template": "ocp_4_17_smal"}, "UnknownTemplate", ["ocp_4_17_smal", "ocp_4_17_small"]),
    "template of another collection": ({"template": "acme.none.small"}, "UnknownTemplate", ["acme.none.small"]),
    "wrong type": ({"base_domain": ["a"]}, "InvalidOrder", ["base_domain"]),
    "wrong choice": ({"control_plane_availability": "Often"}, "InvalidOrder", ["Often", "SingleReplica", "HighlyAvailable"]),
    "unknown parameter": ({"relase_image": "x"}, "InvalidOrder", ["relase_image", "release_image"]),
    "missing parameter": ({"template": "existing_cluster"}, "InvalidOrder", ["kubeconfig"]),
    "version without an image": ({"version": "4.1.0"}, "InvalidOrder", ["4.1.0", "no release image; it has 4.17.0, 4.17.1, 4.17.2"]),
    "namespace of a Secret": (
        {"pull_secret": {"secretRef": {"name": "a", "key": "b", "namespace": "c"}}},
        "InvalidOrder",
        ["parameter pull_secret.secretRef cannot name a namespace"],
    ),
    "not JSON": ({"raw_parameters": '{"pull_secret": oops}'}, "InvalidOrder", ["JSON"]),
    "not one JSON object": ({"raw_parameters": '{"a": 1} {"b": 2}'}, "InvalidOrder", ["JSON"]),
    "disallowed class": ({"nodes": {"gpu9000": 1}}, "InvalidOrder", ["gpu9000", "fc430, fc640, fc830"]),
    "too many nodes": ({"nodes": {"fc430": 2_000_000_000}}, "InvalidOrder", ["2000000000", "1000"]),
    "several mistakes": ({"base_domain": 1, "nope": 1, "nodes": {"tiny": 5000}}, "InvalidOrder", ["nope", "tiny", "5000"]),
    "a very long parameter": ({LONG: LONG[:10]}, "InvalidOrder", ["xxx"]),
    "a very long value": ({"control_plane_availability": LONG}, "InvalidOrder", ["control_plane_availability"]),
}


def test_orders_that_do_not_fit_their_template_are_refused_before_anything_is_created(orders: Orders) -> None:
    """All in one run, with a good one among them: its cluster is created whatever is wrong with the others."""
    names = {case: f"bad-{number}" for number, case in enumerate(BAD)}
    for case, (order, _reason, _words) in BAD.items():
        orders.apply(names[case], **order)
    orders.apply("good", nodes={"fc430": 1})
    run = orders.run("provision", *names.values(), "good").complete()
    assert not run.is_successful
    for case, (_order, reason, words) in BAD.items():
        name = names[case]
        status, accepted = orders.status(name), orders.condition("Accepted", name)
        message = status["failure"]["message"]
        assert (status["phase"], status["failure"]["reason"]) == ("Failed", reason), case
        assert status["failure"]["retryable"] is False and "nextAttempt" not in status["failure"], case
        assert (accepted["status"], accepted["message"]) == ("False", message), case
        assert not [word for word in words if word not in message] and len(message) < 1500, (case, message)
        assert message in run.messages, case
        assert orders.hub.get("namespace", orders.working(name)) is None, case
        assert "finalizers" not in orders.get(name)["metadata"], case
        assert "holderIdentity" not in orders.lease(name), case
    assert orders.names("good") and orders.status("good")["phase"] in ("Progressing", "Ready")


def test_an_error_of_any_kind_while_an_order_is_prepared_or_finished_ends_on_it(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(order: Any, *_given: Any, **_named: Any) -> Any:
        if order.name == "bad":
            raise RecursionError("hunter2")

    orders.apply("bad", nodes={"fc430": 1})
    orders.apply("good", nodes={"fc430": 1})
    with monkeypatch.context() as patched:
        check = prepare.Preparation._check  # noqa: SLF001 - the first that reads the parameters
        patched.setattr(prepare.Preparation, "_check", lambda self, order: broken(order) or check(self, order))
        run = orders.run("provision", "bad", "good").complete()
    failure = orders.status("bad")["failure"]
    assert (failure["reason"], failure["retryable"]) == ("Unexpected", True)
    assert "An unexpected RecursionError at line" in failure["message"]
    assert "hunter2" not in run.messages + failure["message"]
    assert orders.names("good") and "failure" not in orders.status("good")
    assert "holderIdentity" not in orders.lease("bad")
    with monkeypatch.context() as patched:
        write = StatusWriter.write
        patched.setattr(StatusWriter, "write", lambda self, order, *given, **named: broken(order) or write(self, order, *given, **named))
        run = orders.run("provision", "bad", "good").complete()
        answer = orders.sync("bad", "good")
    assert "An unexpected RecursionError" in run.messages
    assert "bad: An unexpected RecursionError" in answer["msg"]
    assert [report["name"] for report in answer["orders"]] == ["good"]
    assert "holderIdentity" not in orders.lease("bad")


@pytest.mark.parametrize(
    "order",
    [
        {"nodes": {"fc430": 0}},
        {"nodes": {"fc430": -1}},
        {"nodes": {"fc430": 2**31}},
        {"nodes": {"": 1}},
        {"raw_parameters": "[]"},
        {"raw_parameters": "not JSON"},
        {"raw_parameters": json.dumps({"pull_secret": "x" * 300_000})},
        {"template": "no/template"},
        {"name": "a" * 64},
        {"name": "Demo"},
    ],
    ids=["zero", "negative", "huge", "no class", "list", "no JSON", "300 kB", "template", "long name", "capital"],
)
def test_what_no_order_may_hold_is_refused_by_the_api_itself(orders: Orders, order: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=r"invalid|Too long|too long|Invalid"):
        orders.apply(**order)


def test_an_order_with_a_name_of_63_characters_is_provisioned_and_deleted(orders: Orders) -> None:
    name = "a" + "-" * 61 + "z"
    orders.apply(name, nodes={"fc430": 1})
    orders.provision(name)
    assert len(orders.working(name)) <= 63
    orders.remove(name)
    assert orders.is_deleted(name)


def test_an_order_that_is_corrected_is_provisioned(orders: Orders) -> None:
    orders.apply(nodes={"gpu9000": 1})
    assert not orders.run("provision", "demo").is_successful
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    assert "failure" not in orders.status() and orders.condition("Accepted")["status"] == "True"


def test_an_invalid_change_leaves_the_running_cluster_as_it_is(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    orders.apply(nodes={"gpu9000": 1})
    assert not orders.run("provision", "demo").is_successful
    assert orders.status()["phase"] == "Failed"
    assert orders.pools() == {"fc430": 1}


def test_attempts_are_counted_until_one_succeeds(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 1})
    for attempt in (1, 2):
        orders.run("provision", "demo").fail("demo", "Ask the inventory of the site", "It has no rack 7.").finish()
        status = orders.status()
        failure = status["failure"]
        assert (status["phase"], failure["task"], failure["attempts"]) == ("Failed", "Ask the inventory of the site", attempt)
        assert failure["retryable"] and failure["nextAttempt"] and failure["message"].endswith("It has no rack 7.")
        assert orders.condition("TemplateApplied")["status"] == "False"
        assert "holderIdentity" not in orders.lease()
    orders.provision()
    assert "failure" not in orders.status()


def test_an_api_server_that_does_not_answer_is_one_clear_message(orders: Orders) -> None:
    config = yaml.safe_load(orders.hub.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    for module, step in (("cluster_order_prepare", {"step": "delete"}), ("cluster_order_status", {})):
        named = {"name": "demo", "namespace": orders.namespace, "kubeconfig": config}
        answer = act(module, named | step)
        said = str(answer.get("msg")) + str(answer.get("skipped_orders"))
        assert "https://127.0.0.1:9" in said and "Traceback" not in said, answer


def test_an_order_that_does_not_exist_is_named(orders: Orders) -> None:
    run = orders.run("provision", "absent")
    assert not run.is_successful and f"There is no ClusterOrder {orders.namespace}/absent." in run.messages
    assert not orders.lease("absent")


@pytest.mark.parametrize("state", ["unmanaged", "manual"])
def test_orders_that_are_not_managed_are_skipped(orders: Orders, state: str) -> None:
    orders.apply(nodes={"fc430": 1}, annotations={f"{GROUP}/management-state": state})
    before = orders.get()
    run = orders.provision(wait=0)
    assert state in run.messages and run.changed == 0
    assert orders.get() == before and not orders.lease()
    orders.sync("demo")
    assert ("status" in orders.get()) == (state == "manual")
    assert orders.hub.get("namespace", orders.working()) is None


def test_a_failure_that_only_a_change_of_the_order_fixes_is_not_retried(orders: Orders) -> None:
    install = """
- name: Ask for what the provider does not know
  openfleet.clusters.cluster:
    cluster_order: "{{ cluster_order }}"
    lock: "{{ cluster_lock }}"
    settings: {nonsense: "{{ template_parameters.base_domain }}"}
"""
    orders.apply(template=orders.template("nonsense", install=install), nodes={"fc430": 1}, base_domain="example.com")
    assert not orders.run("provision", "demo").complete().is_successful
    failure = orders.status()["failure"]
    assert (failure["reason"], failure["retryable"], failure["task"]) == ("Invalid", False, "Ask for what the provider does not know")
    assert "nonsense" in failure["message"] and "nextAttempt" not in failure
    assert f"{orders.namespace}/demo" not in names(orders)


def names(orders: Orders) -> list[str]:
    """The orders that a run without names would work on."""
    metadata = [order["cluster_order"]["metadata"] for order in orders.run("provision", check=True).orders]
    return [f"{item['namespace']}/{item['name']}" for item in metadata]


def test_an_order_stays_until_a_hook_that_failed_after_its_cluster_was_deleted_has_succeeded(orders: Orders) -> None:
    """Say, a hook that returns addresses: nothing else would ever run it again."""
    orders.apply(nodes={"fc430": 1})
    orders.provision()

    def fails() -> bool:
        """A run of the deletion, after whose template the hook fails; whether the cluster is deleted by then."""
        run = orders.run("delete", "demo", job_id="4712").run_templates().fail("demo", "Return the addresses", "They are in use.").finish()
        assert not run.is_successful
        return orders.hosted_cluster() is None

    until(fails, "the cluster is deleted")
    assert fails() and orders.get(), "the next run finds the cluster deleted, and fails as well"
    status = orders.status()
    assert (status["failure"]["task"], status["job"]["id"]) == ("Return the addresses", "4712")
    assert orders.hub.get("namespace", orders.working())
    orders.remove()
    until(orders.is_deleted, "the order is deleted")


# Which orders a run is for


def test_events_and_webhooks_name_orders(orders: Orders) -> None:
    for name in ("one", "two", "three"):
        orders.apply(name)
    for event in (
        {"action": "provision", "order": {"namespace": orders.namespace, "name": "one"}},
        {"action": "provision", "orders": [{"namespace": orders.namespace, "name": "two", "uid": "of an earlier order of that name"}]},
        {"action": "provision", "orders": [{"namespace": orders.namespace, "name": "two", "uid": orders.get("two")["metadata"]["uid"]}]},
        {"payload": orders.get("three"), "meta": {"endpoint": "create-hosted-cluster"}},
    ):
        orders.run("provision", event=event, job_id="4711", job_url="https://aap.example.com/4711").complete().successful()
        if "of an earlier" in str(event):
            assert orders.status("two") == {}
    for name in ("one", "two", "three"):
        orders.until_phase("Ready", name)
        job = orders.status(name)["job"]
        assert (job["id"], job["url"]) == ("4711", "https://aap.example.com/4711") and job["startedAt"]


def test_a_payload_that_names_no_order_is_refused(orders: Orders) -> None:
    for payload in ({}, {"metadata": {"name": "../../secrets", "namespace": "kube-system"}}, {"metadata": {"name": "demo"}}):
        run = orders.run("provision", event={"payload": payload})
        assert not run.is_successful and "An order is named by its name and its namespace" in run.messages


def test_a_run_without_names_works_on_all_that_need_it(orders: Orders) -> None:
    orders.apply("one")
    orders.apply("two")
    orders.provision("two")
    assert [name for name in names(orders) if name.startswith(orders.namespace)] == [f"{orders.namespace}/one"]
    orders.run("provision").complete().successful()
    orders.until_phase("Ready", "one")


def test_a_late_run_skips_another_order_of_that_name(orders: Orders) -> None:
    """An event to delete a deleted order must not delete the next one of that name."""
    orders.apply()
    before = orders.get()
    metadata = {"namespace": orders.namespace, "name": "demo", "uid": "of-the-one-before"}
    for event in ({"action": "delete", "orders": [metadata]}, {"payload": {"metadata": metadata}}):
        run = orders.run("delete", event=event).complete().successful()
        assert "There is no ClusterOrder" in run.messages and orders.get() == before


def test_an_event_deletes_only_an_order_that_is_being_deleted(orders: Orders) -> None:
    """Who can send webhooks can write anything into one. A person at a terminal names the order."""
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    metadata = orders.get()["metadata"]
    name = {"namespace": orders.namespace, "name": "demo"}
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    forged: list[dict[str, Any]] = [
        {"payload": {"metadata": metadata | deleted}},
        {"payload": {"metadata": name | deleted}},
        {"action": "delete", "order": name | {"uid": metadata["uid"]}},
        {"action": "delete", "orders": [name]},
    ]
    for event in forged:
        for check in (True, False):
            run = orders.run("delete", event=event, check=check).complete().successful()
            assert "an event does not delete it" in run.messages and not run.orders
    assert "deletionTimestamp" not in orders.get()["metadata"] | orders.hosted_cluster()["metadata"]
    assert orders.get()["metadata"]["finalizers"] == metadata["finalizers"] and "holderIdentity" not in orders.lease()
    orders.ask_to_delete()
    orders.run("delete", event=forged[1]).complete().successful()
    until(lambda: orders.hosted_cluster() is None, "the cluster is deleted")
    orders.remove()
