#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_order
short_description: Create, update or delete a cluster order
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Manages a C(ClusterOrder) as a tenant does. The rulebooks or playbooks of this collection then create, update or
    delete the cluster.
  - Does not change fields whose options are not set.
options:
  state:
    description: V(present) creates or updates the order. V(absent) deletes the order and its cluster.
    type: str
    choices: [present, absent]
    default: present
  name:
    description: Name of the order and of its cluster.
    type: str
    required: true
  namespace:
    description: Namespace of the order. It must exist.
    type: str
    required: true
  template_id:
    description:
      - The template of the cluster. M(openfleet.clusters.cluster_template_info) lists the templates. A name without
        dots is a template of C(openfleet.clusters).
      - Required for a new order. Cannot be changed later.
    type: str
  template_parameters:
    description:
      - Values of the template's parameters. Parameters that are not set have the template's defaults.
      - A secret parameter takes a dict with C(secretRef), which has C(name) and C(key) of a Secret in the namespace of
        the order, instead of its value.
      - Replaces all earlier values.
    type: dict
  node_requests:
    description: All nodes of the cluster by resource class. An empty list requests the template's default.
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
  force:
    description: Whether to overwrite fields of another field manager, for example C(kubectl). Without it the task
      fails.
    type: bool
    default: false
  wait:
    description:
      - Whether to wait until the cluster is ready or deleted.
      - The task fails early if the order has failed and a retry cannot succeed.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait. After that the task fails, and the order is not affected.
    type: int
    default: 3600
notes:
  - A run validates the template and its parameters later and writes mistakes to the status of the order. With
    O(wait=true) the task then fails with that message.
seealso:
  - module: openfleet.clusters.cluster_order_info
  - module: openfleet.clusters.cluster_template_info
attributes:
  check_mode:
    support: full
    details: The API server validates the order with a dry run. The task does not wait.
  diff_mode:
    support: full
    details: Of template parameters it shows the names and which of them change, never the values.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
"""

EXAMPLES = r"""
- name: Order a cluster
  openfleet.clusters.cluster_order:
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
    labels:
      team: blue

- name: Scale the cluster to three nodes and wait
  openfleet.clusters.cluster_order:
    name: demo
    namespace: orders
    node_requests:
      - resourceClass: fc430
        numberOfNodes: 3
    wait: true
    wait_timeout: 1800
  register: ordered

- name: Show the URL of the cluster
  ansible.builtin.debug:
    var: ordered.order.status.apiURL

- name: Delete the order with its cluster and wait
  openfleet.clusters.cluster_order:
    state: absent
    name: demo
    namespace: orders
    wait: true
"""

RETURN = r"""
order:
  description: The order after the task. In check mode, the predicted order.
  returned: O(state=present)
  type: dict
  contains:
    metadata:
      description: Metadata of the order, without annotations that repeat the spec.
      type: dict
      returned: always
      sample: {"name": "demo", "namespace": "orders", "generation": 1}
    spec:
      description: Spec of the order. C(templateParameters) lists only the names of the parameters, whose values can be
        secret.
      type: dict
      returned: always
      sample: {"templateID": "ocp_4_17_small", "templateParameters": ["pull_secret"]}
    status:
      description: Status of the order, without empty values. Empty before the first run.
      type: dict
      returned: always
      sample: {"phase": "Ready", "apiURL": "https://api.demo.example.com:6443", "observedGeneration": 1}
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, ORDERS, Spec

SPEC: Spec = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "required": True},
    "template_id": {"type": "str"},
    "template_parameters": {"type": "dict", "no_log": True},
    "node_requests": {
        "type": "list",
        "elements": "dict",
        "options": {"resourceClass": {"type": "str", "required": True}, "numberOfNodes": {"type": "int", "required": True}},
    },
    "labels": {"type": "dict"},
    "annotations": {"type": "dict"},
    "force": {"type": "bool", "default": False},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 3600},
}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC)
