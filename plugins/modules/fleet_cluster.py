#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_cluster
short_description: Create, update or delete a fleet cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Creates, changes and deletes a C(FleetCluster) on the home cluster of a fleet.
  - The module does not wait. Whether quota was reserved and a hub was found is in the conditions of the status.
options:
  name:
    description: Name of the cluster.
    type: str
    required: true
  namespace:
    description: Namespace of the tenant.
    type: str
    required: true
  state:
    description: V(present) creates the object or sets the given fields; others stay. V(absent) deletes it.
    type: str
    choices: [present, absent]
    default: present
  template:
    description: The template, as the full name of its role. A new cluster needs it, and it cannot be changed.
    type: str
  template_parameters:
    description: Parameters of the template. They replace all that the cluster has.
    type: dict
  node_sets:
    description: The nodes of the cluster. They replace all node sets that the cluster has.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the node set.
        type: str
        required: true
      resource_class:
        description: Resource class of the nodes. It cannot be changed.
        type: str
        required: true
      size:
        description: Number of nodes.
        type: int
        required: true
  placement:
    description: Where the cluster may be, with the fields of the API. It cannot be changed after the cluster was bound
      to a hub.
    type: dict
  priority:
    description: Of the tenant's clusters that wait, those with a higher priority come first.
    type: int
  expires_at:
    description: When the cluster is deleted, in UTC.
    type: str
seealso:
  - module: openfleet.clusters.fleet_cluster_info
attributes:
  check_mode:
    support: full
    details: The API server validates each change with a dry run.
  diff_mode:
    support: full
    details: Shows labels and spec before and after, without the values of parameters.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
"""

EXAMPLES = r"""
- name: Create a cluster
  openfleet.clusters.fleet_cluster:
    name: demo
    namespace: team
    template: openfleet.clusters.ocp_4_17_small
    node_sets:
      - name: workers
        resource_class: fc430
        size: 2
    placement:
      region: eu
    expires_at: "2099-01-01T00:00:00Z"

- name: Scale it to three nodes
  openfleet.clusters.fleet_cluster:
    name: demo
    namespace: team
    node_sets:
      - name: workers
        resource_class: fc430
        size: 3

- name: Delete it
  openfleet.clusters.fleet_cluster:
    name: demo
    namespace: team
    state: absent
"""

RETURN = r"""
fleet_cluster:
  description: The object after the task; in check mode, as it would be. The fields are those of the API.
  returned: O(state=present)
  type: dict
  contains:
    name:
      description: Name of the object.
      type: str
      returned: always
      sample: demo
    uid:
      description: The uid of the object.
      type: str
      returned: always
      sample: 0b7c9f0e-1111-4222-8333-444455556666
    deleting:
      description: Whether the object is being deleted.
      type: bool
      returned: always
      sample: false
    spec:
      description: The spec of the C(FleetCluster), without the parameters of the template.
      type: dict
      returned: always
    status:
      description: The status of the C(FleetCluster). Empty before it was reconciled.
      type: dict
      returned: always
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec

SPEC: Spec = {
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "template": {"type": "str"},
    "template_parameters": {"type": "dict", "no_log": True},
    "node_sets": {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": {"type": "str", "required": True},
            "resource_class": {"type": "str", "required": True},
            "size": {"type": "int", "required": True},
        },
    },
    "placement": {"type": "dict"},
    "priority": {"type": "int"},
    "expires_at": {"type": "str"},
}

if __name__ == "__main__":
    main(KUBERNETES | SPEC)
