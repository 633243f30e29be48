#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: s3_lock
short_description: Take, give back or look at the lease of a placement in an S3 bucket
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Whoever acts on a placement control of several clusters leads under an epoch, a number that only grows. The lease in the bucket
    says who that is.
  - The event source C(openfleet.clusters.s3_coordination) holds leases for as long as it runs, and is what a site uses. This module is
    for people and playbooks that have to lead for a short time, and for looking.
  - A module ends with its task, so nothing renews the lease. It lasts O(ttl), and the holder has to stop acting a third of that before
    its end. Taking it again until then, on the same machine, renews it under the same epoch. Later, or on another machine, where nobody
    knows how old it is, it is a new term under a new epoch.
  - Before a new term it proves that the store honours conditional writes, by the requests of M(openfleet.clusters.s3_coordination_check).
    To renew the lease or to give it back, it proves that none are lost on the way to the store. Otherwise nothing is written.
  - Whether a silent holder is gone shows only after its lease was seen unchanged for its whole duration, so O(wait_timeout) has to be
    longer than that to take over from one that died.
options:
  state:
    description:
      - V(acquired) takes the lease, or renews it if this holder has it already and may act still. It seals the state with the new epoch, as
        every new leader does. It fails if somebody else leads.
      - V(released) gives it back for the next; the epoch stays. A lease that is not of this holder is left as it is, and that is no
        failure.
      - V(seen) only tells who leads.
    type: str
    choices: [acquired, released, seen]
    default: acquired
  holder:
    description:
      - Who leads. Whoever says the same is the same holder, so let nobody else use it.
      - Without it, one is made that is the same in all tasks of this run for this host, and that no other run has.
    type: str
  ttl:
    description: For how many seconds the lease lasts without renewal, 3 at least.
    type: float
    default: 30
  wait_timeout:
    description: For how many seconds to wait for the lease. With V(0) the task fails at once if somebody else leads.
    type: float
    default: 0
seealso:
  - module: openfleet.clusters.s3_state
attributes:
  check_mode:
    support: full
    details: Tells whether the lease could be taken or given back. What has to be waited for is taken to end in time.
  diff_mode:
    support: none
    details: A lease has no content to compare.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.s3
  - openfleet.clusters.s3.place
"""

EXAMPLES = r"""
- name: Lead for a short time
  block:
    - name: Take the lease
      openfleet.clusters.s3_lock:
        bucket: agreements
        namespace: shop
        name: database
        ttl: 300
        wait_timeout: 60
      register: lease

    - name: Write down how far it is, under the epoch
      openfleet.clusters.s3_state:
        bucket: agreements
        namespace: shop
        name: database
        epoch: "{{ lease.epoch }}"
        step: Inspected
  always:
    - name: Give back the lease
      openfleet.clusters.s3_lock:
        bucket: agreements
        namespace: shop
        name: database
        state: released

- name: Look who leads
  openfleet.clusters.s3_lock:
    bucket: agreements
    namespace: shop
    name: database
    state: seen
  register: seen

- name: Tell who leads
  ansible.builtin.debug:
    msg: "{{ seen.lock.holder or 'nobody' }}, the last epoch was {{ seen.epoch }}"
"""

RETURN = r"""
lock:
  description: The lease as it is now.
  returned: success
  type: dict
  contains:
    holder:
      description: Who leads. Empty if nobody does.
      type: str
      returned: always
      sample: east
    instance:
      description: Which process of the holder.
      type: str
      returned: always
      sample: east-5d1c0f2e8a7b6c4d
    epoch:
      description: The epoch of who leads, or led last. V(0) if nobody ever did.
      type: int
      returned: always
      sample: 7
    ttl:
      description: For how many seconds it lasts without renewal.
      type: float
      returned: always
      sample: 30.0
    acquired:
      description: When it was taken, on the holder's clock. For people to read; nothing is decided by it.
      type: str
      returned: always
      sample: "2025-01-01T12:00:00.000+00:00"
    machine:
      description: Which machine the holder runs on, since which start of it. Empty if nobody leads.
      type: str
      returned: always
      sample: 0d3c4f8e-5a41-4d5b-9d0c-2f6f4c1b7a90
    stops:
      description:
        - Until when the holder was sure to lead when it wrote this, in seconds since that start. A task on the same machine renews the
          lease until then. To other machines it says nothing.
      type: float
      returned: always
      sample: 86420.5
epoch:
  description: The same as RV(lock.epoch).
  returned: success
  type: int
  sample: 7
acting_seconds:
  description: For how many seconds the holder may act from now, unless it renews. V(0) in check mode.
  returned: O(state=acquired)
  type: float
  sample: 199.9
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import PLACE, S3, Spec

SPEC: Spec = PLACE | {
    "state": {"type": "str", "choices": ["acquired", "released", "seen"], "default": "acquired"},
    "holder": {"type": "str"},
    "ttl": {"type": "float", "default": 30},
    "wait_timeout": {"type": "float", "default": 0},
}

if __name__ == "__main__":
    main(S3 | SPEC)
