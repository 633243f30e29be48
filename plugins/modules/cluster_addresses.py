#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_addresses
short_description: Allocate networks, VLANs and addresses to a cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Allocates entries of AddressPools in O(site_namespace) to a cluster. No two clusters have the same entry.
  - Allocates what the cluster needs of all O(pools), or nothing.
  - The playbook C(delete_cluster) releases everything that the cluster of an order has, once the cluster is deleted.
options:
  state:
    description:
      - V(present) allocates what is missing. A cluster keeps what it has.
      - V(absent) releases what the cluster has of O(pools), or of all pools. Do this only for a cluster that no longer
        exists, because another cluster can then have the same addresses.
    type: str
    choices: [present, absent]
    default: present
  pools:
    description: The pools. Required if O(state=present).
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of an AddressPool.
        type: str
        required: true
      count:
        description: How many entries the cluster has.
        type: int
        default: 1
  disjoint_from:
    description:
      - Other networks of the cluster in CIDR notation. Networks and addresses that overlap with them are not allocated.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.provider
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.cluster
  - openfleet.clusters.kubernetes.lock
  - openfleet.clusters.kubernetes.orders
seealso:
  - module: openfleet.clusters.cluster_resources
"""

EXAMPLES = r"""
- name: Allocate a machine network and a VLAN, in the install tasks of a template
  openfleet.clusters.cluster_addresses:
    pools:
      - name: machine-networks
      - name: vlans
    disjoint_from:
      - "{{ template_parameters.pod_network_cidr }}"
      - "{{ template_parameters.service_network_cidr }}"
  register: allocated

- name: Show the machine network
  ansible.builtin.debug:
    msg: "{{ allocated.addresses['machine-networks'][0] }}"

- name: Allocate two addresses to a cluster without an order
  openfleet.clusters.cluster_addresses:
    name: lab
    namespace: clusters
    provider: hypershift
    pools:
      - name: load-balancers
        count: 2

- name: Release them when the cluster is deleted
  openfleet.clusters.cluster_addresses:
    state: absent
    name: lab
    namespace: clusters
    provider: hypershift
"""

RETURN = r"""
addresses:
  description: What the cluster has, by the name of the pool. What it had, if O(state=absent).
  returned: success
  type: dict
  sample: {"machine-networks": ["10.20.3.0/24"], "vlans": ["103"]}
objects:
  description: The pools.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the object.
      type: str
      returned: always
      sample: AddressPool
    name:
      description: Name of the pool.
      type: str
      returned: always
      sample: vlans
    action:
      description: What happened to the cluster's part of it, V(created), V(changed), V(unchanged) or V(deleted). In
        check mode, the predicted action.
      type: str
      returned: always
      sample: created
"""

from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import (
    CLUSTER,
    CLUSTER_RULES,
    KUBERNETES,
    LOCK,
    ORDERS,
    Spec,
)

POOL: Spec = {"name": {"type": "str", "required": True}, "count": {"type": "int", "default": 1}}
SPEC: Spec = {
    **CLUSTER,
    **LOCK,
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "pools": {"type": "list", "elements": "dict", "default": [], "options": POOL},
    "disjoint_from": {"type": "list", "elements": "str", "default": []},
}
RULES: dict[str, Any] = CLUSTER_RULES

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
