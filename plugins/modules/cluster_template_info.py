# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation of an action: the templates to tell of are those that the controller has, so it runs there and not on a host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_template_info
short_description: List the cluster templates that can be ordered
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Tells which cluster templates the installed collections have, what each makes, and which parameters an order may give it.
  - A template is a role with a C(meta/template.yml), in this collection or in any other that Ansible finds.
  - A template with a mistake of its own is listed, too, with the mistake in RV(templates[].problem).
options:
  template:
    description:
      - Tell of this template only. It is an error if there is none of that name.
      - The name is the one that orders have in C(spec.templateID). Without dots it means a template of C(openfleet.clusters).
    type: str
notes:
  - Needs no cluster and no credentials.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
requirements:
  - python >= 3.11
  - PyYAML
"""

EXAMPLES = r"""
- name: Look at all templates
  openfleet.clusters.cluster_template_info:
  register: all_templates

- name: Show what can be ordered
  ansible.builtin.debug:
    msg: "{{ all_templates.templates | rejectattr('problem') | items2dict(key_name='id', value_name='title') }}"

- name: Look at one template
  openfleet.clusters.cluster_template_info:
    template: ocp_4_17_small
  register: small

- name: Show what an order has to give it
  ansible.builtin.debug:
    msg: "{{ small.templates[0].parameters | selectattr('required') | map(attribute='name') }}"

- name: Stop if a template is broken
  ansible.builtin.assert:
    that: all_templates.templates | selectattr('problem') | length == 0
    fail_msg: "{{ all_templates.templates | selectattr('problem') | map(attribute='problem') }}"
"""

RETURN = r"""
templates:
  description: The templates, sorted by their ids.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Full name of the template, which is that of its role.
      type: str
      returned: always
      sample: openfleet.clusters.ocp_4_17_small
    path:
      description: Folder of the role.
      type: str
      returned: always
      sample: /usr/share/ansible/collections/ansible_collections/openfleet/clusters/roles/ocp_4_17_small
    problem:
      description: What is wrong with the template itself, so that it cannot be ordered. Then the values below are empty.
      type: str
      returned: always, V(null) if it can be used
      sample: meta/template.yml is not YAML
    extends:
      description: Full name of the template that this one extends.
      type: str
      returned: always, V(null) if it extends none
      sample: openfleet.clusters.ocp_4_17_small
    title:
      description: Its name for people.
      type: str
      returned: always
      sample: OpenShift 4.17, small
    description:
      description: What a cluster of it is like.
      type: str
      returned: always
      sample: HyperShift control plane, bare-metal agents as workers.
    provider:
      description: What makes the cluster.
      type: str
      returned: always
      sample: hypershift
    default_node_requests:
      description: The nodes of an order that asks for none.
      type: list
      elements: dict
      returned: always
      sample: [{"resourceClass": "fc430", "numberOfNodes": 2}]
    allowed_resource_classes:
      description: The resource classes that an order may ask for. If the list is empty, any.
      type: list
      elements: str
      returned: always
      sample: ["fc430"]
    entry_points:
      description: Which of C(install), C(post_install) and C(delete) it has, its own or inherited.
      type: list
      elements: str
      returned: always
      sample: ["install", "post_install", "delete"]
    parameters:
      description: The parameters that an order may give in C(spec.templateParameters), inherited ones first.
      type: list
      elements: dict
      returned: always
      contains:
        name:
          description: Name of the parameter.
          type: str
          returned: always
          sample: release_image
        type:
          description: Its type, named as in Ansible.
          type: str
          returned: always
          sample: str
        elements:
          description: The type of the items of a list.
          type: str
          returned: always, V(null) if it is no list
        required:
          description: Whether an order has to give it.
          type: bool
          returned: always
          sample: false
        default:
          description: Its value in an order that does not give it. Never told if the parameter is a secret.
          type: raw
          returned: always, V(null) if there is none
          sample: quay.io/openshift-release-dev/ocp-release:4.17.0-multi
        choices:
          description: The values that it may have.
          type: list
          elements: raw
          returned: always, V(null) if any
        description:
          description: What it is for.
          type: str
          returned: always
          sample: The OpenShift release to install.
        no_log:
          description: Whether it is a secret.
          type: bool
          returned: always
          sample: false
        options:
          description: The parameters inside this one, each with these same keys.
          type: list
          elements: dict
          returned: always, V(null) if it has none
    schema:
      description: The parameters as JSON Schema (draft 2020-12), for forms and for checking an order before it is made.
      type: dict
      returned: always
      sample: {"type": "object", "properties": {"release_image": {"type": "string"}}, "additionalProperties": false}
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec

SPEC: Spec = {"template": {"type": "str"}}

if __name__ == "__main__":
    main(SPEC)
