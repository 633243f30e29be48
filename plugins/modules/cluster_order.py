#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_order
short_description: Place, change or withdraw a cluster order
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Does with a C(ClusterOrder) what a tenant does. The cluster itself is made and removed by whoever watches the orders,
    or by the playbooks of this collection.
  - What is not given stays as it is.
options:
  state:
    description: V(present) places the order or changes it. V(absent) deletes it, and its cluster with it.
    type: str
    choices: [present, absent]
    default: present
  name:
    description: Name of the order, which becomes the name of the cluster.
    type: str
    required: true
  namespace:
    description: Namespace of the order. It has to be there.
    type: str
    required: true
  template_id:
    description:
      - The template that the cluster is made from, see M(openfleet.clusters.cluster_template_info).
        Without dots it means one of C(openfleet.clusters).
      - A new order needs one. It cannot be changed later.
    type: str
  template_parameters:
    description:
      - The values of the template's parameters, all that are to differ from its defaults.
      - They take the place of all that were given before.
    type: dict
  node_requests:
    description: The nodes of the cluster, all of them. With an empty list, those that the template has by default.
    type: list
    elements: dict
    suboptions:
      resourceClass:
        description: The kind of machine.
        type: str
        required: true
      numberOfNodes:
        description: How many of them.
        type: int
        required: true
  labels:
    description: Labels that the order shall have, beside those it has.
    type: dict
  annotations:
    description: Annotations that the order shall have, beside those it has.
    type: dict
  force:
    description: Whether to change what somebody else has set, with C(kubectl) for example. Otherwise the task fails and says who.
    type: bool
    default: false
  wait:
    description:
      - Whether to wait until the cluster is ready, or gone.
      - The wait ends early when the order has failed in a way that no further attempt can mend.
    type: bool
    default: false
  wait_timeout:
    description: For how many seconds to wait. After that the task fails; the order goes on.
    type: int
    default: 3600
notes:
  - The template and its parameters are checked by whoever carries the order out, and the order then says what is wrong.
    With O(wait=true) this task fails with that message.
  - In check mode the API server is asked what it would do, and nothing is waited for.
seealso:
  - module: openfleet.clusters.cluster_order_info
  - module: openfleet.clusters.cluster_template_info
attributes:
  check_mode:
    support: full
    details: Tells what the API server would make of it.
  diff_mode:
    support: full
    details: Of the template's parameters only the names are shown, and which of them change.
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
      pull_secret: "{{ pull_secret }}"
    node_requests:
      - resourceClass: fc430
        numberOfNodes: 2
    labels:
      team: blue

- name: Ask for a third node and wait until it is there
  openfleet.clusters.cluster_order:
    name: demo
    namespace: orders
    node_requests:
      - resourceClass: fc430
        numberOfNodes: 3
    wait: true
    wait_timeout: 1800
  register: ordered

- name: Show where the cluster is
  ansible.builtin.debug:
    var: ordered.order.status.apiURL

- name: Give the cluster back and wait until it is gone
  openfleet.clusters.cluster_order:
    state: absent
    name: demo
    namespace: orders
    wait: true
"""

RETURN = r"""
order:
  description: The order as it is after the task, or would be.
  returned: O(state=present)
  type: dict
  contains:
    metadata:
      description: Name, namespace, labels and the like, without what repeats the spec.
      type: dict
      returned: always
      sample: {"name": "demo", "namespace": "orders", "generation": 1}
    spec:
      description: What is ordered. C(templateParameters) is a list of the parameters' names; their values may be secrets.
      type: dict
      returned: always
      sample: {"templateID": "ocp_4_17_small", "templateParameters": ["pull_secret"]}
    status:
      description: What has become of it; empty until somebody has taken it up. Absent values are left out.
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
