#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_lock_info
short_description: Get the locks of cluster orders
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Returns the holder of each lock, when it was acquired, and when it expires without renewal.
  - Without O(name) and O(orders), returns all locks in O(namespace), or of the whole hub.
options: {}
seealso:
  - module: openfleet.clusters.cluster_lock
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
  - openfleet.clusters.kubernetes.selection
"""

EXAMPLES = r"""
- name: Get the lock of one order
  openfleet.clusters.cluster_lock_info:
    name: demo
    namespace: orders
  register: lock_info

- name: Show its holder
  ansible.builtin.debug:
    msg: "{{ lock_info.locks[0].holder or 'free' }} until {{ lock_info.locks[0].expires or 'now' }}"

- name: Get all locks of a namespace
  openfleet.clusters.cluster_lock_info:
    namespace: orders
  register: all_locks

- name: Count the locks that are held
  ansible.builtin.debug:
    msg: "{{ all_locks.locks | rejectattr('free') | length }}"
"""

RETURN = r"""
locks:
  description: The locks. A lock that was never acquired is free and has the token V(0).
  returned: success
  type: list
  elements: dict
  contains:
    namespace:
      description: Namespace of the order.
      type: str
      returned: always
      sample: orders
    order:
      description: Name of the order.
      type: str
      returned: always
      sample: demo
    free:
      description: Whether the lock can be acquired, by the clock of the API server.
      type: bool
      returned: always
      sample: false
    holder:
      description: Identity of the holder, or of the last holder if the lock has expired. Empty if the lock was
        released.
      type: str
      returned: always
      sample: local-4711-5d1c0f2e
    token:
      description: Fencing token. It increases with every new holder.
      type: int
      returned: always
      sample: 7
    duration:
      description: Seconds after which the lock expires without renewal.
      type: int
      returned: always
      sample: 60
    acquired:
      description: Time at which the holder acquired the lock. Empty without a holder.
      type: str
      returned: always
      sample: "2025-01-01T12:00:00.000000Z"
    renewed:
      description: Time of the last renewal.
      type: str
      returned: always, V(null) without a holder
      sample: "2025-01-01T12:00:20+00:00"
    expires:
      description: Time at which the lock expires without renewal.
      type: str
      returned: always, V(null) without a holder
      sample: "2025-01-01T12:01:20+00:00"
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, ORDERS, SELECTION, Spec

SPEC: Spec = SELECTION

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC)
