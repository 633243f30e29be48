#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: dr_placement_info
short_description: Get the state of protected workloads
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Returns for each C(DRPlacementControl) of this cluster which cluster has the workload, which request is in progress,
    who leads, and what it waits for, since when, with what to do about it.
  - It reads the bucket and this cluster. It sends no request to the peers.
options:
  namespace:
    description: Namespace of the C(DRPlacementControls). The default is all namespaces.
    type: str
  name:
    description: Name of one C(DRPlacementControl), with O(namespace). It is found in the bucket also if this cluster
      has no copy of it.
    type: str
seealso:
  - module: openfleet.clusters.dr_placement
  - module: openfleet.clusters.dr_request
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.info
  - openfleet.clusters.disaster_recovery
"""

EXAMPLES = r"""
- name: Read all DRPlacementControls
  openfleet.clusters.dr_placement_info:
    bucket: coordination
  register: recovery

- name: Show a line for each
  ansible.builtin.debug:
    msg: "{{ recovery.lines }}"

- name: Read one
  openfleet.clusters.dr_placement_info:
    bucket: coordination
    namespace: shop
    name: database
  register: one

- name: Show what it waits for
  ansible.builtin.debug:
    msg: "{{ one.placements[0].message | default('nothing', true) }}"
"""

RETURN = r"""
placements:
  description: The C(DRPlacementControls), sorted by namespace and name.
  returned: success
  type: list
  elements: dict
  contains:
    namespace:
      description: The namespace.
      type: str
      returned: always
      sample: shop
    name:
      description: The name.
      type: str
      returned: always
      sample: database
    phase:
      description: The phase.
      type: str
      returned: always
      sample: FailedOver
    progression:
      description: The progression.
      type: str
      returned: always
      sample: Cleaning Up
    home:
      description: The cluster that has the workload.
      type: str
      returned: always
      sample: west
    decision:
      description: The placement, with C(cluster), C(retained) and C(reason).
      type: dict
      returned: always
    request:
      description: The request in progress, with C(kind), C(target), C(stage), C(started_at) and C(can_be_taken_back).
        Otherwise null.
      type: dict
      returned: always
    requested:
      description: The request in effect, with its C(number), and the C(cluster) whose copy made it. Null before the
        first.
      type: dict
      returned: always
    leader:
      description: The holder of the lease. Empty if there is none.
      type: str
      returned: always
      sample: west
    epoch:
      description: The epoch of the leader, or of the last one.
      type: int
      returned: always
      sample: 4
    revision:
      description: The revision of the state. V(0) before a leader has begun.
      type: int
      returned: always
      sample: 23
    since:
      description: When this revision was written, on the clock of its writer.
      type: str
      returned: always
    started_at:
      description: When the last request began.
      type: str
      returned: always
    duration:
      description: How long the last request took, in seconds.
      type: int
      returned: always
    waits:
      description: The closed gates, each with C(gate) and C(since).
      type: list
      elements: dict
      returned: always
    message:
      description: What it waits for and what to do about it, from the condition C(Waiting) of this cluster's copy.
      type: str
      returned: always
    conditions:
      description: The other conditions of this cluster's copy.
      type: list
      elements: dict
      returned: always
    last_sync:
      description: When the last sync of the data was complete.
      type: str
      returned: always
lines:
  description: The same, one human-readable line each.
  returned: success
  type: list
  elements: str
  sample: ["shop/database: FailedOver, Cleaning Up on west, led by west under epoch 4; waits for PeersAnswer since 2025-01-01T12:00:00Z"]
"""

from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import DISASTER_RECOVERY, Spec

SPEC: Spec = {"namespace": {"type": "str"}, "name": {"type": "str"}}
RULES: dict[str, Any] = {"required_by": {"name": ("namespace",)}}

if __name__ == "__main__":
    main(DISASTER_RECOVERY | SPEC, RULES)
