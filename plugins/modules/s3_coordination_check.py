#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: s3_coordination_check
short_description: Check that an S3 bucket honours conditional writes
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Clusters coordinate through a bucket by creating only objects that do not exist, and by replacing only objects that
    have not changed. A store that ignores these conditions, or a proxy that drops them, would let two leaders act at
    once.
  - This module tries each condition, case by case and in races of several writers. It uses objects of its own and
    deletes them. It fails unless the store honours every condition.
  - The event source runs the same check at its start, and M(openfleet.clusters.s3_lock) before each new term. Run this
    module before you choose a store, and after each upgrade of it.
options: {}
attributes:
  check_mode:
    support: partial
    details: The check writes objects, so check mode skips it.
  diff_mode:
    support: none
    details: There is nothing to compare.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.s3
"""

EXAMPLES = r"""
- name: Check the store
  openfleet.clusters.s3_coordination_check:
    bucket: coordination
  register: check

- name: Show the table
  ansible.builtin.debug:
    msg: "{{ check.table.splitlines() }}"
"""

RETURN = r"""
cases:
  description: The result of each case.
  returned: when not in check mode
  type: list
  elements: dict
  contains:
    case:
      description: What the check tried.
      type: str
      returned: always
      sample: create an existing object
    expected:
      description: The outcome that coordination needs.
      type: str
      returned: always
      sample: refused
    actual:
      description: The outcome on this store.
      type: str
      returned: always
      sample: refused
    passed:
      description: Whether both outcomes are the same.
      type: bool
      returned: always
      sample: true
table:
  description: The same as a table of text.
  returned: when not in check mode
  type: str
  sample: "case  expected  actual"
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import S3, Spec

SPEC: Spec = {}

if __name__ == "__main__":
    main(S3 | SPEC)
