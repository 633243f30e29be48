#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_node_set
short_description: Set the number of nodes of a resource class in a cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Changes the number of nodes of a resource class, adds the class or removes it.
  - For clusters without an order, and for repairs. The next run of C(create_cluster) restores the nodes of an order.
options:
  resource_class:
    description: Resource class of the machines.
    type: str
    required: true
  nodes:
    description: Number of nodes. V(0) removes the resource class.
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
- name: Scale a resource class to three nodes
  openfleet.clusters.cluster_node_set:
    name: lab
    namespace: clusters
    provider: hypershift
    resource_class: fc430
    nodes: 3
"""

RETURN = r"""
cluster:
  description: The cluster as its provider observes it, with the fields of
    RV(openfleet.clusters.cluster#module:cluster).
  returned: success
  type: dict
objects:
  description: The objects of the change.
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
      description: The action, V(created), V(changed), V(unchanged) or V(deleted). In check mode, the predicted action.
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
