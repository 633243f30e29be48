#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_order_status
short_description: Bring the status of cluster orders up to date
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Mirrors what HostedClusters and NodePools say into the status of their orders, phase and conditions, for all orders in one task.
  - Run it on a schedule, or whenever a HostedCluster or NodePool has changed.
  - An order whose lock ran out without having been given back has lost its run. That is written on it as a failure, C(RunLost), which
    the next run removes.
  - It takes no lock, because it only says what is there, and writes nothing where nothing has changed.
options:
  name:
    description: Name of the order, with O(namespace).
    type: str
  namespace:
    description: Namespace of the order.
    type: str
  orders:
    description:
      - Several orders, each as C(<namespace>/<name>) or as a dictionary with C(name) and C(namespace).
      - If no order is named in any way, nor by an event, all.
    type: list
    elements: raw
    default: []
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
  - module: openfleet.clusters.cluster_order_info
attributes:
  check_mode:
    support: full
    details: Nothing is written.
  diff_mode:
    support: none
    details: Look at the orders with M(openfleet.clusters.cluster_order_info) before and after.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
"""

EXAMPLES = r"""
- name: Bring one order up to date
  openfleet.clusters.cluster_order_status:
    name: demo
    namespace: orders

- name: Bring the orders of the event that started the run up to date, or without one all
  openfleet.clusters.cluster_order_status:
  register: synced

- name: Show what has changed
  ansible.builtin.debug:
    msg: "{{ synced.orders | selectattr('changed') | items2dict(key_name='name', value_name='phase') }}"
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
      description: Its phase now.
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
    "name": {"type": "str"},
    "namespace": {"type": "str"},
    "orders": {"type": "list", "elements": "raw", "default": []},
    "controller": {"type": "str", "choices": ["self", "external"], "default": "self"},
}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC)
