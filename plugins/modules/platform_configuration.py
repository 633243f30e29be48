#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: platform_configuration
short_description: Configure Automation Platform from a document
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Compares the controller and EDA of Ansible Automation Platform, or an AWX, with a document, and changes what
    differs. The keys and fields of the document are those of C(infra.aap_configuration).
  - Checks the whole document, the licence and the permissions before it writes anything.
  - Deletes objects that left the document, if this module has created them. A C(Secret) on the hub, the ledger, has
    their ids, and salted hashes of the secrets that were written. A secret is written again when its value changes.
  - Changes a running rulebook activation by disabling it, waiting, changing it, enabling it and waiting. If that fails,
    the activation is enabled as it was before.
options:
  document:
    description:
      - The objects by kind, for example C(controller_templates). The guide C(docs/platform_reference.md) lists the
        keys.
      - A field that an object does not have stays as it is. A list of references is compared as a whole.
      - Required for O(state=present).
    type: dict
  state:
    description:
      - V(present) configures the platform from O(document).
      - V(absent) deletes all objects of the ledger, and then the ledger.
    type: str
    choices: [present, absent]
    default: present
  ledger:
    description: Name of the C(Secret) with the ledger. Use another one for another platform or another document.
    type: str
    default: platform-configuration
  site_namespace:
    description: The namespace of the C(Secret) on the hub. Tenants must have no permission in it.
    type: str
    default: openfleet-system
seealso:
  - module: openfleet.clusters.platform_configuration_info
attributes:
  check_mode:
    support: full
    details: Returns the plan, also for objects that refer to objects which do not exist yet.
  diff_mode:
    support: full
    details: Shows the fields that differ, without secrets.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
  - openfleet.clusters.platform
"""

EXAMPLES = r"""
- name: Create an organization, a project and a job template
  openfleet.clusters.platform_configuration:
    aap_hostname: https://aap.example.com
    aap_token: "{{ token }}"
    document:
      aap_organizations:
        - name: fleet
      controller_projects:
        - name: fleet
          organization: fleet
          scm_type: git
          scm_url: https://git.example.com/fleet.git
      controller_inventories:
        - name: fleet
          organization: fleet
      controller_templates:
        - name: sync-status
          organization: fleet
          project: fleet
          inventory: fleet
          playbook: playbooks/sync_status.yml
          ask_variables_on_launch: true
  register: configured

- name: Show what was changed
  ansible.builtin.debug:
    msg: "{{ configured.table }}"

- name: Delete all that was created
  openfleet.clusters.platform_configuration:
    aap_hostname: https://aap.example.com
    aap_token: "{{ token }}"
    state: absent
"""

RETURN = r"""
plan:
  description: What differs, in the order in which it is applied. Secrets are not in it.
  returned: success
  type: list
  elements: dict
  contains:
    action:
      description: One of C(create), C(update), C(delete), C(grant) and C(revoke).
      type: str
      returned: always
      sample: update
    kind:
      description: Key of the kind in a document.
      type: str
      returned: always
      sample: controller_templates
    name:
      description: Name of the object.
      type: str
      returned: always
      sample: sync-status
    scope:
      description: What the name is unique in, for example its organization.
      type: str
      returned: always
      sample: fleet
    fields:
      description: The fields that differ.
      type: list
      elements: dict
      returned: always
      contains:
        field:
          description: Name of the field.
          type: str
          returned: always
          sample: limit
        before:
          description: Its value on the platform.
          type: raw
          returned: always
          sample: all
        after:
          description: Its value in the document.
          type: raw
          returned: always
          sample: localhost
table:
  description: The plan as lines of text.
  returned: success
  type: list
  elements: str
  sample: ["update  controller_templates               sync-status (fleet)", "        limit: all -> localhost"]
summary:
  description: The number of objects by action.
  returned: success
  type: dict
  sample: {create: 0, update: 1, delete: 0, grant: 0, revoke: 0, unchanged: 41}
requests:
  description: The number of requests to the platform.
  returned: success
  type: int
  sample: 18
problems:
  description: Everything that is wrong with the document, one message each. Nothing was written.
  returned: the document is not valid
  type: list
  elements: str
  sample: ["controller_templates[0] (sync-status): inventory names inventory flete, which ..."]
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, PLATFORM, Spec

SPEC: Spec = {
    "document": {"type": "dict", "no_log": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "ledger": {"type": "str", "default": "platform-configuration"},
    "site_namespace": {"type": "str", "default": "openfleet-system"},
}
RULES = {"required_if": [("state", "present", ("document",))]}

if __name__ == "__main__":
    main(KUBERNETES | PLATFORM | SPEC, RULES)
