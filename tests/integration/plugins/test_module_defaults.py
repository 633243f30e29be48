"""The tasks of templates and hooks: the playbooks set the order, its provider and the lock, and a task may name another cluster."""

from __future__ import annotations

from ..support.orders import RELEASE, Orders

# A hook in the working namespace of an order: what it reads is the order's cluster, what it creates is another one.
HOOK = f"""
- name: Read the cluster of the order
  openfleet.clusters.cluster_info:
  register: found

- name: Verify that it is the cluster of the order
  ansible.builtin.assert:
    that: found.cluster.name == cluster_order.metadata.name and found.cluster.provider == cluster_provider

- name: Scale the cluster of the order
  openfleet.clusters.cluster_node_set:
    resource_class: fc640
    nodes: 1

- name: Create another cluster
  openfleet.clusters.cluster:
    name: other
    namespace: "{{{{ cluster_order.metadata.namespace }}}}"
    provider: hypershift
    version: {RELEASE}
    secrets:
      pull_secret: "{{{{ template_parameters.pull_secret }}}}"
"""


def test_tasks_of_a_run_have_the_order_and_may_name_another_cluster(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 1})
    hooks = {"post_install": [orders.role("another", {"tasks/main.yml": HOOK})]}
    orders.play("create_cluster", cluster_hooks=hooks).successful()
    token = f"{orders.group}/lock-token"
    own = orders.hub.get("hostedcluster", "demo", "-n", orders.working())["metadata"]
    other = orders.hub.get("hostedcluster", "other", "-n", orders.namespace)["metadata"]
    assert orders.pools() == {"fc430": 1, "fc640": 1}
    assert own["annotations"][token] == str(orders.lease()["leaseTransitions"])
    # Under a lock of its own, which the task has released.
    lease = orders.lease("other")
    assert other["annotations"][token] == str(lease["leaseTransitions"]) and not lease.get("holderIdentity")
    orders.hub.kubectl("delete", "hostedcluster", "other", "-n", orders.namespace)
