#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_order_info
short_description: Get cluster orders
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Returns the orders with their status and their next action.
  - Without options, returns all orders of the hub. An order that does not exist does not fail the task.
  - RV(orders[].next_action) depends on O(controller). Set the value of the event source and the playbooks.
options:
  name:
    description: Name of the order. Requires O(namespace).
    type: str
  namespace:
    description: Return only orders in this namespace.
    type: str
  label_selectors:
    description: Return only orders whose labels match all selectors, for example V(team=blue) or V(team in (blue,
      red\)).
    type: list
    elements: str
    default: []
  phases:
    description: Return only orders in one of these phases. An order has no phase before its first run.
    type: list
    elements: str
    choices: [Progressing, Ready, Failed, Degraded, Deleting]
  orphans:
    description: Also return RV(orphans). This lists the namespaces of the hub, and the Leases, AddressPools and claims
      of hosts of O(site_namespace).
    type: bool
    default: false
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
- name: Get one order
  openfleet.clusters.cluster_order_info:
    name: demo
    namespace: orders
  register: found

- name: Show its phase
  ansible.builtin.debug:
    msg: "{{ found.orders | map(attribute='status.phase', default='no phase yet') | first | default('no such order') }}"

- name: Get what deleted orders have left on the hub
  openfleet.clusters.cluster_order_info:
    orphans: true
  register: hub

- name: Show the namespaces in which a cluster may still exist
  ansible.builtin.debug:
    msg: "{{ hub.orphans | selectattr('kind', 'eq', 'Namespace') | map(attribute='name') }}"

- name: Get the orders of a team that need attention
  openfleet.clusters.cluster_order_info:
    label_selectors:
      - team=blue
    phases: [Failed, Degraded]
  register: broken

- name: Show the reasons
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
    next_action:
      description:
        - Next action of the order, V(provision), V(post_install) or V(delete), a C(step) of
          M(openfleet.clusters.cluster_order_prepare). V(null) if there is no action now.
      type: str
      returned: when the user can read the objects of clusters, for example HostedClusters and NodePools, and the state is known
      sample: provision
orphans:
  description:
    - What exists on the hub of orders that no longer exist, for example because a finalizer was removed by hand. It
      does not depend on the other options that select orders.
  returned: with O(orphans)
  type: list
  elements: dict
  contains:
    kind:
      description: V(Namespace) for a working namespace, in which a cluster may exist. V(Lease) for the lock of an order
        whose namespace no longer exists. V(AddressPool) for entries of a pool, and V(ConfigMap) for claims of hosts,
        that no cluster uses any more.
      type: str
      returned: always
      sample: Namespace
    name:
      description: Name of the object.
      type: str
      returned: always
      sample: orders-demo-bt7oormzw2gp
    order:
      description: Namespace, name and uid of the order. A Lease has no uid.
      type: dict
      returned: always
      sample: {"namespace": "orders", "name": "demo", "uid": "7c0e8c0a-7f0c-4d8e-9d0f-1d7a0c6a3f11"}
    since:
      description: When the event source reported the object first, V(null) before that.
      type: str
      returned: always
      sample: "2026-01-01T10:00:00Z"
"""

from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, ORDERS, Spec

SPEC: Spec = {
    "name": {"type": "str"},
    "namespace": {"type": "str"},
    "label_selectors": {"type": "list", "elements": "str", "default": []},
    "phases": {"type": "list", "elements": "str", "choices": ["Progressing", "Ready", "Failed", "Degraded", "Deleting"]},
    "orphans": {"type": "bool", "default": False},
}
RULES: dict[str, Any] = {"required_by": {"name": "namespace"}}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
