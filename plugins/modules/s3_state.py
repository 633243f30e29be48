#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: s3_state
short_description: Read or write the state of a placement in an S3 bucket
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - The state is the truth about a placement control. It holds what is wanted, what was decided, and how far it is.
  - Without O(intent) and O(step) it is read. With one of them it is written, under the epoch of the leader and only if nobody has
    changed it meanwhile.
  - Each revision is kept in the history, which M(openfleet.clusters.s3_history_info) shows. What was decided is written by
    M(openfleet.clusters.s3_decision).
  - A task that writes first proves, by four requests, that conditions are not lost on the way to the store. Otherwise nothing is written.
options:
  intent:
    description: What is wanted. It replaces the intent as a whole.
    type: dict
  step:
    description: How far it is.
    type: str
  epoch:
    description: The epoch of the leader who this is done for. Nothing is written unless it is the current one. Needed to write.
    type: int
  expected_revision:
    description: The revision that the change is meant for. If the state is at another by now, the task fails, unless it is as wanted.
    type: int
  keep_history:
    description: How many revisions of the state are kept in the history, the newest.
    type: int
    default: 1000
seealso:
  - module: openfleet.clusters.s3_decision
  - module: openfleet.clusters.s3_history_info
attributes:
  check_mode:
    support: full
    details: Checks epoch and revision, and tells what would be written.
  diff_mode:
    support: full
    details: Shows the state before and after.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.s3
  - openfleet.clusters.s3.place
"""

EXAMPLES = r"""
- name: Read the state
  openfleet.clusters.s3_state:
    bucket: agreements
    namespace: shop
    name: database
  register: current

- name: Take the lease
  openfleet.clusters.s3_lock:
    bucket: agreements
    namespace: shop
    name: database
    holder: maintenance
  register: lease

- name: Write what is wanted, if nobody has changed it since
  openfleet.clusters.s3_state:
    bucket: agreements
    namespace: shop
    name: database
    epoch: "{{ lease.epoch }}"
    expected_revision: "{{ current.state.revision + 1 }}"
    intent:
      action: Failover
      cluster: west
    step: Initiating

- name: Give back the lease
  openfleet.clusters.s3_lock:
    bucket: agreements
    namespace: shop
    name: database
    holder: maintenance
    state: released
"""

RETURN = r"""
state:
  description: The state as it is now.
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
      description: How far it is.
      type: str
      returned: always
      sample: WaitForReadiness
    epoch:
      description: The epoch that the state is sealed with.
      type: int
      returned: always
      sample: 7
    revision:
      description: Grows with each write. V(0) if nothing was ever written.
      type: int
      returned: always
      sample: 23
    leader:
      description: Who has sealed it.
      type: str
      returned: always
      sample: east-5d1c0f2e8a7b6c4d
    writer:
      description: Who has written this revision.
      type: str
      returned: always
      sample: local-4711-5d1c0f2e
    written:
      description: When, on the writer's clock. For people to read; nothing is decided by it.
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
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import PLACE, S3, Spec

SPEC: Spec = PLACE | {
    "intent": {"type": "dict"},
    "step": {"type": "str"},
    "epoch": {"type": "int"},
    "expected_revision": {"type": "int"},
    "keep_history": {"type": "int", "default": 1000},
}
RULES = {"required_by": {"intent": ("epoch",), "step": ("epoch",), "expected_revision": ("epoch",)}}

if __name__ == "__main__":
    main(S3 | SPEC, RULES)
