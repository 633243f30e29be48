#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation and the arguments of an action, which runs on the controller as all of this collection do."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_resources
short_description: Have a set of objects in a cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - It brings objects into a cluster, whatever its provider, and takes away what the set had before and has no longer.
  - Objects that are not of the set are never touched.
options:
  state:
    description:
      - V(present) brings the objects of O(resources) into the cluster.
      - V(absent) removes all objects of the set. RV(gone) tells when nothing is left.
    type: str
    choices: [present, absent]
    default: present
  resource_set:
    description: The name of the set.
    type: str
    required: true
  resources:
    description: The objects, as Kubernetes has them.
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
- name: Have a quota in the cluster
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

- name: Have it no longer
  openfleet.clusters.cluster_resources:
    state: absent
    name: lab
    namespace: clusters
    provider: hypershift
    resource_set: quotas
"""

RETURN = r"""
gone:
  description: Whether nothing is left.
  returned: if O(state=absent)
  type: bool
  sample: false
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
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "resource_set": {"type": "str", "required": True},
    "resources": {"type": "list", "elements": "dict", "default": []},
}
RULES: dict[str, Any] = CLUSTER_RULES

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
