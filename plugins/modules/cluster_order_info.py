#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_order_info
short_description: Look at cluster orders
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Tells what is ordered, what has become of it, and what is to be done next.
  - Without options, of all orders of the hub. An order that is not there is not in the answer, and that is no failure.
options:
  name:
    description: Name of the order. Needs O(namespace).
    type: str
  namespace:
    description: Only the orders of this namespace.
    type: str
  label_selectors:
    description: Only orders whose labels fulfil all of these, for example V(team=blue) or V(team in (blue, red\)).
    type: list
    elements: str
    default: []
  phases:
    description: Only orders in one of these phases. An order that nobody has taken up yet has none.
    type: list
    elements: str
    choices: [Progressing, Ready, Failed, Degraded, Deleting]
  controller:
    description:
      - The controller of orders, which decides the RV(orders[].next_action). Give the value that the event source and the playbooks have.
    type: str
    choices: [self, external]
    default: self
seealso:
  - module: openfleet.clusters.cluster_order
  - module: openfleet.clusters.cluster_order_status
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.orders
"""

EXAMPLES = r"""
- name: Look at one order
  openfleet.clusters.cluster_order_info:
    name: demo
    namespace: orders
  register: found

- name: Say where it stands
  ansible.builtin.debug:
    msg: "{{ found.orders | map(attribute='status.phase', default='not taken up') | first | default('no such order') }}"

- name: Look at the orders of a team that need somebody
  openfleet.clusters.cluster_order_info:
    label_selectors:
      - team=blue
    phases: [Failed, Degraded]
  register: broken

- name: Say why
  ansible.builtin.debug:
    msg: "{{ item.status.failure.message | default(unmet | map(attribute='message') | first) }}"
  vars:
    unmet: "{{ item.status.conditions | rejectattr('status', 'eq', 'True') }}"
  loop: "{{ broken.orders }}"
  loop_control:
    label: "{{ item.metadata.name }}"
"""

RETURN = r"""
orders:
  description: The orders, sorted by namespace and name.
  returned: success
  type: list
  elements: dict
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
    next_action:
      description:
        - What is to be done for it now, V(provision), V(post_install) or V(delete), each a C(step) of
          M(openfleet.clusters.cluster_order_prepare). V(null) if nothing is, or something is waited for.
      type: str
      returned: when the user may read HostedClusters and NodePools
      sample: provision
"""

from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, ORDERS, Spec

SPEC: Spec = {
    "name": {"type": "str"},
    "namespace": {"type": "str"},
    "label_selectors": {"type": "list", "elements": "str", "default": []},
    "phases": {"type": "list", "elements": "str", "choices": ["Progressing", "Ready", "Failed", "Degraded", "Deleting"]},
    "controller": {"type": "str", "choices": ["self", "external"], "default": "self"},
}
RULES: dict[str, Any] = {"required_by": {"name": "namespace"}}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
