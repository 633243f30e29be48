#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: platform_configuration_info
short_description: Read Automation Platform as a document
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Exports the objects of the controller and EDA of Ansible Automation Platform, or of an AWX, in the format of
    C(infra.aap_configuration), which M(openfleet.clusters.platform_configuration) applies.
  - Secrets are C($encrypted$), as the platform shows them. A document with this value keeps the secret of an object
    that exists.
  - Objects that the platform brings itself are left out.
options:
  kinds:
    description:
      - Keys of the kinds to export, for example V(controller_templates). By default all.
      - Name the kinds for an AWX that has no EDA.
    type: list
    elements: str
    default: []
  organization:
    description: Export only this organization and its objects, and objects without an organization.
    type: str
seealso:
  - module: openfleet.clusters.platform_configuration
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
  - openfleet.clusters.platform
"""

EXAMPLES = r"""
- name: Export an organization
  openfleet.clusters.platform_configuration_info:
    aap_hostname: https://aap.example.com
    aap_token: "{{ token }}"
    organization: fleet
  register: exported

- name: Write it to a file
  ansible.builtin.copy:
    content: "{{ exported.document | to_nice_yaml }}"
    dest: platform.yml
    mode: "0600"
"""

RETURN = r"""
document:
  description: The objects by kind.
  returned: success
  type: dict
  sample: {aap_organizations: [{name: fleet}]}
requests:
  description: The number of requests to the platform.
  returned: success
  type: int
  sample: 24
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import PLATFORM, Spec

SPEC: Spec = {
    "kinds": {"type": "list", "elements": "str", "default": []},
    "organization": {"type": "str"},
}

if __name__ == "__main__":
    main(PLATFORM | SPEC)
