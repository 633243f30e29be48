#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: s3_decision
short_description: Read or write what was decided about a placement in an S3 bucket
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - A decision is part of the state, and is written with it in one step. It is then mirrored into an object of its own, C(decision), for
    those who need no more than that.
  - Without O(decision) it is read. If a leader died before it could bring the mirror up to date, the next leader does, and so does the
    next write.
  - A task that writes first proves, by four requests, that conditions are not lost on the way to the store. Otherwise nothing is written.
options:
  decision:
    description: What is decided. It replaces the decision as a whole.
    type: dict
  step:
    description: How far it is by that, written in the same moment.
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
  - module: openfleet.clusters.s3_state
attributes:
  check_mode:
    support: full
    details: Checks epoch and revision, and tells what would be written.
  diff_mode:
    support: full
    details: Shows the decision before and after.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.s3
  - openfleet.clusters.s3.place
"""

EXAMPLES = r"""
- name: Take the lease
  openfleet.clusters.s3_lock:
    bucket: agreements
    namespace: shop
    name: database
    holder: maintenance
  register: lease

- name: Decide, and say how far it is by that
  openfleet.clusters.s3_decision:
    bucket: agreements
    namespace: shop
    name: database
    epoch: "{{ lease.epoch }}"
    decision:
      cluster: west
    step: Completed

- name: Give back the lease
  openfleet.clusters.s3_lock:
    bucket: agreements
    namespace: shop
    name: database
    holder: maintenance
    state: released

- name: Read what was decided
  openfleet.clusters.s3_decision:
    bucket: agreements
    namespace: shop
    name: database
  register: decided

- name: Tell where it runs
  ansible.builtin.debug:
    msg: "{{ decided.decision.cluster | default('not decided') }}"
"""

RETURN = r"""
decision:
  description: What is decided, as the state says, which is the truth. Empty if nothing was ever decided.
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
mirrored:
  description: Whether the object C(decision) says the same.
  returned: success
  type: bool
  sample: true
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import PLACE, S3, Spec

SPEC: Spec = PLACE | {
    "decision": {"type": "dict"},
    "step": {"type": "str"},
    "epoch": {"type": "int"},
    "expected_revision": {"type": "int"},
    "keep_history": {"type": "int", "default": 1000},
}
RULES = {"required_by": {"decision": ("epoch",), "step": ("decision",), "expected_revision": ("decision",)}}

if __name__ == "__main__":
    main(S3 | SPEC, RULES)
