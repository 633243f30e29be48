#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: dr_placement
short_description: Reconcile DRPlacementControls on a managed cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - With an epoch, the task leads. It reads this cluster, its peers and the bucket, records each step in the bucket,
    acts on it, and repeats this until there is nothing to do now or a gate is closed. It does not wait for a gate.
  - Without an epoch, the task watches. It shows the recorded state on this cluster's copy of the C(DRPlacementControl)
    and changes nothing else.
  - A task whose epoch is over ends without an error. The leader of the next epoch continues.
  - A member that does not answer is waited for once in a task. It is never needed for a failover.
options:
  namespace:
    description: Namespace of the C(DRPlacementControl), with O(name). The default is all of this cluster.
    type: str
  name:
    description: Name of the C(DRPlacementControl), with O(namespace).
    type: str
  epoch:
    description: The epoch under which this process leads O(name), from V(leader_acquired) of the event source.
    type: int
  epochs:
    description:
      - The epochs under which this process leads, by C(<namespace>/<name>). All others of this cluster are watched.
    type: dict
  timeout:
    description: After this time, in seconds, the task begins no further round for a C(DRPlacementControl).
    type: float
    default: 60
seealso:
  - module: openfleet.clusters.dr_placement_info
  - module: openfleet.clusters.dr_request
attributes:
  check_mode:
    support: full
    details: Returns what the leader would record and do until it acts or waits, and what blocks it.
  diff_mode:
    support: full
    details: Shows phase, progression and home before and after, and the actions.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.disaster_recovery
"""

EXAMPLES = r"""
- name: Acquire the lease
  openfleet.clusters.s3_lock:
    bucket: coordination
    namespace: shop
    name: database
    holder: east
  register: lease

- name: Lead one DRPlacementControl
  openfleet.clusters.dr_placement:
    bucket: coordination
    namespace: shop
    name: database
    epoch: "{{ lease.epoch }}"
  register: reconciled

- name: Show what it waits for
  ansible.builtin.debug:
    msg: "{{ reconciled.placements | map(attribute='waits') | flatten | map(attribute='message') }}"

- name: Show the recorded state of all DRPlacementControls on this cluster's copies
  openfleet.clusters.dr_placement:
    bucket: coordination
"""

RETURN = r"""
placements:
  description: The result of each C(DRPlacementControl), sorted by namespace and name.
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
    ended:
      description:
        - Why the reconcile ended. V(Settled), V(Waiting) for a gate, V(Acting) if the cluster has to react first,
          V(DeadlineExceeded), V(Watched), V(Planned) in check mode, V(NotStarted) before a leader has begun,
          V(NotFound), or, if another leader acts, V(Fenced), V(Superseded) or V(StaleRevision); V(TermEnded) if the
          next leader rebuilds a lost state.
      type: str
      returned: always
      sample: Waiting
    message:
      description: More about RV(placements[].ended), if another leader acts or nothing was found.
      type: str
      returned: always
    changed:
      description: Whether this reconcile changed something.
      type: bool
      returned: always
    phase:
      description: The phase, as in the status of the C(DRPlacementControl).
      type: str
      returned: always
      sample: FailedOver
    progression:
      description: The progression, as in the status of the C(DRPlacementControl).
      type: str
      returned: always
      sample: Cleaning Up
    home:
      description: The cluster that has the workload.
      type: str
      returned: always
      sample: west
    revision:
      description: The revision of the state.
      type: int
      returned: always
      sample: 23
    recorded:
      description: Phase and progression of the revisions that were written.
      type: list
      elements: str
      returned: always
      sample: [FailingOver/FailingOverToCluster]
    actions:
      description: What was done.
      type: list
      elements: str
      returned: always
      sample: [make west primary]
    waits:
      description: The closed gates, each with C(gate), C(since), C(message) and C(remedy).
      type: list
      elements: dict
      returned: always
    problems:
      description: What a cluster refused, or what blocks the plan in check mode.
      type: list
      elements: str
      returned: always
differences:
  description: Where the other mode of access to the clusters answered otherwise, if C(dr-settings) asks to compare.
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import DISASTER_RECOVERY, Spec

SPEC: Spec = {
    "namespace": {"type": "str"},
    "name": {"type": "str"},
    "epoch": {"type": "int"},
    "epochs": {"type": "dict"},
    "timeout": {"type": "float", "default": 60},
}
RULES: dict[str, Any] = {
    "required_together": [("namespace", "name")],
    "required_by": {"epoch": ("name",)},
    "mutually_exclusive": [("epoch", "epochs"), ("name", "epochs")],
}

if __name__ == "__main__":
    main(DISASTER_RECOVERY | SPEC, RULES)
