#!/usr/bin/python
# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation and argument spec of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_identity_provider
short_description: Manage an identity provider of a cluster
version_added: 0.1.0
author:
  - openfleet.clusters contributors (@openfleet)
description:
  - Adds an identity provider to a cluster, updates the one of the same name, or removes it. Does not change the others.
options:
  state:
    description:
      - V(present) adds or updates the identity provider.
      - V(absent) removes it.
    type: str
    choices: [present, absent]
    default: present
  identity_provider:
    description: Name of the identity provider, shown on the log-in page.
    type: str
    required: true
  type:
    description: Type, V(OpenID), V(HTPasswd), V(GitHub), V(GitLab), V(Google) or V(LDAP). Required if O(state=present).
    type: str
  settings:
    description: Settings of that type in OpenShift's OAuth resource, for example C(issuer) and C(clientID).
    type: dict
    default: {}
  secrets:
    description: The secret of that type by its key, C(clientSecret), C(htpasswd) or C(bindPassword).
    type: dict
    default: {}
  secret_refs:
    description:
      - The same secret by its key, read from a Secret on the hub, so that no variable contains it.
      - The Secret is in the namespace of the order, or in O(namespace) for a cluster without an order.
    type: dict
    default: {}
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
- name: Add an OpenID provider
  openfleet.clusters.cluster_identity_provider:
    name: lab
    namespace: clusters
    provider: hypershift
    identity_provider: company
    type: OpenID
    settings:
      issuer: https://sso.example.com
      clientID: lab
      claims:
        preferredUsername: [preferred_username]
    secrets:
      clientSecret: "{{ lookup('ansible.builtin.env', 'CLIENT_SECRET') }}"

- name: Add users whose passwords are in a Secret
  openfleet.clusters.cluster_identity_provider:
    name: lab
    namespace: clusters
    provider: hypershift
    identity_provider: local
    type: HTPasswd
    secret_refs:
      htpasswd:
        name: lab-users
        key: htpasswd

- name: Remove the OpenID provider
  openfleet.clusters.cluster_identity_provider:
    state: absent
    name: lab
    namespace: clusters
    provider: hypershift
    identity_provider: company
"""

RETURN = r"""
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
    "identity_provider": {"type": "str", "required": True},
    "type": {"type": "str"},
    "settings": {"type": "dict", "default": {}},
    "secrets": {"type": "dict", "default": {}, "no_log": True},
    "secret_refs": {"type": "dict", "default": {}, "no_log": False},
}
RULES: dict[str, Any] = {**CLUSTER_RULES, "required_if": [("state", "present", ("type",))]}

if __name__ == "__main__":
    main(KUBERNETES | ORDERS | SPEC, RULES)
