#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_template_info
short_description: List the cluster templates
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Lists the cluster templates of all installed collections, with the parameters that an order can set.
  - A template is a role with a C(meta/template.yml), in this collection or in any other that Ansible finds.
  - A template with a mistake is listed with the mistake in RV(templates[].problem).
  - Needs no cluster and no credentials.
options:
  template:
    description:
      - Return only this template. The task fails if it does not exist.
      - The name is a C(spec.templateID) of an order. Without dots it is a template of C(openfleet.clusters).
    type: str
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
requirements:
  - python >= 3.11
  - PyYAML
"""

EXAMPLES = r"""
- name: List all templates
  openfleet.clusters.cluster_template_info:
  register: all_templates

- name: Show the templates that can be ordered
  ansible.builtin.debug:
    msg: "{{ all_templates.templates | rejectattr('problem') | items2dict(key_name='id', value_name='title') }}"

- name: Get one template
  openfleet.clusters.cluster_template_info:
    template: ocp_4_17_small
  register: small

- name: Show the parameters that an order must set
  ansible.builtin.debug:
    msg: "{{ small.templates[0].parameters | selectattr('required') | map(attribute='name') }}"

- name: Fail if a template is broken
  ansible.builtin.assert:
    that: all_templates.templates | selectattr('problem') | length == 0
    fail_msg: "{{ all_templates.templates | selectattr('problem') | map(attribute='problem') }}"
"""

RETURN = r"""
templates:
  description: The templates, sorted by ID.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Full name of the template and of its role.
      type: str
      returned: always
      sample: openfleet.clusters.ocp_4_17_small
    path:
      description: Path of the role.
      type: str
      returned: always
      sample: /usr/share/ansible/collections/ansible_collections/openfleet/clusters/roles/ocp_4_17_small
    problem:
      description: Mistake in the template, which cannot be ordered. The values below are then empty.
      type: str
      returned: always, V(null) without a mistake
      sample: meta/template.yml is not YAML
    extends:
      description: Full name of the template that this one extends.
      type: str
      returned: always, V(null) if it extends none
      sample: openfleet.clusters.ocp_4_17_small
    title:
      description: Human-readable title.
      type: str
      returned: always
      sample: OpenShift 4.17, small
    description:
      description: Description of the clusters.
      type: str
      returned: always
      sample: HyperShift control plane, bare-metal agents as workers.
    provider:
      description: Provider of the clusters.
      type: str
      returned: always
      sample: hypershift
    default_node_requests:
      description: Nodes of an order without node requests.
      type: list
      elements: dict
      returned: always
      sample: [{"resourceClass": "fc430", "numberOfNodes": 2}]
    allowed_resource_classes:
      description: Resource classes that an order can request. An empty list allows any.
      type: list
      elements: str
      returned: always
      sample: ["fc430"]
    site_parameters:
      description: Parameters that belong to the site. An order can set them only to values that the site's settings
        allow.
      type: list
      elements: str
      returned: always
      sample: ["release_image"]
    site_defaults:
      description: Parameters that an order can leave out if the site has a value for them.
      type: list
      elements: str
      returned: always
      sample: ["pull_secret"]
    site_choices:
      description: For each parameter whose values are names of the site, the setting of the site that has them.
      type: dict
      returned: always
      sample: {"storage_class": "storage_classes"}
    network_parameters:
      description: Parameters that are address ranges in CIDR notation. The ranges of an order do not overlap.
      type: list
      elements: str
      returned: always
      sample: ["pod_network_cidr", "service_network_cidr"]
    entry_points:
      description: Entry points of the template, C(install), C(post_install) and C(delete), its own or inherited.
      type: list
      elements: str
      returned: always
      sample: ["install", "post_install", "delete"]
    parameters:
      description: Parameters that an order can set in C(spec.templateParameters), inherited ones first.
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
          description: Type of the parameter, named as in Ansible.
          type: str
          returned: always
          sample: str
        elements:
          description: Type of the elements of a list.
          type: str
          returned: always, V(null) if it is not a list
        required:
          description: Whether an order must set the parameter.
          type: bool
          returned: always
          sample: false
        default:
          description: Default of the parameter. Not returned for a secret.
          type: raw
          returned: always, V(null) without a default
          sample: quay.io/openshift-release-dev/ocp-release:4.17.0-multi
        choices:
          description: Allowed values.
          type: list
          elements: raw
          returned: always, V(null) if any value is allowed
        description:
          description: Description of the parameter.
          type: str
          returned: always
          sample: The OpenShift release image.
        no_log:
          description: Whether the parameter is a secret.
          type: bool
          returned: always
          sample: false
        options:
          description: Parameters inside of this one, with the same keys.
          type: list
          elements: dict
          returned: always, V(null) if it has none
    schema:
      description: The parameters as JSON Schema (draft 2020-12), for forms and for the validation of orders.
      type: dict
      returned: always
      sample: {"type": "object", "properties": {"release_image": {"type": "string"}}, "additionalProperties": false}
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec

SPEC: Spec = {"template": {"type": "str"}}

if __name__ == "__main__":
    main(SPEC)
