#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_order_status
short_description: Update the status of cluster orders
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Updates phase and conditions of orders from the state of their clusters, for all orders in one task.
  - If no order is named by the arguments or by an event, the task updates all orders.
  - If the lock of an order has expired without a release, the run of the order was lost. The task writes the failure
    C(RunLost), which the next run removes.
  - Acquires no lock, because it only reports. Writes nothing if nothing has changed.
options: {}
seealso:
  - module: openfleet.clusters.cluster_order_info
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: Compare the orders with M(openfleet.clusters.cluster_order_info).
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.event
  - openfleet.clusters.kubernetes.orders
  - openfleet.clusters.kubernetes.selection
"""

EXAMPLES = r"""
- name: Update one order
  openfleet.clusters.cluster_order_status:
    name: demo
    namespace: orders

- name: Update the orders of the event, or all orders
  openfleet.clusters.cluster_order_status:
  register: synced

- name: Show the orders that have changed
  ansible.builtin.debug:
    msg: "{{ synced.orders | selectattr('changed') | items2dict(key_name='name', value_name='phase') }}"
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
      description: Phase of the order.
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
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import (
    KUBERNETES,
    ORDERS,
    SELECTION,
    Spec,
)

SPEC: Spec = SELECTION

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC)
