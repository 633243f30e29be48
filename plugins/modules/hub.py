#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hub
short_description: Add a hub to a fleet, change or remove it
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Creates, changes and deletes a C(Hub) on the home cluster of a fleet.
  - With O(schedulable=false) no new cluster is bound to the hub. The clusters that it has stay there.
options:
  name:
    description: Name of the hub.
    type: str
    required: true
  state:
    description: V(present) creates the object or sets the given fields; others stay. V(absent) deletes it.
    type: str
    choices: [present, absent]
    default: present
  labels:
    description: Labels of the hub, which clusters select it by. Other labels stay.
    type: dict
  schedulable:
    description: Whether new clusters are bound to the hub.
    type: bool
  region:
    description: Region of the hub.
    type: str
  taints:
    description: Only clusters that tolerate all of them are bound to the hub. They replace those that the hub has.
    type: list
    elements: dict
    suboptions:
      key:
        description: Key of the taint.
        type: str
        required: true
      value:
        description: Value of the taint.
        type: str
        default: ""
  tenant_selector:
    description: Label selector for the namespaces of tenants whose clusters may be on the hub.
    type: dict
  capacity:
    description: What the hub has capacity for. A new hub needs it.
    type: dict
    suboptions:
      clusters:
        description: Number of clusters.
        type: int
        required: true
      nodes:
        description: Number of nodes by resource class.
        type: dict
        default: {}
seealso:
  - module: openfleet.clusters.hub_info
attributes:
  check_mode:
    support: full
    details: The API server validates each change with a dry run.
  diff_mode:
    support: full
    details: Shows labels and spec before and after.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.kubernetes
"""

EXAMPLES = r"""
- name: Add a hub
  openfleet.clusters.hub:
    name: east
    region: eu
    labels:
      gpu: "yes"
    taints:
      - key: dedicated
        value: team
    capacity:
      clusters: 100
      nodes:
        fc430: 400

- name: Bind no new cluster to it
  openfleet.clusters.hub:
    name: east
    schedulable: false

- name: Remove it from the fleet
  openfleet.clusters.hub:
    name: east
    state: absent
"""

RETURN = r"""
hub:
  description: The object after the task; in check mode, as it would be. The fields are those of the API.
  returned: O(state=present)
  type: dict
  contains:
    name:
      description: Name of the object.
      type: str
      returned: always
      sample: east
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
      description: The spec of the C(Hub).
      type: dict
      returned: always
    status:
      description: The status of the C(Hub). Empty before it was reconciled.
      type: dict
      returned: always
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec

SPEC: Spec = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "labels": {"type": "dict"},
    "schedulable": {"type": "bool"},
    "region": {"type": "str"},
    "taints": {
        "type": "list",
        "elements": "dict",
        "options": {"key": {"type": "str", "required": True, "no_log": False}, "value": {"type": "str", "default": ""}},
    },
    "tenant_selector": {"type": "dict"},
    "capacity": {
        "type": "dict",
        "options": {"clusters": {"type": "int", "required": True}, "nodes": {"type": "dict", "default": {}}},
    },
}

if __name__ == "__main__":
    main(KUBERNETES | SPEC)
