#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: s3_history_info
short_description: Look at what the state of a placement was, in an S3 bucket
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Shows the revisions of the state, oldest first, with who wrote them under which epoch.
  - Each is an object of its own that was written once. How many are kept is set where the state is written.
options:
  newest:
    description: How many to show, the newest ones.
    type: int
    default: 100
seealso:
  - module: openfleet.clusters.s3_state
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
  - openfleet.clusters.s3
  - openfleet.clusters.s3.place
"""

EXAMPLES = r"""
- name: Look at the last three revisions
  openfleet.clusters.s3_history_info:
    bucket: agreements
    namespace: shop
    name: database
    newest: 3
  register: past

- name: Tell how it came about
  ansible.builtin.debug:
    msg: "{{ past.history | map(attribute='step') }}"
"""

RETURN = r"""
history:
  description: The revisions, oldest first.
  returned: success
  type: list
  elements: dict
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
    recorded:
      description: When it was written to the history, on the writer's clock.
      type: str
      returned: always
      sample: "2025-01-01T12:00:00.100+00:00"
kept:
  description: How many revisions are kept in all.
  returned: success
  type: int
  sample: 23
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import PLACE, S3, Spec

SPEC: Spec = PLACE | {
    "newest": {"type": "int", "default": 100},
}

if __name__ == "__main__":
    main(S3 | SPEC)
