#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_resources
short_description: Manage a set of objects in a cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Applies a set of objects to a cluster with any provider, and deletes objects that the set no longer contains.
  - Does not change objects outside of the set.
options:
  state:
    description:
      - V(present) applies the objects in O(resources).
      - V(absent) deletes all objects of the set. They are deleted when RV(deleted) is true.
    type: str
    choices: [present, absent]
    default: present
  resource_set:
    description: Name of the set.
    type: str
    required: true
  resources:
    description: Kubernetes objects.
    type: list
    elements: dict
    default: []
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
- name: Apply a quota
  openfleet.clusters.cluster_resources:
    name: lab
    namespace: clusters
    provider: hypershift
    resource_set: quotas
    resources:
      - apiVersion: v1
        kind: ResourceQuota
        metadata:
          name: pods
          namespace: default
        spec:
          hard:
            pods: "100"

- name: Delete the quota
  openfleet.clusters.cluster_resources:
    state: absent
    name: lab
    namespace: clusters
    provider: hypershift
    resource_set: quotas
"""

RETURN = r"""
deleted:
  description: Whether all objects of the set are deleted.
  returned: if O(state=absent)
  type: bool
  sample: false
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
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "resource_set": {"type": "str", "required": True},
    "resources": {"type": "list", "elements": "dict", "default": []},
}
RULES: dict[str, Any] = CLUSTER_RULES

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
