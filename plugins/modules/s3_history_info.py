#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: s3_history_info
short_description: Read the history of the state of a workload in an S3 bucket
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Returns the revisions of the state, oldest first, each with its writer and epoch.
  - Each revision is an object that is written once. The tasks that write the state set how many are kept.
options:
  newest:
    description: How many revisions to return, the newest ones.
    type: int
    default: 100
seealso:
  - module: openfleet.clusters.s3_state
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
  - openfleet.clusters.s3
  - openfleet.clusters.s3.workload
"""

EXAMPLES = r"""
- name: Read the last three revisions
  openfleet.clusters.s3_history_info:
    bucket: coordination
    namespace: shop
    name: database
    newest: 3
  register: past

- name: Show the steps
  ansible.builtin.debug:
    msg: "{{ past.history | map(attribute='step') }}"
"""

RETURN = r"""
history:
  description: The revisions, oldest first, each with the fields of RV(openfleet.clusters.s3_state#module:state).
  returned: success
  type: list
  elements: dict
  contains:
    recorded_at:
      description: When the revision was added to the history, on the writer's clock.
      type: str
      returned: always
      sample: "2025-01-01T12:00:00.100+00:00"
kept:
  description: How many revisions the history has.
  returned: success
  type: int
  sample: 23
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import S3, WORKLOAD, Spec

SPEC: Spec = WORKLOAD | {
    "newest": {"type": "int", "default": 100},
}

if __name__ == "__main__":
    main(S3 | SPEC)
