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
attributes:
  check_mode:
    support: full
    description: Reads what is there, and asks the API server what it would make of the rest.
  diff_mode:
    support: full
    description: Shows each object. Of secrets only the keys are shown, and which of them change.
  action:
    support: full
    description: Runs in the process of the controller, without a connection to a host.
extends_documentation_fragment:
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

from ansible.module_utils.basic import AnsibleModule
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


def main() -> None:
    module = AnsibleModule(argument_spec=KUBERNETES | ORDERS | SPEC, supports_check_mode=True, **RULES)
    module.fail_json(
        msg="openfleet.clusters.cluster_node_set runs in Ansible's own process and not on a host:"
        " call it as a task of a playbook, or with `ansible -m`."
    )


if __name__ == "__main__":
    main()
