#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: s3_state
short_description: Read or write the state of a workload in an S3 bucket
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - The state is the source of truth for a workload. It holds the intent, the decision and the current step.
  - Without O(intent) and O(step) the task reads the state. Otherwise it writes, under the epoch of the leader and only
    if the state has not changed since.
  - Each revision is kept in the history, see M(openfleet.clusters.s3_history_info). Use
    M(openfleet.clusters.s3_decision) to write the decision.
  - Before it writes, the task checks with four requests that conditions reach the store. Otherwise nothing is written.
options:
  intent:
    description: What is wanted. It replaces the whole intent.
    type: dict
  step:
    description: The step that the workload has reached.
    type: str
seealso:
  - module: openfleet.clusters.s3_decision
  - module: openfleet.clusters.s3_history_info
attributes:
  check_mode:
    support: full
    details: Checks epoch and revision, and returns what the task would write.
  diff_mode:
    support: full
    details: Shows the state before and after.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.s3
  - openfleet.clusters.s3.workload
  - openfleet.clusters.s3.state_write
"""

EXAMPLES = r"""
- name: Read the state
  openfleet.clusters.s3_state:
    bucket: coordination
    namespace: shop
    name: database
  register: current

- name: Acquire the lease
  openfleet.clusters.s3_lock:
    bucket: coordination
    namespace: shop
    name: database
    holder: maintenance
  register: lease

- name: Write the intent, if the state has not changed since
  openfleet.clusters.s3_state:
    bucket: coordination
    namespace: shop
    name: database
    epoch: "{{ lease.epoch }}"
    expected_revision: "{{ current.state.revision + 1 }}"
    intent:
      action: Failover
      cluster: west
    step: Initiating

- name: Release the lease
  openfleet.clusters.s3_lock:
    bucket: coordination
    namespace: shop
    name: database
    holder: maintenance
    state: released
"""

RETURN = r"""
state:
  description: The current state.
  returned: success
  type: dict
  contains:
    intent:
      description: What is wanted.
      type: dict
      returned: always
      sample: {action: Failover, cluster: west}
    decision:
      description: What was decided.
      type: dict
      returned: always
      sample: {cluster: west}
    step:
      description: The step that the workload has reached.
      type: str
      returned: always
      sample: WaitForReadiness
    epoch:
      description: The epoch that the state is sealed with.
      type: int
      returned: always
      sample: 7
    revision:
      description: Grows with each write. V(0) if the state was never written.
      type: int
      returned: always
      sample: 23
    leader:
      description: The instance that sealed the state.
      type: str
      returned: always
      sample: east-5d1c0f2e8a7b6c4d
    writer:
      description: The process that wrote this revision.
      type: str
      returned: always
      sample: local-4711-5d1c0f2e
    written_at:
      description: When, on the writer's clock. For people to read; no decision depends on it.
      type: str
      returned: always
      sample: "2025-01-01T12:00:00.000+00:00"
revision:
  description: The same as RV(state.revision).
  returned: success
  type: int
  sample: 23
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import S3, STATE_WRITE, WORKLOAD, Spec

SPEC: Spec = (
    WORKLOAD
    | STATE_WRITE
    | {
        "intent": {"type": "dict"},
        "step": {"type": "str"},
    }
)
RULES = {"required_by": {"intent": ("epoch",), "step": ("epoch",), "expected_revision": ("epoch",)}}

if __name__ == "__main__":
    main(S3 | SPEC, RULES)
