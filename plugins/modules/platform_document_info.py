#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: platform_document_info
short_description: Generate the objects that Automation Platform needs for this collection
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Generates a document for M(openfleet.clusters.platform_configuration) from the installed collection and a site file.
    It has a job template for each playbook, with the prompts and the survey that it needs, workflow templates,
    schedules, credentials, images, a container group, and the rulebook activations.
  - The same collection and site file always generate the same document.
  - The returned document contains the secrets. Set C(no_log) for the task.
  - Needs no connection.
options:
  site:
    description: Content of the site file. The guide to Automation Platform lists its keys.
    type: dict
  site_file:
    description: Path of the site file, which is YAML.
    type: path
  state:
    description: V(absent) generates an empty document and needs no secrets, for the removal of all objects.
    type: str
    choices: [present, absent]
    default: present
  token:
    description: Token of the platform with which the job of C(configure_platform) changes the objects.
    type: str
  engine_token:
    description: Token of the platform with which the rulebook activations launch jobs.
    type: str
  engine_kubeconfig:
    description: Content of the kubeconfig with which the rulebook activation watches the hub.
    type: str
  webhook_token:
    description: Token of the senders of webhooks. Not needed if C(webhooks) of the site file is V(false).
    type: str
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
seealso:
  - module: openfleet.clusters.platform_configuration
requirements:
  - python >= 3.11
  - PyYAML
"""

EXAMPLES = r"""
- name: Generate the document
  openfleet.clusters.platform_document_info:
    site_file: platform_site.yml
    token: "{{ platform_token }}"
    engine_token: "{{ platform_engine_token }}"
    engine_kubeconfig: "{{ lookup('ansible.builtin.file', 'engine.kubeconfig') }}"
    webhook_token: "{{ platform_webhook_token }}"
  register: generated
  no_log: true

- name: Show the job templates
  ansible.builtin.debug:
    msg: "{{ generated.document.controller_templates | map(attribute='name') }}"
"""

RETURN = r"""
document:
  description: The objects by the variable names of infra.aap_configuration, with their secrets.
  returned: success
  type: dict
  sample: {"aap_organizations": [{"name": "openfleet"}]}
site:
  description: What the playbook needs of the site file.
  returned: success
  type: dict
  contains:
    address:
      description: Address of the platform.
      type: str
      returned: always
      sample: https://platform.example.com
    validate_certs:
      description: Whether to validate its certificate.
      type: bool
      returned: always
      sample: true
    organization:
      description: Organization of the objects.
      type: str
      returned: always
      sample: openfleet
    prefix:
      description: What the names of the objects begin with.
      type: str
      returned: always
      sample: openfleet
    site_namespace:
      description: Namespace of the site on the hub, for the ledger.
      type: str
      returned: always
      sample: openfleet-system
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec

SPEC: Spec = {
    "site": {"type": "dict"},
    "site_file": {"type": "path"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "token": {"type": "str", "no_log": True},
    "engine_token": {"type": "str", "no_log": True},
    "engine_kubeconfig": {"type": "str", "no_log": True},
    "webhook_token": {"type": "str", "no_log": True},
}
RULES = {"required_one_of": [("site", "site_file")], "mutually_exclusive": [("site", "site_file")]}

if __name__ == "__main__":
    main(SPEC, RULES)
