"""The hub of an engine: the event source and all runs use the one that is set for the rulebook."""

from __future__ import annotations

from ansible_collections.openfleet.clusters.extensions.sandbox.access import until

from ..support.engines import Engine, running
from ..support.orders import Orders

# A task in a template of the site. The module gets no connection options, either.
FINISH = """
- name: Get the order
  openfleet.clusters.cluster_order_info:
    name: "{{ cluster_order.metadata.name }}"
    namespace: "{{ cluster_order.metadata.namespace }}"
  register: finished_order
- name: Assert that it exists
  ansible.builtin.assert:
    that: finished_order.orders | length == 1
"""


def test_runs_work_on_the_hub_that_the_source_follows_whatever_the_environment_says(orders: Orders) -> None:
    orders.template("finished", post_install=FINISH)
    elsewhere = {"KUBECONFIG": str(orders.folder / "none")}
    with running(Engine(orders.hub, orders.folder, environment=elsewhere, hub_kubeconfig=str(orders.hub.kubeconfig))) as engine:
        orders.apply("demo", nodes={"fc430": 1}, template="acme.site.finished")
        until(lambda: orders.status("demo").get("phase") == "Ready", f"it is Ready; the log is {engine.log}")
        orders.hub.kubectl("delete", orders.kind, "demo", "-n", orders.namespace, "--wait=false")
        until(lambda: orders.is_deleted("demo"), f"it is deleted; the log is {engine.log}")
