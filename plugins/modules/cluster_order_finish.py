#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_order_finish
short_description: Put down cluster orders, after their templates have run
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - The last task of a run that carries orders out, for all of its orders at once. It writes their status, goes on with deletions
    as far as they go, and gives back the locks.
  - With O(failure) it writes why the run failed, gives back the locks, and fails itself with that message, so that the run does not
    look as if all were well.
options:
  step:
    description: What the run has done.
    type: str
    choices: [provision, post_install, delete]
    required: true
  orders:
    description: The orders, as RV(openfleet.clusters.cluster_order_prepare#module:orders) has them.
    type: list
    elements: dict
    required: true
  skipped_orders:
    description:
      - The orders that the run skipped, as RV(openfleet.clusters.cluster_order_prepare#module:skipped_orders) has them.
      - The task fails after it has finished its own orders if one of these is C(failed).
    type: list
    elements: dict
    default: []
  failure:
    description: Why the run failed, if it did.
    type: dict
    suboptions:
      task:
        description: Name of the task that failed.
        type: str
        required: true
      error:
        description: What it said.
        type: raw
        required: true
      reason:
        description:
          - Why, in one word, as a failed module of this collection has it in C(reason). Default is V(TaskFailed).
          - After V(Invalid) and V(NotSupported) the order waits until it is changed. After all others it is tried again by itself.
        type: str
  wait_timeout:
    description:
      - For how many seconds to go on looking until the orders are ready, failed or gone. For people at a terminal.
      - With V(0) the status is what it is now, and whoever watches the clusters goes on.
    type: int
    default: 0
  controller:
    description:
      - Who plays the controller of orders. With V(external) another one does, which owns the phase of an order, the order's own finalizer,
        and the namespace with the account in it. Then conditions of ours have C(openfleet.clusters/) in front of their names.
    type: str
    choices: [self, external]
    default: self
seealso:
  - module: openfleet.clusters.cluster_order_prepare
attributes:
  check_mode:
    support: full
    details: Nothing is written, and nothing is waited for.
  diff_mode:
    support: none
    details: A status has no state to compare with.
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
  description: What has become of the orders.
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
      description: Its phase now. V(Gone) if the order is deleted and nothing is left.
      type: str
      returned: always
      sample: Progressing
    changed:
      description: Whether its status was changed.
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
    "wait_timeout": {"type": "int", "default": 0},
    "controller": {"type": "str", "choices": ["self", "external"], "default": "self"},
}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC)
