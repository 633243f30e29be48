#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: dr_request
short_description: Protect a workload, move it, test its failover, or end its protection
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Changes the spec of the C(DRPlacementControl) on this cluster, as a user would, and nothing else. The leader acts
    on it. The change counts on whichever cluster it is made.
  - With O(wait=true) it waits until the workload runs on the requested cluster, and shows the progress.
options:
  namespace:
    description: Namespace of the C(DRPlacementControl).
    type: str
    required: true
  name:
    description: Name of the C(DRPlacementControl).
    type: str
    required: true
  request:
    description:
      - V(protect) creates the C(DRPlacementControl), or sets its preferred cluster.
      - V(failover) moves the workload to O(cluster) without its current cluster. Data since the last sync is lost.
      - V(relocate) moves it to O(cluster) without a loss. All clusters have to answer.
      - V(test_failover) starts a copy on O(cluster) for a trial. V(failover) to the same cluster makes the trial the
        workload. V(end_test) reverts it.
      - V(unprotect) ends the protection. The workload stays where it is.
    type: str
    choices: [protect, failover, relocate, test_failover, end_test, unprotect]
    required: true
  cluster:
    description: The cluster that should have the workload. Required for V(failover), V(relocate) and V(test_failover).
    type: str
  policy:
    description: The C(DRPolicy) of a new protection.
    type: str
  placement:
    description: The C(Placement) of a new protection. The default is O(name).
    type: str
  pvc_selector:
    description: The label selector for the volume claims of a new protection. The default is all claims of the
      namespace.
    type: dict
  protected_namespaces:
    description:
      - The namespaces of a discovered application, which a user cleans up. For a new protection. Other namespaces
        than O(namespace) need a C(DRPlacementControl) in the C(ops_namespace) of C(dr-settings).
    type: list
    elements: str
  wait:
    description: Whether to wait, and to show the progress.
    type: bool
    default: false
  wait_timeout:
    description: How long to wait, in seconds.
    type: float
    default: 600
seealso:
  - module: openfleet.clusters.dr_placement_info
attributes:
  check_mode:
    support: full
    details: Returns what would happen and what blocks it. O(wait) has no effect.
  diff_mode:
    support: full
    details: Shows the fields of the spec that change.
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.disaster_recovery
"""

EXAMPLES = r"""
- name: Protect a workload
  openfleet.clusters.dr_request:
    bucket: coordination
    namespace: shop
    name: database
    request: protect
    policy: east-west
    cluster: east
    pvc_selector:
      matchLabels:
        app: database

- name: Plan a failover
  openfleet.clusters.dr_request:
    bucket: coordination
    namespace: shop
    name: database
    request: failover
    cluster: west
  check_mode: true
  register: plan

- name: Show what blocks it
  ansible.builtin.debug:
    msg: "{{ plan.blocked_by }}"

- name: End the protection
  openfleet.clusters.dr_request:
    bucket: coordination
    namespace: shop
    name: database
    request: unprotect
"""

RETURN = r"""
spec:
  description: The fields of the spec that the task changed, or would change. Null removes a field.
  returned: success
  type: dict
  sample: {action: Failover, failoverCluster: west}
placement:
  description: The state of the workload now, as in RV(openfleet.clusters.dr_placement_info#module:placements).
  returned: success
  type: dict
plan:
  description: The phases and progressions that the leader would record until it acts, then its first actions.
  returned: in check mode
  type: list
  elements: str
  sample: [Initiating/no progression, FailingOver/CheckingFailoverPrerequisites, make east secondary]
blocked_by:
  description: What blocks it now, each with what to do about it.
  returned: in check mode
  type: list
  elements: str
"""

from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import DISASTER_RECOVERY, WORKLOAD, Spec

SPEC: Spec = WORKLOAD | {
    "request": {
        "type": "str",
        "choices": ["protect", "failover", "relocate", "test_failover", "end_test", "unprotect"],
        "required": True,
    },
    "cluster": {"type": "str"},
    "policy": {"type": "str"},
    "placement": {"type": "str"},
    "pvc_selector": {"type": "dict"},
    "protected_namespaces": {"type": "list", "elements": "str"},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "float", "default": 600},
}
RULES: dict[str, Any] = {
    "required_if": [("request", "failover", ["cluster"]), ("request", "relocate", ["cluster"]), ("request", "test_failover", ["cluster"])],
}

if __name__ == "__main__":
    main(DISASTER_RECOVERY | SPEC, RULES)
