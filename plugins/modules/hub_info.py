#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hub_info
short_description: Read hubs of a fleet
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Returns the hubs with their state, from the home cluster of a fleet.
options:
  name:
    description: Name of the hub. The task does not fail if it does not exist. Defaults to all hubs.
    type: str
seealso:
  - module: openfleet.clusters.hub
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
  - openfleet.clusters.kubernetes
"""

EXAMPLES = r"""
- name: Read all hubs
  openfleet.clusters.hub_info:
  register: listed

- name: Show the hubs that take new clusters
  ansible.builtin.debug:
    msg: "{{ listed.hubs | selectattr('spec.schedulable') | map(attribute='name') }}"
"""

RETURN = r"""
hubs:
  description:
    - The hubs, sorted, each with the fields of
      RV(openfleet.clusters.hub#module:hub).
  returned: success
  type: list
  elements: dict
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec

SPEC: Spec = {"name": {"type": "str"}}

if __name__ == "__main__":
    main(KUBERNETES | SPEC)
