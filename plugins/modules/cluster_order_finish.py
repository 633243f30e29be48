#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_order_finish
short_description: Finish the run of cluster orders
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - The last task of a run, for all of its orders at once. It writes the status of the orders, continues deletions, and
    releases the locks.
  - With O(failure) it writes the failure to the orders, releases the locks, and fails with that message.
options:
  step:
    description: The step of the run.
    type: str
    choices: [provision, post_install, delete]
    required: true
  orders:
    description: The orders, from RV(openfleet.clusters.cluster_order_prepare#module:orders).
    type: list
    elements: dict
    required: true
  skipped_orders:
    description:
      - The skipped orders, from RV(openfleet.clusters.cluster_order_prepare#module:skipped_orders).
      - If one of them is C(failed), the task fails after it has finished its own orders.
    type: list
    elements: dict
    default: []
  failure:
    description: The failure of the run.
    type: dict
    suboptions:
      task:
        description: Name of the failed task.
        type: str
        required: true
      error:
        description: Message of the failed task.
        type: raw
        required: true
      reason:
        description:
          - Reason in one word, the C(reason) of a failed module of this collection. Default is V(TaskFailed).
          - After V(Invalid) and V(NotSupported) the order waits for a change of its spec. After other reasons it is
            retried.
        type: str
  infrastructure:
    description:
      - The parts of the infrastructure that the roles of the templates have reported, by C(<namespace>/<name>) of the
        order and then by the name of the part, for example C(hosts).
      - Each part has C(ready), C(reason) and C(message). While one is not ready, its step runs again.
    type: dict
    default: {}
  wait_timeout:
    description:
      - Seconds to wait until the orders are ready, failed or deleted. Do not use it in jobs, which should end early.
      - With V(0) the task writes the current status and does not wait.
    type: int
    default: 0
seealso:
  - module: openfleet.clusters.cluster_order_prepare
attributes:
  check_mode:
    support: full
    details: The task writes nothing and does not wait.
  diff_mode:
    support: none
    details: Compare the orders with M(openfleet.clusters.cluster_order_info).
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
"""

EXAMPLES = r"""
- name: Run one step of an order
  module_defaults:
    group/openfleet.clusters.cluster:
      cluster_order: "{{ prepared.orders[0].cluster_order }}"
      provider: "{{ prepared.orders[0].cluster_provider }}"
    group/openfleet.clusters.cluster_write:
      lock: "{{ prepared.orders[0].cluster_lock }}"
  block:
    - name: Lock, validate and prepare the order
      openfleet.clusters.cluster_order_prepare:
        step: provision
        name: demo
        namespace: orders
      register: prepared

    - name: Run the template
      ansible.builtin.include_role:
        name: "{{ prepared.orders[0].cluster_template_role }}"
        tasks_from: install
      vars:
        cluster_order: "{{ prepared.orders[0].cluster_order }}"
        cluster_working_namespace: "{{ prepared.orders[0].cluster_working_namespace }}"
        template_parameters: "{{ prepared.orders[0].template_parameters }}"
        node_requests: "{{ prepared.orders[0].node_requests }}"
        cluster_site: "{{ prepared.orders[0].cluster_site }}"
  rescue:
    - name: Write the failure, release the lock and fail
      openfleet.clusters.cluster_order_finish:
        step: provision
        orders: "{{ prepared.orders }}"
        failure:
          task: "{{ ansible_failed_task.name }}"
          error: "{{ ansible_failed_result.msg }}"

- name: Write the status and release the lock
  openfleet.clusters.cluster_order_finish:
    step: provision
    orders: "{{ prepared.orders }}"
"""

RETURN = r"""
orders:
  description: The orders after the task.
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
    phase:
      description: Phase of the order. V(Deleted) if the order is deleted.
      type: str
      returned: always
      sample: Progressing
    changed:
      description: Whether the task changed the status.
      type: bool
      returned: always
      sample: true
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, ORDERS, Spec

SPEC: Spec = {
    "step": {"type": "str", "choices": ["provision", "post_install", "delete"], "required": True},
    "orders": {"type": "list", "elements": "dict", "required": True, "no_log": True},
    "skipped_orders": {"type": "list", "elements": "dict", "default": []},
    "failure": {
        "type": "dict",
        "options": {
            "task": {"type": "str", "required": True},
            "error": {"type": "raw", "required": True},
            "reason": {"type": "str"},
        },
    },
    "infrastructure": {"type": "dict", "default": {}},
    "wait_timeout": {"type": "int", "default": 0},
}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC)
