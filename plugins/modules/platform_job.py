#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: platform_job
short_description: Run a job of Automation Platform
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Launches a job template, waits for the end of the job, and returns its output. Fails unless the job is successful.
  - Refuses what the template does not prompt for, because the platform would ignore it.
options:
  template:
    description: Name of the job template.
    type: str
    required: true
  organization:
    description: Organization of the job template.
    type: str
    required: true
  job_type:
    description: V(check) runs the playbook in check mode. By default the job type of the template.
    type: str
    choices: [run, check]
  limit:
    description: Limit of the job. By default that of the template.
    type: str
  extra_vars:
    description: Variables of the job, beside those of the template.
    type: dict
    default: {}
seealso:
  - module: openfleet.clusters.platform_configuration
attributes:
  check_mode:
    support: full
    details: Launches no job.
  diff_mode:
    support: N/A
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.platform
"""

EXAMPLES = r"""
- name: Prove that jobs reach the hub
  openfleet.clusters.platform_job:
    aap_hostname: https://platform.example.com
    aap_token: "{{ platform_token }}"
    template: openfleet-sync-status
    organization: openfleet
    job_type: check
  register: proof

- name: Show the output
  ansible.builtin.debug:
    var: proof.output
"""

RETURN = r"""
id:
  description: Id of the job.
  returned: success, but not in check mode
  type: int
  sample: 17
url:
  description: Address of the job in the API.
  returned: success, but not in check mode
  type: str
  sample: /api/controller/v2/jobs/17/
output:
  description: Lines of its output.
  returned: success, but not in check mode
  type: list
  elements: str
  sample: ["PLAY RECAP ***", "localhost : ok=1 changed=0"]
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import PLATFORM, Spec

SPEC: Spec = {
    "template": {"type": "str", "required": True},
    "organization": {"type": "str", "required": True},
    "job_type": {"type": "str", "choices": ["run", "check"]},
    "limit": {"type": "str"},
    "extra_vars": {"type": "dict", "default": {}},
}

if __name__ == "__main__":
    main(PLATFORM | SPEC)
