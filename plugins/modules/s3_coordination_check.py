#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: s3_coordination_check
short_description: Prove that an S3 bucket honours the conditions that agreements rely on
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Clusters agree through a bucket by writing only what is not there, or only what has not changed. A store that ignores these
    conditions, or a proxy that drops them, would let two leaders act at once.
  - This tries every condition, one after the other and in a race of several writers, on objects of its own that it deletes again. It
    fails unless all are honoured.
  - The event source makes the same proof when it starts, and M(openfleet.clusters.s3_lock) before each new term. Run this before you
    choose a store, and after an upgrade of it.
options: {}
attributes:
  check_mode:
    support: partial
    details: The proof has to write, so in check mode it is skipped.
  diff_mode:
    support: none
    details: There is nothing to compare.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.s3
"""

EXAMPLES = r"""
- name: Prove that the store can be used
  openfleet.clusters.s3_coordination_check:
    bucket: agreements
  register: proof

- name: Show the table
  ansible.builtin.debug:
    msg: "{{ proof.table.splitlines() }}"
"""

RETURN = r"""
findings:
  description: Each case that was tried.
  returned: when not in check mode
  type: list
  elements: dict
  contains:
    case:
      description: What was tried.
      type: str
      returned: always
      sample: create what is there
    expected:
      description: What has to happen.
      type: str
      returned: always
      sample: refused
    seen:
      description: What happened.
      type: str
      returned: always
      sample: refused
    passed:
      description: Whether both are the same.
      type: bool
      returned: always
      sample: true
table:
  description: The same for a person to read.
  returned: when not in check mode
  type: str
  sample: "case  expected  seen"
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import S3, Spec

SPEC: Spec = {}

if __name__ == "__main__":
    main(S3 | SPEC)
