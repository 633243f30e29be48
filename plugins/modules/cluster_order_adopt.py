#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_order_adopt
short_description: Adopt the clusters of restored orders
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Gives an order the cluster of an earlier order with the same namespace and name. Use it after a restore from a
    backup, which gives each order a new uid.
  - An order never gets the cluster of another order by itself. Until it is adopted, the order fails with
    C(NamespaceTaken).
  - Labels the working namespace, the Secrets and the objects of the cluster with the uid of the order, under the lock
    of the order. Gives the order the hosts and the addresses of its cluster. Changes nothing else.
  - The next run of the template moves the DNS records of the cluster to the order.
  - Name the orders. Verify that each is a restored order and not a new one of another tenant.
options: {}
seealso:
  - module: openfleet.clusters.cluster_order_info
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
  - openfleet.clusters.kubernetes.selection
"""

EXAMPLES = r"""
- name: Adopt the cluster of a restored order
  openfleet.clusters.cluster_order_adopt:
    name: demo
    namespace: orders

- name: Read the orders of a restored namespace
  openfleet.clusters.cluster_order_info:
    namespace: orders
  register: restored

- name: Adopt their clusters
  openfleet.clusters.cluster_order_adopt:
    orders: "{{ restored.orders | map(attribute='metadata') }}"
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
    changed:
      description: Whether the task changed an object of the order.
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
