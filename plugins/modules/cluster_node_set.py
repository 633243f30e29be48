#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_node_set
short_description: Have a number of nodes of one class in a cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - It changes the number of nodes of a class, adds a class, or takes one away.
  - For clusters without an order, and for repairs. What an order asks for comes back with the next run of C(create_cluster).
options:
  resource_class:
    description: The kind of machine.
    type: str
    required: true
  nodes:
    description: How many of them there are to be; V(0) takes the whole class away.
    type: int
    required: true
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.provider
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.cluster
  - openfleet.clusters.kubernetes.lock
  - openfleet.clusters.kubernetes.orders
seealso:
  - module: openfleet.clusters.cluster
"""

EXAMPLES = r"""
- name: Have three nodes of a class
  openfleet.clusters.cluster_node_set:
    name: lab
    namespace: clusters
    provider: hypershift
    resource_class: fc430
    nodes: 3
"""

RETURN = r"""
cluster:
  description: The cluster as its provider sees it, with the fields of RV(openfleet.clusters.cluster#module:cluster).
  returned: success
  type: dict
objects:
  description: The objects that the change is about.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the object.
      type: str
      returned: always
      sample: NodePool
    name:
      description: Name of the object.
      type: str
      returned: always
      sample: demo-fc430
    action:
      description: What was done to it, V(created), V(changed), V(unchanged) or V(deleted), or would be.
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
    "resource_class": {"type": "str", "required": True},
    "nodes": {"type": "int", "required": True},
}
RULES: dict[str, Any] = CLUSTER_RULES

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
