#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_order_proposal
short_description: Propose a cluster order as a pull request
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Renders an order, or its change, into a file of a repository and opens a pull request for it.
  - Validates the parameters against the template first. What only the hub knows, such as values of the site and
    profiles, is validated there.
  - A file has no secret. A secret parameter must be a C(secretRef), and a value is refused.
  - The same proposal again finds the open pull request and changes nothing. If the file on the branch is so already,
    there is no pull request.
  - Does not change fields whose options are not set.
  - Needs no hub.
options:
  state:
    description: V(present) proposes a new or changed order. V(absent) proposes to delete the order and its cluster.
    type: str
    choices: [present, absent]
    default: present
  name:
    description: Name of the order and of its cluster.
    type: str
    required: true
  namespace:
    description: Namespace of the order on the hub.
    type: str
    required: true
  template_id:
    description: The template of the cluster. Required for a new order.
    type: str
  template_parameters:
    description: Values of the template's parameters. Replaces all earlier values.
    type: dict
  node_requests:
    description: All nodes of the cluster by resource class.
    type: list
    elements: dict
    suboptions:
      resourceClass:
        description: Resource class of the machines.
        type: str
        required: true
      numberOfNodes:
        description: Number of nodes.
        type: int
        required: true
  labels:
    description: Labels to add to the order or to update.
    type: dict
  annotations:
    description: Annotations to add to the order or to update.
    type: dict
  api_group:
    description: API group of the orders.
    type: str
    default: cloudkit.openshift.io
seealso:
  - module: openfleet.clusters.cluster_order
  - module: openfleet.clusters.cluster_order_drift_info
attributes:
  check_mode:
    support: full
    details: Reads the repository, and opens no pull request.
  diff_mode:
    support: full
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.forge
requirements:
  - python >= 3.11
  - PyYAML
  - urllib3
"""

EXAMPLES = r"""
- name: Propose a cluster
  openfleet.clusters.cluster_order_proposal:
    forge: gitea
    forge_url: "{{ forge_url }}"
    forge_token: "{{ forge_token }}"
    repository: platform/clusters
    name: demo
    namespace: orders
    template_id: ocp_4_17_small
    template_parameters:
      pull_secret:
        secretRef:
          name: registries
          key: .dockerconfigjson
    node_requests:
      - resourceClass: fc430
        numberOfNodes: 2
  register: proposed

- name: Show where to review it
  ansible.builtin.debug:
    var: proposed.pull_request.url
"""

RETURN = r"""
path:
  description: The file of the order in the repository.
  returned: success
  type: str
  sample: orders/orders/demo.yaml
branch:
  description: The branch of the proposal; empty if there is nothing to propose.
  returned: success
  type: str
  sample: openfleet/orders/demo-1f0c2a5b9d3e
pull_request:
  description: The open pull request.
  returned: success, V(null) if there is nothing to propose, and in check mode for a new one
  type: dict
  contains:
    number:
      description: Number of the pull request.
      type: int
      returned: always
      sample: 12
    url:
      description: Address of its page.
      type: str
      returned: always
      sample: https://git.example.com/platform/clusters/pulls/12
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import DEFAULT_GROUP, FORGE, Spec

SPEC: Spec = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "required": True},
    "template_id": {"type": "str"},
    "template_parameters": {"type": "dict", "no_log": True},
    "node_requests": {
        "type": "list",
        "elements": "dict",
        "options": {
            "resourceClass": {"type": "str", "required": True},
            "numberOfNodes": {"type": "int", "required": True},
        },
    },
    "labels": {"type": "dict"},
    "annotations": {"type": "dict"},
    "api_group": {"type": "str", "default": DEFAULT_GROUP},
}

if __name__ == "__main__":
    main(FORGE | SPEC)
