#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_lock
short_description: Acquire or release the lock of cluster orders
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - A run that changes the cluster of an order holds the lock of the order. The playbooks of this collection acquire it.
    Use this module in playbooks of your own that change a cluster.
  - The lock is a C(Lease) in O(site_namespace). The controller renews it while the run is alive, for at most two hours.
    After a killed run it expires within O(duration).
  - Release the lock in the C(always) section of a block, as the first example does.
options:
  state:
    description:
      - V(acquired) acquires all locks or none. It fails if another run holds one of them.
      - V(released) releases the locks that O(holder) holds, and ignores the others.
    type: str
    choices: [acquired, released]
    default: acquired
  holder:
    description:
      - Identity of the holder. Runs with the same identity share the lock.
      - Default is an identity that all tasks of this run for this host have, and no other run.
    type: str
  wait_timeout:
    description: Seconds to wait for locks that other runs hold. With V(0) the task fails at once.
    type: int
    default: 0
  duration:
    description: Seconds after which the lock expires without renewal, at least 3. It is renewed three times as often.
    type: int
    default: 60
notes:
  - Acquiring a lock that the holder has changes nothing and keeps its token. Nested blocks of one run share one lock,
    which the inner block releases.
  - In check mode the token is the one that the lock would have.
seealso:
  - module: openfleet.clusters.cluster_lock_info
attributes:
  check_mode:
    support: full
    details: Predicts whether the locks can be acquired or released.
  diff_mode:
    support: none
    details: A lock has no content to compare.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
  - openfleet.clusters.kubernetes.selection
"""

EXAMPLES = r"""
- name: Change a cluster under its lock
  block:
    - name: Acquire the lock
      openfleet.clusters.cluster_lock:
        name: demo
        namespace: orders
        wait_timeout: 300
      register: cluster_lock

    - name: Change the cluster
      ansible.builtin.debug:
        msg: Writes of this run carry the token {{ cluster_lock.token }}.
  always:
    - name: Release the lock
      openfleet.clusters.cluster_lock:
        state: released
        name: demo
        namespace: orders

- name: Acquire the locks of several orders, all or none
  openfleet.clusters.cluster_lock:
    orders:
      - orders/demo
      - name: second
        namespace: orders
    holder: maintenance
    duration: 30

- name: Release the locks of several orders
  openfleet.clusters.cluster_lock:
    state: released
    orders: [orders/demo, orders/second]
    holder: maintenance
"""

RETURN = r"""
holder:
  description: Identity of the holder.
  returned: success
  type: str
  sample: local-4711-5d1c0f2e
locks:
  description: The acquired locks, sorted by namespace and name.
  returned: O(state=acquired)
  type: list
  elements: dict
  contains: &lock
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
    holder:
      description: Identity of the holder.
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
      description: Time at which the lock was acquired. Empty in check mode.
      type: str
      returned: always
      sample: "2025-01-01T12:00:00.000000Z"
    version:
      description: Resource version of the C(Lease) at that time. Empty in check mode.
      type: str
      returned: always
      sample: "1234"
    site:
      description: Namespace of the C(Lease).
      type: str
      returned: always
      sample: openfleet-system
lock:
  description: The only lock in RV(locks), a value for O(openfleet.clusters.cluster#module:lock).
  returned: O(state=acquired) of one order
  type: dict
  contains: *lock
token:
  description: The token of the only lock.
  returned: O(state=acquired) of one order
  type: int
  sample: 7
released:
  description: The orders whose locks were released, as C(<namespace>/<name>).
  returned: O(state=released)
  type: list
  elements: str
  sample: [orders/demo]
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, ORDERS, SELECTION, Spec

SPEC: Spec = {
    **SELECTION,
    "state": {"type": "str", "choices": ["acquired", "released"], "default": "acquired"},
    "holder": {"type": "str"},
    "wait_timeout": {"type": "int", "default": 0},
    "duration": {"type": "int", "default": 60},
}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC)
