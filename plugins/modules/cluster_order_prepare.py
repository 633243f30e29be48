#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action: templates and the run that holds the locks are on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_order_prepare
short_description: Take up cluster orders, before their templates run
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - The first task of a run that carries orders out, for all of its orders at once. It takes their locks, checks them against
    their templates, puts finalizers on them, and makes their namespaces with a service account and a role binding.
  - An order that cannot be taken up does not stop the others. It is in RV(skipped_orders), and what is wrong with it is written on it.
  - Can be repeated at any time. The locks last as long as the run, or until M(openfleet.clusters.cluster_order_finish) gives them back.
options:
  step:
    description: What the run is going to do. V(delete) also deletes the orders themselves, which their finalizers keep until the end.
    type: str
    choices: [provision, post_install, delete]
    required: true
  name:
    description: Name of the order, with O(namespace).
    type: str
  namespace:
    description: Namespace of the order.
    type: str
  orders:
    description:
      - Several orders, each as C(<namespace>/<name>) or as a dictionary with C(name) and C(namespace).
      - If no order is named in any way, nor by an event, all whose next action is O(step).
    type: list
    elements: raw
    default: []
  wait_timeout:
    description: For how many seconds to wait for the lock of an order that another run works on. With V(0) such an order is left alone.
    type: int
    default: 0
  hooks:
    description:
      - The roles that the run puts around the templates, in lists by C(pre_install), C(post_install), C(pre_delete) and so on.
      - They are not run here, but read, as the templates are. While Ansible cannot read one of them, no order is taken up.
    type: dict
    default: {}
  job_id:
    description: What the run is called in the status of the orders. Default is the process id of the run.
    type: str
  job_url:
    description: Where people find the run's output. Default is its page in Automation Platform, where it runs there.
    type: str
  controller:
    description:
      - Who plays the controller of orders. With V(external) another one does, which owns the phase of an order, the order's own finalizer,
        and the namespace with the account in it. Then conditions of ours have C(openfleet.clusters/) in front of their names.
    type: str
    choices: [self, external]
    default: self
notes:
  - Where no order is named in the arguments, it is the orders of the event that started the run, which rules engines give in the variable
    C(ansible_eda). An event of this collection names them in C(orders) or C(order). That of a plain webhook holds the ClusterOrder in
    C(payload), and of that only the name and the namespace count.
  - The event is never an argument, because what stands in a payload would then be rendered as a template. Don't pass it on yourself.
seealso:
  - module: openfleet.clusters.cluster_order_finish
attributes:
  check_mode:
    support: full
    details: Reads, checks and predicts. Locks, orders and namespaces stay as they are.
  diff_mode:
    support: none
    details: What is made is the same for every order.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
"""

EXAMPLES = r"""
- name: Take up an order
  openfleet.clusters.cluster_order_prepare:
    step: provision
    name: demo
    namespace: orders
  register: prepared

- name: Show the skipped orders and why
  ansible.builtin.debug:
    msg: "{{ prepared.skipped_orders | map(attribute='message') }}"

- name: Give back what was taken up
  openfleet.clusters.cluster_order_finish:
    step: provision
    orders: "{{ prepared.orders }}"

- name: Take up the orders of the event that started the run, or without one all that are to be carried out
  openfleet.clusters.cluster_order_prepare:
    step: provision
    wait_timeout: 60
  register: of_event

- name: Take up the orders of the event that are to be deleted, or without one all
  openfleet.clusters.cluster_order_prepare:
    step: delete
  register: to_delete
"""

RETURN = r"""
orders:
  description: The orders that are taken up, each with the variables that its template is given. Not shown, because they hold secrets.
  returned: success
  type: list
  elements: dict
  contains:
    cluster_order:
      description: The ClusterOrder, as the API server has it.
      type: dict
      returned: always
    cluster_working_namespace:
      description: The namespace that everything of the order is in.
      type: str
      returned: always
      sample: orders-demo
    cluster_template_role:
      description: The role to run.
      type: str
      returned: always, V(null) if the template has nothing to do in this step
      sample: openfleet.clusters.ocp_4_17_small
    cluster_template_has_post_install:
      description: Whether the template has something to do once the control plane is available.
      type: bool
      returned: always
    cluster_kubeconfig:
      description: How to reach the new cluster.
      type: dict
      returned: always, V(null) if O(step) is not V(post_install)
    template_parameters:
      description: The parameters of the order, typed, with the template's defaults.
      type: dict
      returned: always
    node_requests:
      description: The nodes of the cluster, those of the template where the order has none.
      type: list
      elements: dict
      returned: always
      sample: [{"resourceClass": "fc430", "numberOfNodes": 2}]
    cluster_lock:
      description: The lock that the run holds, whose token goes with every write.
      type: dict
      returned: always
    cluster_job:
      description: The run itself, as the order shows it.
      type: dict
      returned: always
skipped_orders:
  description: The orders that are not taken up.
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
      description: Why, in one word.
      type: str
      returned: always
      sample: AlreadyRunning
    message:
      description: Why, in a sentence.
      type: str
      returned: always
      sample: The lock of orders/demo is held by demo-local-4711-5d1c0f2e; it is freed when that run ends.
    failed:
      description: Whether somebody has to do something about it.
      type: bool
      returned: always
      sample: false
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, ORDERS, Spec

SPEC: Spec = {
    "step": {"type": "str", "choices": ["provision", "post_install", "delete"], "required": True},
    "name": {"type": "str"},
    "namespace": {"type": "str"},
    "orders": {"type": "list", "elements": "raw", "default": []},
    "wait_timeout": {"type": "int", "default": 0},
    "hooks": {"type": "dict", "default": {}},
    "job_id": {"type": "str"},
    "job_url": {"type": "str"},
    "controller": {"type": "str", "choices": ["self", "external"], "default": "self"},
}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC)
