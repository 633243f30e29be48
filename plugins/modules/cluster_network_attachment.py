#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_network_attachment
short_description: Attach the virtual machines of a cluster to a VLAN
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Creates a NetworkAttachmentDefinition on the hub, for a VLAN on a bridge of the hub's nodes. NodePools of the
    platform KubeVirt name it in C(additionalNetworks). The hub needs Multus and the bridge.
  - The VLAN is an entry of an AddressPool, so no two clusters have the same one.
  - Kubernetes deletes the object with the namespace of the cluster.
options:
  state:
    description:
      - V(present) creates or updates the object.
      - V(absent) deletes it. Do this only for a cluster that no longer exists.
    type: str
    choices: [present, absent]
    default: present
  bridge:
    description: Name of the bridge on the nodes of the hub. Required if O(state=present).
    type: str
  vlan:
    description: The VLAN of the cluster. Required if O(state=present).
    type: int
  attachment_namespace:
    description:
      - Namespace of the object. The virtual machines are in the namespace of the control plane. Where Multus isolates
        namespaces, as in OpenShift, only a few others can be referred to.
    type: str
    default: default
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.provider
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.cluster
  - openfleet.clusters.kubernetes.lock
  - openfleet.clusters.kubernetes.orders
seealso:
  - module: openfleet.clusters.cluster_addresses
"""

EXAMPLES = r"""
- name: Attach a cluster to its VLAN
  openfleet.clusters.cluster_network_attachment:
    name: lab
    namespace: clusters
    provider: hypershift
    bridge: br-tenants
    vlan: 103
  register: attached

- name: Show what NodePools name
  ansible.builtin.debug:
    msg: "{{ attached.network }}"

- name: Remove the network when the cluster is deleted
  openfleet.clusters.cluster_network_attachment:
    state: absent
    name: lab
    namespace: clusters
    provider: hypershift
"""

RETURN = r"""
network:
  description: Namespace and name of the object, as NodePools name it.
  returned: success
  type: str
  sample: default/clusters-lab-2f6c0a4b9d1e8f37
objects:
  description: The object.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the object.
      type: str
      returned: always
      sample: NetworkAttachmentDefinition
    name:
      description: Name of the object.
      type: str
      returned: always
      sample: clusters-lab-2f6c0a4b9d1e8f37
    action:
      description: What happened to it, V(created), V(changed), V(unchanged) or V(deleted). In check mode, the predicted
        action.
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

SPEC: Spec = {
    **CLUSTER,
    **LOCK,
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "bridge": {"type": "str"},
    "vlan": {"type": "int"},
    "attachment_namespace": {"type": "str", "default": "default"},
}
RULES: dict[str, Any] = {**CLUSTER_RULES, "required_if": [("state", "present", ("bridge", "vlan"))]}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
