#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_order_prepare
short_description: Prepare cluster orders for a run
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - The first task of a run, for all of its orders at once. It acquires their locks, validates them against their
    templates, adds finalizers, and creates their working namespaces.
  - If no order is named by the arguments or by an event, the task prepares all orders whose next action is O(step).
  - An order that cannot be prepared does not affect the others. The task writes the reason to the order and returns the
    order in RV(skipped_orders).
  - Idempotent. The run holds the locks until it ends, or until M(openfleet.clusters.cluster_order_finish) releases
    them.
options:
  step:
    description: The step of the run. V(delete) also deletes the orders that the arguments name, which their finalizers
      keep until the end. It skips an order of an event that is not being deleted.
    type: str
    choices: [provision, post_install, delete]
    required: true
  wait_timeout:
    description: Seconds to wait for the lock of an order that another run holds. With V(0) the task skips such an
      order.
    type: int
    default: 0
  run_timeout:
    description:
      - Seconds after which the locks of the run are no longer renewed. A run that takes longer and still has locks gets
        SIGTERM, and another one continues.
      - A run that a rules engine on this machine has started also ends with that engine.
    type: int
    default: 7200
  hooks:
    description:
      - Lists of roles that run before and after the templates, by C(pre_install), C(post_install), C(pre_delete) and so
        on.
      - The task does not run them. It skips all orders if Ansible cannot load one of the roles.
    type: dict
    default: {}
  job_id:
    description: ID of the run in the status of the orders. Default is the process ID.
    type: str
  job_url:
    description: URL of the run's output. Default is the page of the job in Automation Platform.
    type: str
seealso:
  - module: openfleet.clusters.cluster_order_finish
attributes:
  check_mode:
    support: full
    details: Validates the orders and predicts the changes. Does not write locks, orders and namespaces.
  diff_mode:
    support: none
    details: The created objects are the same for every order.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.event
  - openfleet.clusters.kubernetes.orders
  - openfleet.clusters.kubernetes.selection
"""

EXAMPLES = r"""
- name: Prepare one order
  openfleet.clusters.cluster_order_prepare:
    step: provision
    name: demo
    namespace: orders
  register: prepared

- name: Show the skipped orders
  ansible.builtin.debug:
    msg: "{{ prepared.skipped_orders | map(attribute='message') }}"

- name: Release the lock of the order
  openfleet.clusters.cluster_order_finish:
    step: provision
    orders: "{{ prepared.orders }}"

- name: Prepare the orders of the event, or all orders to provision
  openfleet.clusters.cluster_order_prepare:
    step: provision
    wait_timeout: 60
  register: of_event

- name: Prepare the orders of the event, or all orders to delete
  openfleet.clusters.cluster_order_prepare:
    step: delete
  register: to_delete
"""

RETURN = r"""
orders:
  description: The prepared orders, each with the variables of its template. Never printed, because they contain
    secrets.
  returned: success
  type: list
  elements: dict
  contains:
    cluster_host:
      description: The name of the host that the order becomes, its namespace and name.
      type: str
      returned: always
      sample: orders/demo
    cluster_order:
      description: The ClusterOrder.
      type: dict
      returned: always
    cluster_working_namespace:
      description: The namespace of all objects of the order.
      type: str
      returned: always
      sample: orders-demo-bt7oormzw2gp
    cluster_template_role:
      description: The role to run.
      type: str
      returned: always, V(null) if the template has no tasks for O(step)
      sample: openfleet.clusters.ocp_4_17_small
    cluster_template_has_post_install:
      description: Whether the template has tasks for C(post_install).
      type: bool
      returned: always
    cluster_provider:
      description: The provider of the cluster.
      type: str
      returned: always
      sample: hypershift
    cluster_kubeconfig:
      description: The kubeconfig of the cluster.
      type: dict
      returned: always, V(null) if O(step) is not V(post_install)
    template_parameters:
      description: The parameters of the order, converted to their types, with the defaults of the template.
      type: dict
      returned: always
    node_requests:
      description: The requested nodes, or the default of the template.
      type: list
      elements: dict
      returned: always
      sample: [{"resourceClass": "fc430", "numberOfNodes": 2}]
    cluster_site:
      description: What the settings of the site have for templates.
      type: dict
      returned: always
      sample:
        agent_namespace: hosts
        classes: {"fc430": {"kind": "agent"}}
        release_images: {"4.17.1": "quay.io/openshift-release-dev/ocp-release:4.17.1-multi"}
        storage_classes: {}
        infrastructure: {}
    cluster_lock:
      description: The lock that the run holds.
      type: dict
      returned: always
    cluster_arguments:
      description: What the modules for one cluster take from the run where a task leaves it out. C(provider), C(lock)
        and the arguments of this task that say where the site has its objects.
      type: dict
      returned: always
    cluster_job:
      description: The run, as in the status of the order.
      type: dict
      returned: always
skipped_orders:
  description: The orders that the run skips.
  returned: success
  type: list
  elements: dict
  contains:
    namespace:
      description: Namespace of the order.
      type: str
      returned: always
      sample: orders
    name:
      description: Name of the order.
      type: str
      returned: always
      sample: demo
    reason:
      description: Reason in one word.
      type: str
      returned: always
      sample: AlreadyRunning
    message:
      description: Reason in a sentence.
      type: str
      returned: always
      sample: The lock of orders/demo is held by demo-local-4711-5d1c0f2e; it is freed when that run ends.
    failed:
      description: Whether the order needs attention.
      type: bool
      returned: always
      sample: false
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import (
    KUBERNETES,
    ORDERS,
    SELECTION,
    Spec,
)

SPEC: Spec = {
    **SELECTION,
    "step": {"type": "str", "choices": ["provision", "post_install", "delete"], "required": True},
    "wait_timeout": {"type": "int", "default": 0},
    "run_timeout": {"type": "int", "default": 7200},
    "hooks": {"type": "dict", "default": {}},
    "job_id": {"type": "str"},
    "job_url": {"type": "str"},
}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC)
