#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fleet_quota
short_description: Limit what a tenant of a fleet may use
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Creates, changes and deletes the C(FleetQuota) of a namespace on the home cluster of a fleet.
  - The quota of the site's namespace is the default for tenants without limits of their own.
options:
  namespace:
    description: Namespace of the tenant.
    type: str
    required: true
  state:
    description: V(present) creates the object or sets the given fields; others stay. V(absent) deletes it.
    type: str
    choices: [present, absent]
    default: present
  hard:
    description:
      - The limits, as numbers. Keys are C(clusters), C(nodes), C(clusters.<template>) and C(nodes.<class>).
      - They replace all limits that the quota has.
    type: dict
  max_lifetime:
    description: For how long a cluster may exist, such as V(30m), V(72h) or V(14d).
    type: str
  denied:
    description: The tenant gets no new cluster and no further node. An empty dictionary ends this.
    type: dict
    suboptions:
      reason:
        description: Why, for the tenant to read.
        type: str
      delete_after:
        description: When the clusters of the tenant are deleted, in UTC. Without it they stay.
        type: str
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
- name: Limit a tenant
  openfleet.clusters.fleet_quota:
    namespace: team
    hard:
      clusters: 10
      nodes: 60
      nodes.h100: 4
    max_lifetime: 90d

- name: Deny the tenant anything more
  openfleet.clusters.fleet_quota:
    namespace: team
    denied:
      reason: The contract has ended.
      delete_after: "2099-01-01T00:00:00Z"

- name: Allow it again
  openfleet.clusters.fleet_quota:
    namespace: team
    denied: {}
"""

RETURN = r"""
fleet_quota:
  description: The object after the task; in check mode, as it would be. The fields are those of the API.
  returned: O(state=present)
  type: dict
  contains:
    name:
      description: Name of the object.
      type: str
      returned: always
      sample: default
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
      description: The spec of the C(FleetQuota).
      type: dict
      returned: always
    status:
      description: The status of the C(FleetQuota). Empty before it was reconciled.
      type: dict
      returned: always
"""

from ansible_collections.openfleet.clusters.plugins.module_utils.common.action_module import main
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec

SPEC: Spec = {
    "namespace": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "hard": {"type": "dict"},
    "max_lifetime": {"type": "str"},
    "denied": {"type": "dict", "options": {"reason": {"type": "str"}, "delete_after": {"type": "str"}}},
}

if __name__ == "__main__":
    main(KUBERNETES | SPEC)
