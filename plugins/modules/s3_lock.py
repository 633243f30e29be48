#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: s3_lock
short_description: Acquire, release or read the lease of a workload in an S3 bucket
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - The cluster that acts on a workload leads under an epoch, a number that only grows. The lease in the bucket says
    which holder leads.
  - A site uses the event source C(openfleet.clusters.s3_coordination), which holds leases while it runs. This module is
    for people and playbooks that lead for a short time, and for reading the lease.
  - Nothing renews the lease after the task. It lasts O(ttl), and the holder must stop acting a third of that before its
    end. Until then, acquiring it again on the same machine renews it under the same epoch. Later, or on another
    machine, that begins a new term under a new epoch, because the age of the lease is not known there.
  - Before a new term, the task runs the checks of M(openfleet.clusters.s3_coordination_check). Before it renews or
    releases the lease, it checks with four requests that conditions reach the store. If a check fails, nothing is
    written.
  - A dead holder shows only after its lease was observed unchanged for its whole duration. To take over from one, set
    O(wait_timeout) to more than that.
options:
  state:
    description:
      - V(acquired) acquires the lease, or renews it if this holder has it and may still act. It seals the state with
        the epoch, as each new leader does. It fails while another holder leads.
      - V(released) releases the lease; its epoch stays. A lease of another holder is not changed, and the task does not
        fail.
      - V(observed) only returns which holder leads.
    type: str
    choices: [acquired, released, observed]
    default: acquired
  holder:
    description:
      - The name of the holder. Tasks with the same name are the same holder, so use a unique name.
      - Defaults to a name that all tasks of this run on this host share, and no other run has.
    type: str
  ttl:
    description: Duration of the lease without renewal, in seconds. At least 3.
    type: float
    default: 30
  wait_timeout:
    description: How many seconds to wait for the lease. With V(0) the task fails at once while another holder leads.
    type: float
    default: 0
seealso:
  - module: openfleet.clusters.s3_state
attributes:
  check_mode:
    support: full
    details:
      - Returns whether the task would acquire or release the lease. It assumes that a lease to wait for is free in
        time.
  diff_mode:
    support: none
    details: A lease has no content to compare.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.s3
  - openfleet.clusters.s3.workload
"""

EXAMPLES = r"""
- name: Lead for a short time
  block:
    - name: Acquire the lease
      openfleet.clusters.s3_lock:
        bucket: coordination
        namespace: shop
        name: database
        ttl: 300
        wait_timeout: 60
      register: lease

    - name: Record the step under the epoch
      openfleet.clusters.s3_state:
        bucket: coordination
        namespace: shop
        name: database
        epoch: "{{ lease.epoch }}"
        step: Inspected
  always:
    - name: Release the lease
      openfleet.clusters.s3_lock:
        bucket: coordination
        namespace: shop
        name: database
        state: released

- name: Read the lease
  openfleet.clusters.s3_lock:
    bucket: coordination
    namespace: shop
    name: database
    state: observed
  register: current

- name: Show the leader
  ansible.builtin.debug:
    msg: "{{ current.lock.holder or 'no leader' }}, the last epoch was {{ current.epoch }}"
"""

RETURN = r"""
lock:
  description: The lease as it is now.
  returned: success
  type: dict
  contains:
    holder:
      description: The leader. Empty if there is none.
      type: str
      returned: always
      sample: east
    instance:
      description: The process of the holder.
      type: str
      returned: always
      sample: east-5d1c0f2e8a7b6c4d
    epoch:
      description: The epoch of the current or last leader. V(0) if there never was one.
      type: int
      returned: always
      sample: 7
    ttl:
      description: Duration of the lease without renewal, in seconds.
      type: float
      returned: always
      sample: 30.0
    acquired_at:
      description: When the holder acquired the lease, on its clock. For people to read; no decision depends on it.
      type: str
      returned: always
      sample: "2025-01-01T12:00:00.000+00:00"
    boot_id:
      description: The boot of the machine that the holder runs on. Empty if there is no leader.
      type: str
      returned: always
      sample: 0d3c4f8e-5a41-4d5b-9d0c-2f6f4c1b7a90
    deadline:
      description:
        - When the holder must stop acting, in seconds since that boot, as known when it wrote the lease. A task on the
          same machine can renew the lease until then. The value has no meaning on other machines.
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
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import S3, WORKLOAD, Spec

SPEC: Spec = WORKLOAD | {
    "state": {"type": "str", "choices": ["acquired", "released", "observed"], "default": "acquired"},
    "holder": {"type": "str"},
    "ttl": {"type": "float", "default": 30},
    "wait_timeout": {"type": "float", "default": 0},
}

if __name__ == "__main__":
    main(S3 | SPEC)
