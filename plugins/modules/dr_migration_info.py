#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: dr_migration_info
short_description: Check a phase of the migration of disaster recovery from ACM to direct access
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Returns whether the work of a phase is done, and for each check that failed what to do. It reads the settings, the
    registered clusters and the ACM hub, and changes nothing.
  - The playbooks C(dr_migration_prepare), C(dr_migration_compare), C(dr_migration_switch) and C(dr_migration_remove) of
    this collection fail unless all checks of their phase pass.
options:
  phase:
    description: The phase to check.
    type: str
    required: true
    choices: [prepare, compare, switch, remove]
  namespace:
    description: The namespace with the ConfigMap C(dr-settings), the registry and its Secrets.
    type: str
    default: openfleet-system
seealso:
  - module: openfleet.clusters.cluster_registry
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
  - openfleet.clusters.kubernetes
"""

EXAMPLES = r"""
- name: Compare both ways to reach the clusters
  openfleet.clusters.dr_migration_info:
    phase: compare
    namespace: dr
  register: migration

- name: Show what is left to do
  ansible.builtin.debug:
    msg: "{{ migration.checks | rejectattr('passed') | map(attribute='message') }}"
"""

RETURN = r"""
passed:
  description: Whether all checks of the phase passed.
  returned: success
  type: bool
checks:
  description: The checks.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: What was checked.
      type: str
    passed:
      description: Whether it is as the phase needs it.
      type: bool
    message:
      description: What was found, or what to do.
      type: str
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec

SPEC: Spec = {
    "phase": {"type": "str", "required": True, "choices": ["prepare", "compare", "switch", "remove"]},
    "namespace": {"type": "str", "default": "openfleet-system"},
}

if __name__ == "__main__":
    main(KUBERNETES | SPEC)
