#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: s3_decision
short_description: Read or write the decision for a workload in an S3 bucket
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - The decision is part of the state, and one write changes both. The task then publishes it in an object of its own,
    C(decision), for readers that need nothing else.
  - Without O(decision) the task reads. If a leader died before it published its decision, the next leader or the next
    write publishes it.
  - Before it writes, the task checks with four requests that conditions reach the store. Otherwise nothing is written.
options:
  decision:
    description: The new decision. It replaces the whole decision.
    type: dict
  step:
    description: The step that the workload has reached, written together with the decision.
    type: str
seealso:
  - module: openfleet.clusters.s3_state
attributes:
  check_mode:
    support: full
    details: Checks epoch and revision, and returns what the task would write.
  diff_mode:
    support: full
    details: Shows the decision before and after.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.s3
  - openfleet.clusters.s3.workload
  - openfleet.clusters.s3.state_write
"""

EXAMPLES = r"""
- name: Acquire the lease
  openfleet.clusters.s3_lock:
    bucket: coordination
    namespace: shop
    name: database
    holder: maintenance
  register: lease

- name: Decide, and record the step
  openfleet.clusters.s3_decision:
    bucket: coordination
    namespace: shop
    name: database
    epoch: "{{ lease.epoch }}"
    decision:
      cluster: west
    step: Completed

- name: Release the lease
  openfleet.clusters.s3_lock:
    bucket: coordination
    namespace: shop
    name: database
    holder: maintenance
    state: released

- name: Read the decision
  openfleet.clusters.s3_decision:
    bucket: coordination
    namespace: shop
    name: database
  register: current

- name: Show where the workload runs
  ansible.builtin.debug:
    msg: "{{ current.decision.cluster | default('not decided') }}"
"""

RETURN = r"""
decision:
  description: The decision in the state, which is the source of truth. Empty if there was none yet.
  returned: success
  type: dict
  sample: {cluster: west}
epoch:
  description: The epoch that the state is sealed with.
  returned: success
  type: int
  sample: 7
revision:
  description: The revision of the state.
  returned: success
  type: int
  sample: 23
published:
  description: Whether the object C(decision) has the same decision.
  returned: success
  type: bool
  sample: true
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import S3, STATE_WRITE, WORKLOAD, Spec

SPEC: Spec = (
    WORKLOAD
    | STATE_WRITE
    | {
        "decision": {"type": "dict"},
        "step": {"type": "str"},
    }
)
RULES = {"required_by": {"decision": ("epoch",), "step": ("decision",), "expected_revision": ("decision",)}}

if __name__ == "__main__":
    main(S3 | SPEC, RULES)
