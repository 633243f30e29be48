#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action: who renews the lock has to live as long as the run, on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_lock
short_description: Take or give back the lock of cluster orders
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Whoever changes the cluster of an order holds the order's lock. The playbooks of this collection take it themselves;
    this module is for playbooks of your own that work on a cluster and must not meet them.
  - The lock is a C(Lease) in the order's namespace. It is renewed for as long as the run lives, however long its tasks take,
    and expires within O(duration) after a run that was killed.
  - Give it back in the C(always) section of a block, as the first example shows.
options:
  state:
    description:
      - V(acquired) takes the locks, all of them or none. It fails if another run holds one.
      - V(released) gives them back. A lock that is not held by O(holder) is left as it is, and that is no failure.
    type: str
    choices: [acquired, released]
    default: acquired
  name:
    description: Name of the order, with O(namespace).
    type: str
  namespace:
    description: Namespace of the order.
    type: str
  orders:
    description: Several orders, each as C(<namespace>/<name>) or as a dictionary with C(name) and C(namespace).
    type: list
    elements: raw
    default: []
  holder:
    description:
      - Who holds the lock. Whoever says the same is the same holder, so let nobody else use it.
      - Without it, one is made that is the same in all tasks of this run for this host, and that no other run has.
    type: str
  wait_timeout:
    description: For how many seconds to wait for locks that others hold. With V(0) the task fails at once.
    type: int
    default: 0
  duration:
    description: After how many seconds without renewal the lock expires, 3 at least. It is renewed every third of that.
    type: int
    default: 60
notes:
  - Taking a lock that this holder has already changes nothing and keeps its token. Two nested blocks of one run share one lock,
    and the inner one gives it back.
  - In check mode nothing is written, and the token is the one that the lock would have.
seealso:
  - module: openfleet.clusters.cluster_lock_info
attributes:
  check_mode:
    support: full
    details: Tells whether the locks could be taken or given back.
  diff_mode:
    support: none
    details: A lock has no content to compare.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
"""

EXAMPLES = r"""
- name: Work on a cluster while nobody else does
  block:
    - name: Take the lock
      openfleet.clusters.cluster_lock:
        name: demo
        namespace: orders
        wait_timeout: 300
      register: cluster_lock

    - name: Do something that takes its time
      ansible.builtin.debug:
        msg: Writes of this run carry the token {{ cluster_lock.token }}.
  always:
    - name: Give back the lock
      openfleet.clusters.cluster_lock:
        state: released
        name: demo
        namespace: orders

- name: Take the locks of several orders, all or none
  openfleet.clusters.cluster_lock:
    orders:
      - orders/demo
      - name: second
        namespace: orders
    holder: maintenance
    duration: 30

- name: Give them back, in another run maybe
  openfleet.clusters.cluster_lock:
    state: released
    orders: [orders/demo, orders/second]
    holder: maintenance
"""

RETURN = r"""
holder:
  description: Who holds the locks, or has held them.
  returned: success
  type: str
  sample: local-4711-5d1c0f2e
locks:
  description: The locks that are held now, sorted by namespace and name.
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
      description: Who holds the lock.
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
      description: When it was taken. Empty in check mode.
      type: str
      returned: always
      sample: "2025-01-01T12:00:00.000000Z"
    version:
      description: Version of the C(Lease) when this was told. Empty in check mode.
      type: str
      returned: always
      sample: "1234"
lock:
  description: The only one of RV(locks), as O(openfleet.clusters.cluster#module:lock) takes it.
  returned: O(state=acquired) of one order
  type: dict
  contains: *lock
token:
  description: The token of the only lock.
  returned: O(state=acquired) of one order
  type: int
  sample: 7
released:
  description: The orders whose locks were given back, as C(<namespace>/<name>).
  returned: O(state=released)
  type: list
  elements: str
  sample: [orders/demo]
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, ORDERS, Spec

SPEC: Spec = {
    "state": {"type": "str", "choices": ["acquired", "released"], "default": "acquired"},
    "name": {"type": "str"},
    "namespace": {"type": "str"},
    "orders": {"type": "list", "elements": "raw", "default": []},
    "holder": {"type": "str"},
    "wait_timeout": {"type": "int", "default": 0},
    "duration": {"type": "int", "default": 60},
}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC)
