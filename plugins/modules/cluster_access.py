#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_access
short_description: Manage groups and role bindings in a cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Applies groups of OpenShift, bindings of cluster roles, and an account for the administrator of a site to a cluster
    with any provider. Deletes those that the module created and that are no longer listed.
options:
  state:
    description:
      - V(present) applies it.
      - V(absent) removes what the module has created. It is removed when RV(part.ready) is true.
    type: str
    choices: [present, absent]
    default: present
  groups:
    description: Groups of OpenShift with their users. A group that an identity provider reports needs no entry.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the group.
        type: str
        required: true
      users:
        description: Names of its users.
        type: list
        elements: str
        default: []
  bindings:
    description: Bindings of cluster roles to groups and users.
    type: list
    elements: dict
    default: []
    suboptions:
      role:
        description: Name of the ClusterRole, for example V(cluster-reader).
        type: str
        required: true
      namespace:
        description: Namespace in which the role is granted. Without it, the role is granted in the whole cluster.
        type: str
      groups:
        description: Names of groups.
        type: list
        elements: str
        default: []
      users:
        description: Names of users.
        type: list
        elements: str
        default: []
  admin_account:
    description:
      - Name of a service account in C(kube-system) with the ClusterRole C(cluster-admin), for the automation of the
        site. It has no stored token. Request a short-lived one with C(kubectl create token).
    type: str
    default: ""
extends_documentation_fragment:
  - openfleet.clusters.attributes
  - openfleet.clusters.attributes.provider
  - openfleet.clusters.kubernetes
  - openfleet.clusters.kubernetes.cluster
  - openfleet.clusters.kubernetes.lock
  - openfleet.clusters.kubernetes.orders
seealso:
  - module: openfleet.clusters.cluster_identity_provider
"""

EXAMPLES = r"""
- name: Let the operators of the site administer the cluster, and a team edit its namespace
  openfleet.clusters.cluster_access:
    name: lab
    namespace: clusters
    provider: hypershift
    bindings:
      - role: cluster-admin
        groups: [site-operators]
      - role: edit
        namespace: default
        groups: [team-blue]
        users: [ann]
    admin_account: site-automation

- name: Remove all of them
  openfleet.clusters.cluster_access:
    state: absent
    name: lab
    namespace: clusters
    provider: hypershift
"""

RETURN = r"""
part:
  description:
    - Whether the part is ready. A cluster that does not serve what the task needs yet is no failure. Run the task again
      later.
  returned: success
  type: dict
  contains:
    ready:
      description: Whether it is ready, or with O(state=absent) removed.
      type: bool
      returned: always
      sample: false
    reason:
      description: The reason in one word.
      type: str
      returned: always
      sample: NotReadyYet
    message:
      description: What is missing.
      type: str
      returned: always
      sample: The cluster lab has no kubeconfig yet; it gets one when its control plane is available.
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
      sample: ClusterRoleBinding
    name:
      description: Name of the object.
      type: str
      returned: always
      sample: openfleet-cluster-admin
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
    "groups": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {"name": {"type": "str", "required": True}, "users": {"type": "list", "elements": "str", "default": []}},
    },
    "bindings": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "role": {"type": "str", "required": True},
            "namespace": {"type": "str"},
            "groups": {"type": "list", "elements": "str", "default": []},
            "users": {"type": "list", "elements": "str", "default": []},
        },
    },
    "admin_account": {"type": "str", "default": ""},
}
RULES: dict[str, Any] = CLUSTER_RULES

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
