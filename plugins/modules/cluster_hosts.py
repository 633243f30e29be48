#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_hosts
short_description: Claim and release bare-metal hosts for a cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Claims hosts of each resource class for a cluster, all or none, in one task. No two clusters get the same host.
  - If hosts are missing, the task fails with the reason C(HostShortage), and claims nothing.
  - Prefers clean hosts, and spreads the hosts of a class over failure domains.
  - A claimed Agent is approved, and gets a hostname and the role C(worker). HyperShift binds it, if its NodePool has
    the selector in RV(node_platforms).
  - Releases hosts that are too many only when they have left the cluster. A released Agent gets back what the claim has
    changed, and the label C(<api_group>/cleaning=required). The site removes that label when the host is clean.
  - The ConfigMap C(host-claims-<inventory>) in O(site_namespace) has all claims of an inventory. Each change of it is a
    compare-and-swap under the lock of the cluster.
options:
  state:
    description:
      - V(present) claims the hosts of O(node_requests), and releases those that are too many.
      - V(absent) releases all hosts of the cluster.
      - Hosts that are still part of the cluster stay claimed, and RV(part.ready) is false. Run the task again later.
    type: str
    choices: [present, absent]
    default: present
  node_requests:
    description: The hosts by resource class.
    type: list
    elements: dict
    default: []
    suboptions:
      resourceClass:
        description: Resource class of the hosts.
        type: str
        required: true
      numberOfNodes:
        description: Number of hosts.
        type: int
        required: true
  agent_namespace:
    description: Namespace of the C(agent-install.openshift.io/v1beta1) Agents that are the inventory.
    type: str
  classes:
    description:
      - The resource classes of the site, each with C(labels) that its Agents have. Default is the label
        C(<api_group>/resource-class) with the name of the class.
      - A class whose C(kind) is not V(agent) has no hosts.
      - Without classes, every class has the default label.
    type: dict
    default: {}
  failure_domain_label:
    description: Label of Agents with their failure domain, for example a rack.
    type: str
    default: topology.kubernetes.io/zone
  require_clean:
    description: Whether Agents with the label C(<api_group>/cleaning) cannot be claimed. Otherwise they are claimed
      last.
    type: bool
    default: false
  inventory:
    description: Name of the inventory in O(hosts), instead of O(agent_namespace).
    type: str
  hosts:
    description: The hosts of O(inventory).
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the host.
        type: str
        required: true
      resource_class:
        description: Resource class of the host.
        type: str
        required: true
      failure_domain:
        description: Failure domain of the host.
        type: str
      available:
        description: Whether the host works.
        type: bool
        default: true
      clean:
        description: Whether the host has no data of an earlier cluster.
        type: bool
        default: true
      in_use:
        description: Whether the host is part of a cluster. It is not released then.
        type: bool
        default: false
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.cluster
  - openfleet.clusters.kubernetes.lock
  - openfleet.clusters.kubernetes.orders
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: Shows the names of the hosts by resource class.
seealso:
  - module: openfleet.clusters.cluster
"""

EXAMPLES = r"""
- name: Claim the hosts of an order, in the install tasks of a template
  openfleet.clusters.cluster_hosts:
    agent_namespace: hosts
    node_requests: "{{ node_requests }}"
  register: claimed

- name: Show the hosts and the selector of each NodePool
  ansible.builtin.debug:
    msg: "{{ claimed.hosts }} {{ claimed.node_platforms }}"

- name: Release the hosts of an order, in the delete tasks of a template
  openfleet.clusters.cluster_hosts:
    state: absent
    agent_namespace: hosts

- name: Claim a host of a list for a cluster without an order
  openfleet.clusters.cluster_hosts:
    name: lab
    namespace: clusters
    provider: hypershift
    inventory: lab-rack
    hosts:
      - name: blade-1
        resource_class: blade
    node_requests:
      - resourceClass: blade
        numberOfNodes: 1
"""

RETURN = r"""
hosts:
  description: Names of the claimed hosts by resource class.
  returned: success
  type: dict
  sample:
    fc430: [5b7a, 9c01]
node_platforms:
  description: For each claimed class the O(openfleet.clusters.cluster#module:settings) C(node_platforms) that select
    its Agents.
  returned: success
  type: dict
  sample:
    fc430:
      agent:
        agentLabelSelector:
          matchLabels:
            cloudkit.openshift.io/claim: 8f1c6d1e-4f0e-4d52-9f5d-0f8f5b0d6c1a
            cloudkit.openshift.io/claimed-class: fc430
released:
  description: Names of the released hosts.
  returned: success
  type: list
  elements: str
  sample: []
part:
  description: Whether the cluster has all its hosts, and no others, as C(cluster_infrastructure) reports it.
  returned: success
  type: dict
  contains:
    ready:
      description: Whether it has.
      type: bool
      returned: always
      sample: true
    reason:
      description: Why, in one word.
      type: str
      returned: always
      sample: HostsClaimed
    message:
      description: Why, in one sentence.
      type: str
      returned: always
      sample: "Hosts: 2 of the class fc430"
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

SPEC: Spec = {
    **CLUSTER,
    **LOCK,
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "node_requests": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "resourceClass": {"type": "str", "required": True},
            "numberOfNodes": {"type": "int", "required": True},
        },
    },
    "agent_namespace": {"type": "str"},
    "classes": {"type": "dict", "default": {}},
    "failure_domain_label": {"type": "str", "default": "topology.kubernetes.io/zone"},
    "require_clean": {"type": "bool", "default": False},
    "inventory": {"type": "str"},
    "hosts": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "resource_class": {"type": "str", "required": True},
            "failure_domain": {"type": "str"},
            "available": {"type": "bool", "default": True},
            "clean": {"type": "bool", "default": True},
            "in_use": {"type": "bool", "default": False},
        },
    },
}
RULES: dict[str, Any] = CLUSTER_RULES | {
    "required_one_of": [*CLUSTER_RULES["required_one_of"], ("agent_namespace", "inventory")],
    "mutually_exclusive": [("agent_namespace", "inventory")],
}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
