#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_lock_info
short_description: Tell who holds the locks of cluster orders
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Tells of each order's lock who holds it, since when, and until when it lasts unless it is renewed.
  - Without O(name) and O(orders), of all locks that were ever taken, in O(namespace) or everywhere.
options:
  name:
    description: Name of the order, with O(namespace).
    type: str
  namespace:
    description: Namespace of the order, or of the locks to list.
    type: str
  orders:
    description: Several orders, each as C(<namespace>/<name>) or as a dictionary with C(name) and C(namespace).
    type: list
    elements: raw
    default: []
seealso:
  - module: openfleet.clusters.cluster_lock
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
"""

EXAMPLES = r"""
- name: Look at the lock of one order
  openfleet.clusters.cluster_lock_info:
    name: demo
    namespace: orders
  register: lock_info

- name: Tell who works on it
  ansible.builtin.debug:
    msg: "{{ lock_info.locks[0].holder or 'nobody' }} until {{ lock_info.locks[0].expires or 'now' }}"

- name: Look at all locks of a namespace
  openfleet.clusters.cluster_lock_info:
    namespace: orders
  register: all_locks

- name: Tell how many are taken
  ansible.builtin.debug:
    msg: "{{ all_locks.locks | rejectattr('free') | length }}"
"""

RETURN = r"""
locks:
  description: The locks. One that was never taken is free and has the token V(0).
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
      description: Whether anyone may take it, by the API server's own clock.
      type: bool
      returned: always
      sample: false
    holder:
      description: Who holds it, or held it last if it has expired. Empty if it was given back.
      type: str
      returned: always
      sample: local-4711-5d1c0f2e
    token:
      description: The fencing token, which grows with each new holder.
      type: int
      returned: always
      sample: 7
    duration:
      description: After how many seconds without renewal it expires.
      type: int
      returned: always
      sample: 60
    acquired:
      description: When its holder took it. Empty if nobody holds it.
      type: str
      returned: always
      sample: "2025-01-01T12:00:00.000000Z"
    renewed:
      description: When it was renewed last.
      type: str
      returned: always, V(null) if nobody holds it
      sample: "2025-01-01T12:00:20+00:00"
    expires:
      description: When it expires, unless it is renewed.
      type: str
      returned: always, V(null) if nobody holds it
      sample: "2025-01-01T12:01:20+00:00"
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, ORDERS, Spec

SPEC: Spec = {
    "name": {"type": "str"},
    "namespace": {"type": "str"},
    "orders": {"type": "list", "elements": "raw", "default": []},
}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC)
